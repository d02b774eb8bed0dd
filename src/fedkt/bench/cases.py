"""What can be measured by name: a dataset, and how the server weighs its parties."""

from __future__ import annotations

from dataclasses import dataclass

from fedkt.errors import ConfigurationError

TABLES, IMAGES = ("adult", "cod-rna"), ("digits", "mnist", "svhn")
STUDENTS, SUMS = ("consistent", "expert", "expert-no-counts"), "moments"
GROWTH = "growth"


@dataclass(frozen=True)
class Case:
    """One dataset and one voting, otherwise as `fedkt simulate DATASET --voting VOTING` has it."""

    dataset: str
    voting: str

    @property
    def name(self) -> str:
        """What commands and results call it."""
        return f"{self.dataset}-{self.voting}"

    @property
    def ways(self) -> tuple[str, ...]:
        """Who plays it, in turn: bagging of boosted trees is for two classes in a table."""
        return ("fedkt", "plain", "bagging") if self.dataset in TABLES else ("fedkt", "plain")


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        *(Case(dataset, voting) for dataset in TABLES for voting in (*STUDENTS, SUMS)),
        # Features of images are no few lines that a user would write.
        *(Case(dataset, voting) for dataset in IMAGES for voting in STUDENTS),
    )
}


def cases_of(names: list[str]) -> list[Case]:
    """The cases behind these names, each once; the name of a dataset stands for all of its own."""
    found: dict[str, Case] = {}
    for name in names:
        own = {each: case for each, case in CASES.items() if name in (each, case.dataset)}
        if not own:
            datasets = ", ".join((*TABLES, *IMAGES))
            raise ConfigurationError(
                f"There is no benchmark {name!r}. Choose a dataset ({datasets}), one of its votings "
                f"({', '.join(CASES)}), or {GROWTH}."
            )
        found |= own
    return list(found.values())
