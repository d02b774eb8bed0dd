"""The paper's 72 private settings on the real data, beside its accuracies and ε.

Teachers and students are trained once per seed; every noise is then drawn anew. The votes' data-dependent ε of the
paper (diagnostic) is computed here because these datasets are public; for private votes it is confidential.
"""

from __future__ import annotations

import math
import time
from typing import Any

from fedkt.report import accuracies, versions
from fedkt.system.threads import one_thread
from paper.private_federations import DELTA, PartyNoise, ServerNoise, accuracy_by_draw, federation_of, query_rows
from paper.private_study import GroupRun, PaperSetting, Study, paper_settings, parts_of
from paper.workplace import Workplace


def run_levels(each: GroupRun, place: Workplace) -> dict[str, Any]:
    """All settings of a group on one seed."""
    started = time.process_time()
    with one_thread():
        federation = federation_of(each.group, each.seed, place.data_dir)
        settings = paper_settings(place.folder)[each.group]
        rows = [setting_figures(setting, each, federation) for setting in settings]
        plain, balanced = accuracies([federation.bare()], federation.data.X_test, federation.data.y_test)
    return {
        "group": each.group,
        "seed": each.seed,
        "l0_accuracy": plain[0],
        "l0_balanced": balanced[0],
        "rows": rows,
        "cpu_seconds": time.process_time() - started,
        "versions": versions(),
    }


def setting_figures(setting: PaperSetting, each: GroupRun, federation: ServerNoise | PartyNoise) -> dict[str, Any]:
    """One setting: accuracy, the price, and what the paper prints."""
    algorithm, rows = query_rows(parts_of(each.group)[1], setting.noise, setting.queries, federation)
    price = algorithm.price(
        public_rows=len(federation.data.X_public),
        classes=2,
        parties=len(federation.parties),
        delta=DELTA,
    )
    assert price is not None
    plain, balanced = accuracy_by_draw(federation, setting.noise, rows, None, each.seed, draws=1)
    formula = price.accountants["paper"]
    return {
        "mechanism": setting.noise.name,
        "scale": dict(setting.noise.scale),
        "queries": setting.queries,
        "accuracy": plain,
        "balanced_accuracy": balanced,
        "epsilon": price.epsilon,
        "accountant": price.accountant,
        "epsilon_paper_formula": formula if math.isfinite(formula) else None,
        "epsilon_data_dependent": federation.diagnostic(setting.noise, rows),
        "paper_epsilon": setting.paper_epsilon,
        "paper_accuracy": setting.paper_accuracy,
        "paper_kind": setting.paper_kind,
    }


LEVELS = Study(
    "private",
    "FedKT-L1 and FedKT-L2: accuracy and ε",
    "its appendix on differential privacy, and the privacy table",
    "private-levels.jsonl",
    run_levels,
)
