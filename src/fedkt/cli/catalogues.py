"""What the catalogues hold, in the words of help texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def names_in_words(what: str, setting: str | None = None) -> str:
    """The text for a placeholder of a help text: `{models}`, or `{takers rounds}` for who takes a setting."""
    return LISTS[what]() if setting is None else algorithms_that_take(setting)


def either(names: Iterable[str]) -> str:
    """a, b or c."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def algorithm_names() -> str:
    """The algorithms."""
    from fedkt.algorithms import ALGORITHMS

    return either(ALGORITHMS)


def algorithms_that_take(setting: str) -> str:
    """The algorithms that look at a setting."""
    from fedkt.algorithms import ALGORITHMS

    return ", ".join(name for name, card in ALGORITHMS.items() if setting in card.takes)


def usual_algorithm(level: str) -> str:
    """What is simulated where nobody chose an algorithm: FedKT, with the voting that is usual at the level."""
    from fedkt.algorithms.voting import algorithm_name, make_voting, usual_voting

    return algorithm_name(make_voting(usual_voting(level)))


def usual_algorithms(level: str) -> str:
    """What is compared where nobody chose it: FedKT with both votings and its bounds, which have no private level."""
    from fedkt.algorithms import ALGORITHMS

    return ",".join(card.name for card in ALGORITHMS.values() if level in card.compared_at)


def by_level(usual: Callable[[str], str]) -> str:
    """What is usual at level L0, and at the private ones where it differs."""
    from fedkt.privacy.ledger import LEVELS

    words = {level: usual(level) for level in LEVELS}
    first, *others = words
    apart: dict[str, list[str]] = {}
    for level in others:
        if words[level] != words[first]:
            apart.setdefault(words[level], []).append(level)
    return "; ".join([words[first], *(f"at {' and '.join(levels)} {what}" for what, levels in apart.items())])


def voting_choices() -> str:
    """The votings, and what each does."""
    from fedkt.algorithms.voting import VOTINGS

    return ". ".join(f"{name}: {each.choice}" for name, each in VOTINGS.items())


def model_names() -> str:
    """The model families."""
    from fedkt.models.catalogue import MODELS

    return either(MODELS)


def partition_names() -> str:
    """The ways to deal rows to parties."""
    from fedkt.data.partition import PARTITIONERS

    return either(PARTITIONERS)


def dataset_names() -> str:
    """The datasets."""
    from fedkt.data import DATASETS

    return either(DATASETS)


def noise_names() -> str:
    """The noises."""
    from fedkt.privacy.mechanisms import NOISES

    return either(NOISES)


def noise_forms() -> str:
    """The noises as `--noise` takes them, with the names of their parameters."""
    from fedkt.privacy.mechanisms import NOISES, parameters

    return either(f"{name}:{','.join(parameters(name)).upper()}" for name in NOISES)


LISTS: dict[str, Callable[[], str]] = {
    "algorithms": algorithm_names,
    "algorithm": lambda: by_level(usual_algorithm),
    "compared": lambda: by_level(usual_algorithms),
    "datasets": dataset_names,
    "models": model_names,
    "noises": noise_names,
    "noise": noise_forms,
    "partitions": partition_names,
    "votings": voting_choices,
}
