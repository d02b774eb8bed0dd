"""What a look at something has found, line by line: all of it, and not only the first fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from fedkt.errors import FedKTError

Status = Literal["ok", "note", "problem"]
T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and that in words."""

    what: str
    status: Status
    text: str


@dataclass
class Findings:
    """All lines, and the figures in them."""

    lines: list[Finding] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, text: str, status: Status = "ok") -> None:
        """One line more."""
        self.lines.append(Finding(what, status, text))

    def attempt(self, what: str, work: Callable[[], T]) -> T | None:
        """What some work gives; where it is refused a problem is noted, and None is all there is."""
        try:
            return work()
        except FedKTError as reason:
            self.add(what, str(reason), "problem")
        except OSError as reason:
            self.add(what, f"{reason.strerror or reason}: {reason.filename}", "problem")
        return None

    @property
    def problems(self) -> list[Finding]:
        """What would stop a run."""
        return [each for each in self.lines if each.status == "problem"]
