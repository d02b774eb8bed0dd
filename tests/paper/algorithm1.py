"""Algorithm 1 of the paper (level L0), transcribed line by line and slowly: the oracle for the product.

Everything is a list or a dictionary; `train` gives a function from a row to a class; `uniform` gives the random number
that breaks a tie. Where the paper is silent the product's rule is written out: a row without a consistent vote is left
out of the final training, and where no row has one, every student's vote counts.
"""

from collections.abc import Callable, Sequence

Row = tuple[float, ...]
Classifier = Callable[[Row], int]
Train = Callable[[Sequence[Row], Sequence[int]], Classifier]


def arg_max(v: dict[int, int], u: float) -> int:
    """arg max_m v_m, ties broken by the uniform number u."""
    most = max(v.values())
    tied = [m for m in sorted(v) if v[m] == most]
    return tied[int(u * len(tied))]


def split(order: Sequence[int], t: int) -> list[list[int]]:
    """D_j cut into t nearly equal subsets, in the given order; a party with fewer than t rows has fewer subsets."""
    t = min(t, len(order))
    small, larger = divmod(len(order), t)
    subsets, start = [], 0
    for k in range(t):
        end = start + small + (1 if k < larger else 0)
        subsets.append(list(order[start:end]))
        start = end
    return subsets


def fedkt(
    *,
    datasets: Sequence[tuple[Sequence[Row], Sequence[int]]],
    s: int,
    t: int,
    u: int,
    d_aux: Sequence[Row],
    train_teacher: Train,
    train_student: Train,
    train_final: Train,
    order: Callable[[int, int], Sequence[int]],
    party_uniform: Callable[[int, int, int], float],
    server_uniform: Callable[[int], float],
) -> tuple[list[int | None], Classifier]:
    """The labels of the public rows (None: no vote) and the final model F."""
    students: dict[tuple[int, int], Classifier] = {}
    n = len(datasets)
    for i in range(n):
        rows, labels = datasets[i]
        for j in range(s):
            subsets = split(order(i, j), t)
            teachers = []
            for subset in subsets:
                subset = sorted(subset)
                teachers.append(train_teacher([rows[r] for r in subset], [labels[r] for r in subset]))
            f = []
            for q, x in enumerate(d_aux):
                v = {}
                for m in range(u):
                    v[m] = len([k for k in range(len(teachers)) if teachers[k](x) == m])
                f.append(arg_max(v, party_uniform(i, j, q)))
            students[i, j] = train_student(d_aux, f)

    given: list[int | None] = []
    for q, x in enumerate(d_aux):
        v = {m: 0 for m in range(u)}
        for i in range(n):
            v_i = {m: len([k for k in range(s) if students[i, k](x) == m]) for m in range(u)}
            for m in range(u):
                if v_i[m] == s:
                    v[m] += s
        given.append(arg_max(v, server_uniform(q)) if any(v.values()) else None)
    if all(label is None for label in given):
        for q, x in enumerate(d_aux):
            v = {m: len([1 for student in students.values() if student(x) == m]) for m in range(u)}
            given[q] = arg_max(v, server_uniform(q))
    kept = [(x, label) for x, label in zip(d_aux, given, strict=True) if label is not None]
    return given, train_final([x for x, _ in kept], [label for _, label in kept])
