"""Membership: what an attacker learns of a record from what leaves, by expert voting and by moments.

    python paper/moments_attack.py model --seeds 300-300      # the final model, LiRA with 16 shadow models
    python paper/moments_attack.py message --seeds 300-302    # a party's message
    python paper/moments_attack.py audit --seeds 300-300      # the noise alone, at its worst pair of records

*model*: the attacker has the final model, candidates with their labels, and data like the parties'. Of 4,000 rows of
Adult every federation holds a random half, dealt to ten parties; each of 16 federations is attacked in turn and the
others are its shadow models (Carlini et al.: Membership Inference Attacks From First Principles, 2022, with one
variance for all rows). Candidates are all 4,000 rows.

*message*: the attacker has the message of a party of 100 or 1,000 rows and as many candidates inside it as outside. Of
exact sums he takes the leverage φᵀG⁻¹φ, which no row inside can have above 1; of a student how probable it finds the
candidate's label. Of noisy sums he even knows all other rows of the party, and asks which of two rows is the last one:
the likelihood ratio of the two, the best test there is.

*audit*: the same test at the pair of records that differ most, 20,000 times each, beside what (ε, δ) allows:
TPR ≤ e^ε · FPR + δ; and the ε that the errors prove (Clopper and Pearson, 95 %).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any

# `python paper/moments_attack.py` finds what lies beside it, but not the package itself.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from scipy.stats import beta as beta_distribution
from sklearn.metrics import roc_auc_score, roc_curve

from fedkt.algorithms.class_sums import packed, sums_of, unpacked
from fedkt.algorithms.moments import MAP_SEED, noise_for_epsilon
from fedkt.data import Dataset, load
from fedkt.errors import ModelError
from fedkt.federation import seed_for, simulate
from fedkt.lab.runner import assemble, draw_parties, make_algorithm, make_server
from fedkt.lab.setting import Setting
from fedkt.models.features.tables import table_map
from fedkt.models.prediction import probabilities_of_all
from fedkt.privacy.sums import GaussianSums
from paper.final_quality import seed_range
from paper.kept import Key, make_missing
from paper.moments_study import EXPERT, MOMENTS, VOTES

RESULTS = Path(__file__).parent / "results" / "moments-attack.jsonl"
DATASET, DELTA = "adult", 1e-5
CANDIDATES, SHADOWS, PARTIES = 4_000, 16, 10
FALSE_POSITIVES = 0.01
MODELS: tuple[tuple[str, float | None], ...] = (
    *((MOMENTS, None), ("centralised", None), (EXPERT, None)),
    *((MOMENTS, 4.0), (MOMENTS, 1.0), (EXPERT, 4.0)),
)
"""Whose final models are attacked, and the ε of level L2."""
SIZES = (100, 1_000)
EPSILONS = (1.0, 4.0)
DRAWS = 20_000


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", choices=list(ATTACKS))
    parser.add_argument("--seeds", type=seed_range, required=True, metavar="A-B")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--data-dir", type=Path, default=None)
    options = parser.parse_args()
    keys, attack = ATTACKS[options.attack]
    wanted = ({"attack": options.attack, **each, "seed": seed} for seed, each in product(options.seeds, keys()))

    def run(key: Key) -> dict[str, Any]:
        return attack(load(DATASET, seed=key["seed"], data_dir=options.data_dir), key)

    make_missing(options.results, wanted, run)


def figures(inside: Any, outside: Any) -> dict[str, float]:
    """How well scores tell members from others: the area under the curve, and the hits at 1 % false alarms."""
    truth = np.repeat([1, 0], [len(inside), len(outside)])
    scores = np.concatenate([inside, outside])
    false, true, _ = roc_curve(truth, scores, drop_intermediate=False)
    hits = float(true[false <= FALSE_POSITIVES].max())
    return {"auc": float(roc_auc_score(truth, scores)), "tpr": hits, "candidates": len(scores)}


# The final model.


def attack_model(data: Dataset, key: Key) -> dict[str, Any]:
    """LiRA against the final model of every federation, the others being its shadow models."""
    rng = np.random.default_rng([key["seed"], 1])
    rows = rng.permutation(len(data.y))[:CANDIDATES]
    pool = replace(data, X=data.X[rows], y=data.y[rows], groups=None)
    inside = np.array([rng.permutation(CANDIDATES) < CANDIDATES // 2 for _ in range(SHADOWS)])
    logits = np.array([confidence(pool, member, key, shadow) for shadow, member in enumerate(inside)])
    return {**lira(logits, inside), "bound": None if key["epsilon"] is None else bound(key["epsilon"])}


def confidence(pool: Dataset, member: Any, key: Key, shadow: int) -> Any:
    """The logit of the probability that a federation of these members gives to the label of every candidate."""
    data = replace(pool, X=pool.X[member], y=pool.y[member])
    private = {"level": "L2", "epsilon": key["epsilon"]} if key["epsilon"] is not None else {}
    if private and key["algorithm"] == EXPERT:
        private |= VOTES
    seed = seed_for(key["seed"], f"federation {shadow}") % 2**31
    setting = Setting(
        DATASET, key["algorithm"], parties=PARTIES, partition="even", seed=seed, soft_final=True, **private
    ).with_defaults()
    parties = assemble(setting, data, draw_parties(setting, data))
    outcome = simulate(make_algorithm(setting, data, PARTIES), parties, make_server(setting, data, diagnostic=False))
    right = np.clip(of_labels(outcome.final.models, pool.X, pool.y, pool), 1e-6, 1 - 1e-6)
    return np.log(right / (1 - right))


def of_labels(models: Sequence[Any], X: Any, y: Any, data: Dataset) -> Any:
    """How probable the one model finds the label of each row."""
    (found,) = probabilities_of_all(models, X, len(data.classes))
    if isinstance(found, str):
        raise ModelError(found)
    return found[np.arange(len(y)), y]


def lira(logits: Any, inside: Any) -> dict[str, float]:
    """AUC and hits over all targets; each row's means inside and outside are those of the other federations."""
    scores = []
    for target in range(len(logits)):
        others = np.arange(len(logits)) != target
        member, known = inside[others], logits[others]
        means = [np.where(of, known, 0).sum(axis=0) / np.maximum(of.sum(axis=0), 1) for of in (member, ~member)]
        spread = np.where(member, known - means[0], known - means[1]).var() + 1e-12
        scores.append(((logits[target] - means[1]) ** 2 - (logits[target] - means[0]) ** 2) / (2 * spread))
    return figures(np.array(scores)[inside], np.array(scores)[~inside])


# A party's message.


def attack_message(data: Dataset, key: Key) -> dict[str, Any]:
    """What one party's message tells of candidates inside and outside of its rows."""
    size = key["rows"]
    order = np.random.default_rng([key["seed"], 2]).permutation(len(data.y))
    own, others = order[:size], order[size : 2 * size]
    if key["epsilon"] is not None:
        return attack_noisy_sums(data, own, others, key)
    score = by_leverage if key["algorithm"] == MOMENTS else by_student
    return figures(*score(data, own, others, key["seed"]))


def by_leverage(data: Dataset, own: Any, others: Any, seed: int) -> tuple[Any, Any]:
    """Minus the leverage of candidates in the party's exact sums, as they travel."""
    features = table_map(data.X_public, seed=MAP_SEED)
    sums = sums_of(features, data.X[own], data.y[own], len(data.classes), gram=True)
    received = unpacked(packed(sums), features, len(data.classes)).gram
    assert received is not None
    inverse = np.linalg.inv(received + 1e-3 * np.eye(len(received)))

    def leverage(rows: Any) -> Any:
        found = features(data.X[rows])
        return -((found @ inverse) * found).sum(axis=1)

    return leverage(own), leverage(others)


def by_student(data: Dataset, own: Any, others: Any, seed: int) -> tuple[Any, Any]:
    """How probable the party's student finds the label of a candidate."""
    setting = Setting(DATASET, EXPERT, parties=1, partition="even", seed=seed, soft_final=True).with_defaults()
    party_data = replace(data, X=data.X[own], y=data.y[own], groups=None)
    (party,) = assemble(setting, party_data, draw_parties(setting, party_data))
    bundle = make_algorithm(setting, party_data, 1).party_step(party, None)
    both = np.concatenate([own, others])
    right = of_labels(bundle.models, data.X[both], data.y[both], data)
    return right[: len(own)], right[len(own) :]


def attack_noisy_sums(data: Dataset, own: Any, others: Any, key: Key) -> dict[str, Any]:
    """The likelihood ratio between a party's row and another in its place, all its other rows being known."""
    noise = noise_of(key["epsilon"])
    features = table_map(data.X_public, seed=MAP_SEED, private=True)
    (own_rows, own_labels), (other_rows, other_labels) = (
        (features(data.X[rows]), np.eye(len(data.classes))[data.y[rows]]) for rows in (own, others)
    )
    moments = own_rows.T @ own_labels
    gaps = other_rows[:, :, None] * other_labels[:, None, :] - own_rows[:, :, None] * own_labels[:, None, :]
    rng = np.random.default_rng([key["seed"], 3])
    inside = [ratio(noise, moments, moments, gap, rng) for gap in gaps]
    outside = [ratio(noise, moments + gap, moments, gap, rng) for gap in gaps]
    return {**figures(np.array(inside), np.array(outside)), "bound": bound(key["epsilon"])}


def noise_of(epsilon: float) -> GaussianSums:
    """The noise that keeps ε."""
    noise = noise_for_epsilon(epsilon=epsilon, delta=DELTA, classes=2)
    assert isinstance(noise, GaussianSums)
    return noise


def ratio(noise: GaussianSums, truth: Any, without: Any, gap: Any, rng: np.random.Generator) -> float:
    """How much likelier a noisy release of `truth` is of `without` than of `without + gap`, up to a constant."""
    released = noise.sums(truth, rng) * noise.step
    return float((gap**2).sum() / 2 - ((released - without) * gap).sum()) / noise.sigma**2


# The noise.


def audit_noise(data: Dataset, key: Key) -> dict[str, Any]:
    """The best test at the worst pair of records: φ = (1, u) and (1, −u) of one class, ‖u‖ = 1."""
    noise, rng = noise_of(key["epsilon"]), np.random.default_rng([key["seed"], 4])
    first, second = np.array([[1.0], [1.0]]), np.array([[1.0], [-1.0]])
    inside, outside = (
        np.array([ratio(noise, truth, first, second - first, rng) for _ in range(DRAWS)]) for truth in (first, second)
    )
    return {**figures(inside, outside), "bound": bound(key["epsilon"]), "proven": proven_epsilon(inside, outside)}


def bound(epsilon: float) -> float:
    """The largest TPR at the false alarms that are allowed, by (ε, δ)."""
    return min(exp(epsilon) * FALSE_POSITIVES + DELTA, 1 - exp(-epsilon) * (1 - DELTA - FALSE_POSITIVES))


def proven_epsilon(inside: Any, outside: Any) -> float:
    """The ε that errors on half of the draws prove with 95 %, at the threshold that the other half finds best."""
    half = len(inside) // 2

    def found(hits: int, alarms: int) -> float:
        most = beta_distribution.ppf(0.975, alarms + 1, half - alarms)
        least = beta_distribution.ppf(0.025, hits, half - hits + 1) if hits else 0.0
        return log((least - DELTA) / most) if least > DELTA else 0.0

    def at(threshold: float, of: slice) -> float:
        return found(int((inside[of] > threshold).sum()), int((outside[of] > threshold).sum()))

    tried = np.quantile(outside[:half], np.linspace(0.5, 1, 50))
    best = max(tried, key=lambda threshold: at(threshold, slice(half)))
    return max(0.0, at(float(best), slice(half, 2 * half)))


def model_keys() -> Iterator[Key]:
    """Whose final models are attacked."""
    return ({"algorithm": name, "epsilon": epsilon} for name, epsilon in MODELS)


def message_keys() -> Iterator[Key]:
    """Which messages are attacked."""
    kinds: Sequence[tuple[str, float | None]] = (
        (MOMENTS, None),
        (EXPERT, None),
        *((MOMENTS, each) for each in EPSILONS),
    )
    return ({"algorithm": name, "epsilon": epsilon, "rows": size} for size in SIZES for name, epsilon in kinds)


def audit_keys() -> Iterator[Key]:
    """At which ε the noise is audited."""
    return ({"epsilon": epsilon} for epsilon in EPSILONS)


ATTACKS: dict[str, tuple[Callable[[], Iterator[Key]], Callable[[Dataset, Key], dict[str, Any]]]] = {
    "model": (model_keys, attack_model),
    "message": (message_keys, attack_message),
    "audit": (audit_keys, audit_noise),
}


if __name__ == "__main__":
    main()
