"""Running models that someone else made: in a child process that can do little and not for long.

Before it looks at a model the child raises its walls (see `fedkt.system.walls`). On Linux all of them hold as far as
the kernel has them (`fedkt doctor` says so); macOS has the limits without the one on memory; where Python has no
`resource` module (Windows) only the wall clock and the separate process are left.

The models of one party share a process and its limits. Those of several parties never do, also where they are asked
about the same rows: then the rows are handed over once, and on Linux each party's process is forked from one that has
loaded what is needed and has opened nothing that a party sent (see `fedkt.models.forks`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fedkt.models.answer_rules import check_probabilities, contradiction
from fedkt.models.child_process import (
    ChildEnd,
    ChildReader,
    Process,
    child_process,
    hand_over,
    plain_text,
    send_request,
)
from fedkt.models.forks import ForkingProcesses, can_fork
from fedkt.models.onnx_rules import Limits
from fedkt.system.walls import memory_hidden

Answer = NDArray[np.int64] | str
"""The labels of one model, or why there are none."""
FullAnswer = tuple[NDArray[np.int64], NDArray[np.float32] | None] | str
"""The labels of one model and its probabilities, where it was asked for them; or why there are none."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the models of one party are asked about some rows, and what they may take."""

    models: Sequence[bytes] = field(repr=False)
    n_classes: int
    soft: Sequence[bool]
    """Of which models probabilities are wanted."""
    free_labels: Sequence[bool] | None = None
    """Whose label may be another class than the likeliest: a final model's can follow thresholds."""
    limits: Limits = field(default_factory=Limits)

    @property
    def request(self) -> dict[str, Any]:
        """What the process is told that answers it."""
        return {
            "sizes": [len(each) for each in self.models],
            "classes": [self.n_classes if each else 0 for each in self.soft],
            "memory": self.limits.memory_bytes,
            "cpu": self.limits.cpu_seconds,
            "budget": self.limits.party_cpu_seconds,
        }


def run_models(
    models: Sequence[bytes], rows: NDArray[np.float32], *, n_classes: int, limits: Limits | None = None
) -> list[Answer]:
    """What each model says about the rows, as indices 0 … n_classes − 1, or the reason why it says nothing.

    All models share one child. A model that crashes it, or makes it run out of time, takes along those not yet run.
    """
    answers = ask_models(models, rows, n_classes=n_classes, soft=[False] * len(models), limits=limits)
    return [each if isinstance(each, str) else each[0] for each in answers]


def ask_models(
    models: Sequence[bytes],
    rows: NDArray[np.float32],
    *,
    n_classes: int,
    soft: Sequence[bool],
    free_labels: Sequence[bool] | None = None,
    limits: Limits | None = None,
) -> list[FullAnswer]:
    """The labels of each model, and the probabilities of those that are `soft`; all in one child.

    A model that says something else with the one than with the other says nothing, but for those that may.
    """
    question = Question(
        models=models, n_classes=n_classes, soft=soft, free_labels=free_labels, limits=limits or Limits()
    )
    with Sandbox(rows, fork=False) as sandbox:
        return sandbox.ask(question)


class Sandbox(AbstractContextManager["Sandbox"]):
    """Rows about which the models of many parties are asked; several threads may do so at once.

    No party's models can do anything to those of another: each party has a process, its walls and limits for itself.
    """

    def __init__(self, rows: Any, *, fork: bool = True) -> None:
        self._given = rows
        self._fork = fork and can_fork()
        self._forking: ForkingProcesses | None = None
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            table = np.ascontiguousarray(self._given, dtype="<f4")
            self._shape = table.shape
            self._rows = opened.enter_context(hand_over([table.data]))
            if self._fork and isinstance(self._rows, int):
                self._forking = ForkingProcesses(self._setting)
                opened.callback(self._forking.close)
            self._resources = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    @property
    def _setting(self) -> dict[str, Any]:
        return {"parent": os.getpid(), "rows": self._rows, "shape": list(self._shape)}

    def ask(self, question: Question) -> list[FullAnswer]:
        """What each model of one party answers, or why it answers nothing."""
        answers: list[FullAnswer] = []
        if not question.models:
            return answers
        try:
            with (
                hand_over(question.models) as models,
                self._process(question, models) as process,
                closing(ChildReader(process, question.limits)) as reader,
            ):
                for answer in self._read_answers(reader, question):
                    free = question.free_labels is not None and question.free_labels[len(answers)]
                    answers.append(answer if free else _one_answer(answer))
        except ChildEnd as end:
            first = f"the model was stopped: {end}"
            answers += [
                first if place == len(answers) else "not run: a model before it was stopped"
                for place in range(len(answers), len(question.models))
            ]
        return answers

    @contextmanager
    def _process(self, question: Question, models: int | str) -> Iterator[Process]:
        """A process that has been asked, and has not been let near a model unless its walls stand."""
        if self._forking is not None and isinstance(models, int):
            with self._forking.fork(question.request, models) as fork:
                yield fork
            return
        descriptors = [each for each in (self._rows, models) if isinstance(each, int)]
        with memory_hidden(), child_process(descriptors) as child:
            send_request(child, {**self._setting, **question.request, "models": models})
            yield child

    def _read_answers(self, reader: ChildReader, question: Question) -> Iterator[FullAnswer]:
        """One answer after the other."""
        reader.line()
        for soft in question.soft:
            reader.allow(question.limits.wall_seconds)
            yield _read_answer(reader, self._shape[0], question.n_classes, soft=soft)


def _read_answer(reader: ChildReader, n_rows: int, n_classes: int, *, soft: bool) -> FullAnswer:
    """What one model says, block by block; every byte is taken for hostile."""
    labels = np.empty(n_rows, np.int64)
    probabilities = np.empty((n_rows, n_classes), np.float32) if soft else None
    done, fault = 0, ""
    while True:
        head = reader.line()
        if "reason" in head:
            return fault or plain_text(head["reason"])
        size = head.get("rows")
        if not isinstance(size, int) or not (0 < size <= n_rows - done or size == n_rows - done == 0):
            raise ChildEnd("the child answered about other rows.")
        if size == 0:
            return fault or (labels, probabilities)
        block = slice(done, done + size)
        labels[block] = np.frombuffer(reader.take(size * 8), dtype="<i8")
        fault = fault or _wrong_label(labels[block], done, n_classes)
        if probabilities is not None:
            raw = np.frombuffer(reader.take(size * n_classes * 4), dtype="<f4").reshape(-1, n_classes)
            checked = check_probabilities(raw, first=done)
            if isinstance(checked, str):
                fault = fault or checked
            else:
                probabilities[block] = checked
        done += size


def _wrong_label(labels: NDArray[np.int64], first: int, n_classes: int) -> str:
    """What is wrong with labels outside the classes; empty if there are none."""
    outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if not len(outside):
        return ""
    row = int(outside[0])
    return f"it gives the label {labels[row]} to row {first + row}; only 0 … {n_classes - 1} are classes."


def _one_answer(answer: FullAnswer) -> FullAnswer:
    """The answer of a model whose label is its likeliest class; else what is wrong with it."""
    if isinstance(answer, str) or answer[1] is None:
        return answer
    return contradiction(answer[0], answer[1]) or answer
