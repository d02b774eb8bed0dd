"""Report: what one run gave, with everything needed to give it again.

`build_report` makes every report: of `FedKTClassifier.fit`, of a simulation and of a live server.
"""

from fedkt.report.building import (
    RunLog,
    build_report,
    hide_parties,
    promise_of,
    protects_parties,
    public_notes,
    public_reasons,
    run_log,
    with_quality,
)
from fedkt.report.record import (
    FIGURES,
    NO_PRIVACY,
    Report,
    attention_of,
    figure_of,
    plain_notes,
    weights_in_words,
)
from fedkt.report.scores import accuracies, figures_alone, label_accuracy, mean_and_spread, qualities
from fedkt.system.versions import versions

__all__ = [
    "FIGURES",
    "NO_PRIVACY",
    "Report",
    "RunLog",
    "accuracies",
    "attention_of",
    "build_report",
    "figure_of",
    "figures_alone",
    "hide_parties",
    "label_accuracy",
    "mean_and_spread",
    "plain_notes",
    "promise_of",
    "protects_parties",
    "public_notes",
    "public_reasons",
    "qualities",
    "run_log",
    "versions",
    "weights_in_words",
    "with_quality",
]
