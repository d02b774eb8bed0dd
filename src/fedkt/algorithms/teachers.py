"""What a teacher must not do at level L2, found out before a party's rows are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkt.errors import ConfigurationError, ModelError
from fedkt.federation import Party
from fedkt.models.base import count_rows, fit_model, take_rows
from fedkt.models.ensemble import is_neural
from fedkt.votes import stand_in_vote

TRIAL_ROWS, TRIAL_MOST = 20, 200
"""Public rows of each class, at least, and in all, if there are so many, on which a teacher of level L2 is tried."""


def refuse_early_stopping(teacher: Any) -> None:
    """At level L2 a party's rows must not decide how long a teacher is trained."""
    settings = teacher.get_params(deep=True)
    if any(value for name, value in settings.items() if name.rpartition("__")[2] == "early_stopping"):
        raise ConfigurationError(
            "At level L2 a teacher may not stop early: the rows that would say when are the party's own. Switch "
            "early_stopping off for the teacher; a student, which sees public rows only, may keep it."
        )


def try_on_public_rows(teacher: Any, party: Party) -> None:
    """Refuse a teacher that cannot be trained on public rows labelled with the classes in turn.

    At level L2 a teacher that fails on its own rows votes by a fixed rule and nobody hears of it; one that is set up
    wrongly would do so at every subset. Whether it is must not be asked of a party's rows.
    """
    n_classes, n_rows = len(party.classes), count_rows(party.public)
    if is_neural(teacher):
        # A network that can be built fails only by running away.
        teacher.set_params(classes=range(n_classes)).initialise(party.public)
        return
    count = max(TRIAL_ROWS * n_classes, min(n_rows, TRIAL_MOST))
    labels = stand_in_vote(0, count, n_classes)
    rows = take_rows(party.public, np.arange(count) % n_rows)
    try:
        fit_model(teacher, rows, labels, rng=np.random.default_rng(0)).predict(party.public)
    except Exception as reason:
        raise ModelError(
            f"{type(teacher).__name__} cannot teach at level L2: it cannot even be trained on public rows with made-up "
            f"labels. {reason} Choose another family, or other settings."
        ) from reason
