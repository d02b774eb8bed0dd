"""Where experiments are read and their results kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workplace:
    """A folder with experiments, the paper's numbers and results."""

    folder: Path
    quick: bool = False
    """Whether this is a rehearsal: one seed, reduced work."""
    data_dir: Path | None = None
    """Where data files are looked for first."""

    @property
    def results(self) -> Path:
        """Where runs are kept; rehearsals are kept apart from results."""
        return self.folder / "results" / "quick" if self.quick else self.folder / "results"
