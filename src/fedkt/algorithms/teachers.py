"""What a teacher must not do, at level L2 above all, found out before a party's rows are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedkt.errors import ConfigurationError, DataError, ModelError
from fedkt.federation import Party
from fedkt.models.base import count_rows, fit_model, take_rows
from fedkt.models.catalogue import Roles
from fedkt.models.class_weights import check_class_weights
from fedkt.models.ensemble import is_neural
from fedkt.models.reading import last_step
from fedkt.models.row_weights import no_row_weights, takes_row_weights
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


def check_weights(party: Party, own: Roles, *, noise: bool) -> None:
    """Refuse weights of classes that do not fit the agreed ones, and of rows to a teacher that takes none."""
    for role in (own.teacher, own.student):
        check_class_weights(role, len(party.classes))
    if party.weights is None:
        return
    if not takes_row_weights(own.teacher):
        raise ConfigurationError(f"Party {party.name!r}, its teacher: {no_row_weights(last_step(own.teacher))}")
    # With noise a party of no weight votes by a fixed rule, as one without rows would.
    if not noise and len(party.counted_rows) == 0:
        raise DataError(f"Party {party.name!r}: all its rows have the weight 0. Leave it out of this run.")


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
        weights = None if party.weights is None else np.ones(count)
        fit_model(teacher, rows, labels, rng=np.random.default_rng(0), weights=weights).predict(party.public)
    except Exception as reason:
        raise ModelError(
            f"{type(teacher).__name__} cannot teach at level L2: it cannot even be trained on public rows with made-up "
            f"labels. {reason} Choose another family, or other settings."
        ) from reason
