"""The memory that a party's run takes at least, told by shapes alone, held against what the machine has.

What is known beforehand is a lower bound: a run that needs more than there is at all is refused before it has cost an
hour, and none that could have gone through is. A machine that is merely full is only spoken of.
"""

from __future__ import annotations

from collections.abc import Callable

from fedkt.algorithms import FedKT
from fedkt.errors import DataError
from fedkt.federation import Diary
from fedkt.models.catalogue import family_of
from fedkt.plan import Plan
from fedkt.system.memory import free_memory, in_gigabytes, total_memory
from fedkt.system.parallel import effective_jobs

VALUE_BYTES = 4
"""Of an encoded value."""
HELP = (
    "Agree on more subsets (t), fewer partitions (s), another family or moments; give fewer rows or fewer --jobs; or "
    "take a machine with more memory."
)


def least_memory(plan: Plan, name: str, n_rows: int, *, jobs: int = 1) -> int:
    """Bytes that a party's run on so many rows takes in any case.

    Its rows are there as long as anything is learned from them; at level L2 once more for each partition, inside the
    bounds of the public rows. Of a subset that is learned from there is a copy, and what its family's record says.
    """
    width = plan.columns.n_features
    rows = VALUE_BYTES * n_rows * width
    algorithm = plan.algorithm()
    if not isinstance(algorithm, FedKT):
        return rows
    teacher = algorithm.voting.roles_for(algorithm, plan.own_model(name)).teacher
    subset = -(-n_rows // plan.subsets) * width
    at_once = min(effective_jobs(jobs), plan.partitions * plan.subsets)
    within = plan.partitions * rows if plan.level == "L2" else 0
    return rows + within + at_once * subset * (VALUE_BYTES + family_of(teacher).training_bytes)


def check_memory(
    plan: Plan,
    name: str,
    source: str,
    n_rows: int,
    *,
    jobs: int = 1,
    diary: Diary,
    warn: Callable[[str], None] | None = None,
) -> None:
    """Refuse a run that needs more memory than the machine has at all; warn of one that needs more than is free.

    At level L2 it is only warned: whether a bundle comes must not hang on how many records there are.
    """
    need, total, free = least_memory(plan, name, n_rows, jobs=jobs), total_memory(), free_memory()
    words = (
        f"{source}: to learn from {n_rows:,} rows of {plan.columns.n_features:,} features takes at least "
        f"{in_gigabytes(need)} of memory"
    )
    if total is not None and need > total and plan.level != "L2":
        raise DataError(f"{words}, and this machine has {in_gigabytes(total)}. Nothing was trained. {HELP}")
    if free is not None and need > free:
        note = f"{words}, and {in_gigabytes(free)} are free: it may be slow, or the system may end it. {HELP}"
        diary.say(f"Attention: {note}")
        if warn is not None:
            warn(note)
