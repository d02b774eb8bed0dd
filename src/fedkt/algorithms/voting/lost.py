"""Classes that no labelled public row has: what the final model cannot know, whatever the voting and the level."""

from __future__ import annotations

import numpy as np

from fedkt.federation import Server
from fedkt.votes import NO_VOTE, Labels

MOST_NAMES = 5
"""Classes that a note names."""


def note_absent_classes(server: Server, labels: Labels) -> None:
    """Say which classes of the task are the label of no public row.

    It looks at the labels alone, which at level L1 have passed the noise, so that saying it costs nothing.
    """
    answered = labels[labels != NO_VOTE]
    rows = np.bincount(answered, minlength=len(server.classes))
    absent = [repr(name) for name, count in zip(server.classes, rows, strict=True) if not count]
    if not absent or not len(answered):
        return
    more = f" and {len(absent) - MOST_NAMES} more" if len(absent) > MOST_NAMES else ""
    one = len(absent) == 1
    names = f"{'class' if one else f'{len(absent)} classes:'} {', '.join(absent[:MOST_NAMES])}{more}"
    server.diary.say(
        f"Not one of the {len(answered)} labelled public rows is of {names}. The final model may never name "
        f"{'it' if one else 'them'}: look at the figures class by class before it is used. More public rows, or "
        "another voting, may help."
    )
