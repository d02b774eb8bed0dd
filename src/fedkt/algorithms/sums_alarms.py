"""What must be said of a head that was solved from sums, before anybody uses it: classes it cannot name."""

from __future__ import annotations

import math

import numpy as np

from fedkt.algorithms.received_sums import Received
from fedkt.federation import Server
from fedkt.votes import Labels

MOST_NAMES = 10


def alarm_of_lost_classes(server: Server, received: Received, smallest_class: int) -> None:
    """Alarm of agreed classes that the final model can never name, because no sums tell of them."""
    lost = np.setdiff1d(np.arange(len(server.classes)), received.classes_present())
    if not len(lost):
        return
    names = ", ".join(repr(server.classes[label]) for label in lost[:MOST_NAMES])
    names += f" and {len(lost) - MOST_NAMES} more" if len(lost) > MOST_NAMES else ""
    if received.noise:
        seen = math.ceil(received.least_seen)
        why = f"the noise hides a class of fewer than about {seen:,} rows at all parties together"
        more = "More rows or a larger epsilon help"
    else:
        why = f"no party has the {smallest_class} rows that an exact sum takes"
        more = "Expert voting hears of few rows"
    them = "it" if len(lost) == 1 else "them"
    server.diary.alarm(f"The final model can never name {names}, and finds {them} impossible: {why}. {more}.")


def alarm_of_one_class(server: Server, labels: Labels, *, noisy: bool) -> bool:
    """Alarm of a final model that tells no classes apart; whether there was one."""
    found = np.unique(labels)
    if len(found) > 1:
        return False
    why = "the noise hides what the sums know" if noisy else "the sums tell classes hardly apart"
    more = "More rows, or a larger epsilon," if noisy else "Expert voting"
    server.diary.alarm(f"It names {str(server.classes[found[0]])!r} for every public row: {why}. {more} may help.")
    return True
