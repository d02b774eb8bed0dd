"""How often a noisy vote names the class that most voters named: known from a plan, before anything is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedkt.privacy import Price, Release

AGREEMENTS = (1.0, 0.75, 0.6)
"""The parts of the voters that agree, at which chances are told."""
MOST_CLASSES = 50
"""Beyond, the chance is that among so many classes: more of them only lower it."""


@dataclass(frozen=True)
class LabelChance:
    """What becomes of a row on which `agree` of the voters name one class and all others another."""

    agree: int
    voters: int
    right: float
    """The chance that a label that leaves is theirs."""
    answered: float = 1.0
    """The chance that one leaves at all."""
    exact: bool = True
    """Whether every class was reckoned with; else the chance is at most this."""


def label_chances(price: Price) -> tuple[LabelChance, ...]:
    """The chances at typical agreements, the largest first; none where nobody knows them for this noise."""
    voters = price.release.voters
    winners = sorted({round(part * voters) for part in AGREEMENTS}, reverse=True)
    found = [chance_at(price.release, agree) for agree in winners if 2 * agree > voters]
    return tuple(each for each in found if each is not None)


def chance_at(release: Release, agree: int) -> LabelChance | None:
    """The chance where `agree` voters name one class and the others one other; None where it is not known."""
    noise, voters, classes = release.noise, release.voters, release.classes
    counts = np.zeros(min(classes, MOST_CLASSES))
    counts[:2] = agree, voters - agree
    shares = noise.class_probabilities(counts)
    if shares is not None:
        answered = min(1.0, float(shares.sum()))
        right = float(shares[0]) / answered if answered > 0 else 0.0
        return LabelChance(agree, voters, min(1.0, right), answered, exact=classes == len(counts))
    if noise.has_win_probability:
        return LabelChance(agree, voters, float(noise.win_probability(2 * agree - voters)), exact=classes == 2)
    return None


def chances_in_words(price: Price) -> str:
    """The chances as a sentence, for whoever is asked to agree to the noise."""
    release, chances = price.release, label_chances(price)
    if not chances:
        return f"How often {release.noise.name} noise leaves the label of most voters standing is not known."
    whose = "parties" if release.unit == "party" else "teachers of a party"
    words = []
    for each in chances:
        who = f"all {each.voters} {whose} agree" if each.agree == each.voters else f"{each.agree} of them"
        words.append(f"{who} {whole_percent(each.right)}")
    most = "" if chances[0].exact else " at most"
    rest = "" if len(chances) == 1 else ", the others naming one other class"
    sentence = f"How often the noise leaves the label of most standing{most}{rest}: {', '.join(words)}."
    if release.noise.most_answers is not None:
        answered = ", ".join(whole_percent(each.answered) for each in chances)
        sentence += f" That is of rows that get a label, which do {answered} while answers are left."
    return sentence


def whole_percent(chance: float) -> str:
    """A chance as a percentage, never larger than it is: nearly certain is not 100 %."""
    return f"{math.floor(100 * chance + 1e-9)}%"
