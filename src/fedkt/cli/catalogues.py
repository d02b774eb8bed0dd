"""What the catalogues hold, in the words of help texts. Imported where help is asked for, and not before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from fedkt.algorithms import ALGORITHMS
from fedkt.algorithms.usual import usual_algorithm
from fedkt.bench.cases import CASES, GROWTH
from fedkt.data import DATASETS
from fedkt.data.partition import PARTITIONERS
from fedkt.models.catalogue import MODELS
from fedkt.plan.methods import method_choices
from fedkt.privacy.ledger import LEVELS
from fedkt.privacy.mechanisms import NOISES
from fedkt.system.plug_ins import names


def names_in_words(what: str, setting: str | None = None) -> str:
    """The text for a placeholder of a help text: `{models}`, or `{takers rounds}` for who takes a setting."""
    if setting is None:
        return LISTS[what]()
    return ", ".join(name for name, card in ALGORITHMS.items() if setting in card.takes)


def either(names: Iterable[str]) -> str:
    """a, b or c."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def usual_algorithms(level: str, chosen: Collection[str] = ()) -> str:
    """What is compared where nobody chose it: FedKT's ways and their bounds, which have no private level.

    Who chose the noise of votes compares votes.
    """
    cards = [card for card in ALGORITHMS.values() if level in card.compared_at]
    return ",".join(card.name for card in cards if "mechanism" not in chosen or card.noise_for_epsilon is None)


def by_level(usual: Callable[[str], str]) -> str:
    """What is usual at level L0, and at the private ones where it differs."""
    first, *private = LEVELS
    levels: dict[str, list[str]] = {}
    for level in private:
        levels.setdefault(usual(level), []).append(level)
    levels.pop(usual(first), None)
    return "; ".join([usual(first), *(f"at {' and '.join(each)} {what}" for what, each in levels.items())])


def noise_word(name: str) -> str:
    """How one of fedkt's own noises is written."""
    return f"{name}:{','.join(each.upper() for each in NOISES[name].parameters())}"


LISTS: dict[str, Callable[[], str]] = {
    "algorithms": lambda: either(names("fedkt.algorithms", ALGORITHMS)),
    "algorithm": lambda: by_level(usual_algorithm),
    "benchmarks": lambda: either((*CASES, GROWTH)),
    "compared": lambda: by_level(usual_algorithms),
    "datasets": lambda: either(names("fedkt.datasets", DATASETS)),
    "models": lambda: either(names("fedkt.models", MODELS)),
    "noises": lambda: either(names("fedkt.noises", NOISES)),
    "noise": lambda: either(names("fedkt.noises", map(noise_word, NOISES))),
    "partitions": lambda: either(PARTITIONERS),
    "votings": lambda: ". ".join(f"{name}: {choice}" for name, choice in method_choices().items()),
}
