"""Attack whole steps of a private federation: what a party sends at L2, and what the server makes at L1.

    python benchmarks/audit_steps.py [--runs 5000] [--mechanism gaussian] [--epsilon 1] [--json FILE]
    python benchmarks/audit_steps.py --readme     write the table of README.md from results/audit-steps.json

`fedkt privacy audit` attacks a noisy vote. Here the rest is in it too: cutting rows, teachers, the ledger's door, the
key stream, the student or the final model that an attacker gets to see. Two inputs that differ in one record (L2) or in
one party (L1) lie on either side of the decision on every row that is asked: 3 voters to 2, and 2 to 3. Each step is
run over and over on both; the attacker asks the model about the asked rows and counts. What that proves about ε, with
95 % confidence, must stay below the claim; and above it where votes weigh more than the noise was made for.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fedkt.algorithms import FedKT
from fedkt.algorithms.lesson import cut_by_identity, cut_key
from fedkt.bundle import Bundle
from fedkt.federation import Party, Server
from fedkt.privacy import Noise
from fedkt.privacy.audit import lower_bound
from fedkt.privacy.calibrate import smallest_noise
from fedkt.system.threads import one_thread

CLASSES = ("no", "yes")
QUERIES, VOTERS, DELTA, SEED = 8, 5, 1e-5, 0
HERE = Path(__file__).resolve().parent
PUBLIC = np.arange(float(QUERIES))[:, None]
WEIGHT = 4
"""How often the broken steps count a vote, with noise for votes that are counted once."""
Step = Callable[[Noise, int], float]
"""One step with so many of the voters for the second class: what the attacker counts."""


def heavy(noise: Noise) -> Noise:
    """The same noise, and the same price, on votes that weigh too much."""

    class Heavy(type(noise)):
        def labels(self, votes, rng):
            return super().labels(WEIGHT * np.asarray(votes), rng)

    return Heavy(*noise.scale.values())


@dataclass(frozen=True)
class Found:
    """What an attack on a step has proved."""

    step: str
    noise: str
    broken: bool
    claim: float
    empirical: float
    runs: int
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether an honest step stays below its claim and a broken one is caught."""
        return (self.empirical > self.claim) == self.broken


def one_in_each() -> list[str]:
    """Identities of as many records as there are subsets, each of which falls into another one."""
    names = [f"record {number}" for number in range(1_000)]
    return [names[piece[0]] for piece in cut_by_identity(names, VOTERS, cut_key(SEED, 0))]


def party_step(noise: Noise, second: int) -> float:
    """A party whose every row is a subset, so that a record is a teacher; relabelling one moves its vote."""
    labels = np.array([1] * second + [0] * (VOTERS - second))
    rows = np.arange(float(VOTERS))[:, None]
    party = Party(PUBLIC, CLASSES, SEED, name="north", X=rows, y=labels, ids=IDENTITIES)
    sent = FedKT("tree", level="L2", noise=noise, subsets=VOTERS, queries=QUERIES).party_step(party, None)
    return float(sent.models[0].predict(PUBLIC).sum())


def students() -> list[Bundle]:
    """The bundle of a party that knows one class, for each class."""
    silent = FedKT("tree", partitions=1, subsets=1)
    rows = np.zeros((1, 1))
    return [
        silent.party_step(Party(PUBLIC, CLASSES, 0, name="north", X=rows, y=np.array([label])), None)
        for label in (0, 1)
    ]


def server_step(student_bundles: list[Bundle]) -> Step:
    """The server with such parties; replacing one moves its vote."""

    def step(noise: Noise, second: int) -> float:
        labels = [1] * second + [0] * (VOTERS - second)
        bundles = [
            Bundle(f"party {place}", CLASSES, student_bundles[label].models) for place, label in enumerate(labels)
        ]
        server = Server(PUBLIC, CLASSES, 0)
        final = FedKT("tree", level="L1", noise=noise, queries=QUERIES).server_step(server, bundles)
        return float(final.models[0].predict(PUBLIC).sum())

    return step


def attack(name: str, step: Step, noise: Noise, claim: float, runs: int, *, broken: bool) -> Found:
    """Run a step so often on each of two neighbouring inputs, and tell them apart by what comes out."""
    started = time.perf_counter()
    worlds = [np.array([step(noise, second) for _ in range(runs)]) for second in (VOTERS // 2 + 1, VOTERS // 2)]
    empirical, _, _ = lower_bound(worlds[0], worlds[1], DELTA)
    return Found(name, noise.name, broken, claim, empirical, runs, time.perf_counter() - started)


def main(words: list[str] | None = None) -> int:
    """Print what each attack has proved; 1 if an honest step is broken or a broken one is not caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5000, help="runs of a step on each of two inputs")
    parser.add_argument("--mechanism", default="gaussian", choices=["gaussian", "laplace", "gumbel"])
    parser.add_argument("--epsilon", type=float, default=1.0, help="the claim that the noise is calibrated to")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--readme", action="store_true", help="write README.md's table from the kept result")
    options = parser.parse_args(words)
    if options.readme:
        stored = json.loads((HERE / "results" / "audit-steps.json").read_text(encoding="utf-8"))
        write_readme([Found(**each) for each in stored["found"]])
        return 0
    student_bundles = students()
    results = []
    for name, step, abstentions in (
        ("party (L2)", party_step, False),
        ("server (L1)", server_step(student_bundles), True),
    ):
        noise = smallest_noise(
            options.mechanism,
            epsilon=options.epsilon,
            delta=DELTA,
            queries=QUERIES,
            voters=VOTERS,
            classes=2,
            unit="party" if abstentions else "record",
            abstentions=abstentions,
        )
        # A block around all of them: looking for the libraries to limit takes longer than a step.
        with one_thread():
            for broken in (False, True):
                noise_used = heavy(noise) if broken else noise
                results.append(attack(name, step, noise_used, options.epsilon, options.runs, broken=broken))
                print(in_words(results[-1]), file=sys.stderr)
    print(table(results))
    if options.json is not None:
        figures = {"delta": DELTA, "queries": QUERIES, "voters": VOTERS, "found": [asdict(each) for each in results]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return int(not all(each.as_expected for each in results))


def table(results: Sequence[Found]) -> str:
    """The attacks in Markdown."""
    lines = ["| step | noise | claim | found at least | runs of each input |", "|---|---|---|---|---|"]
    for each in results:
        noise = f"{each.noise}, every vote counted {WEIGHT} times" if each.broken else each.noise
        lines.append(f"| {each.step} | {noise} | {each.claim:g} | {each.empirical:.3f} | {each.runs:,} |")
    return "\n".join(lines)


def write_readme(results: Sequence[Found]) -> None:
    """Put the kept result where README.md shows it."""
    # `python benchmarks/audit_steps.py` finds what lies beside it, but not the package of the clone.
    sys.path.insert(0, str(HERE.parent))
    from paper.markdown import replace_between

    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(replace_between(text, "audit-steps", table(results)), encoding="utf-8")


def in_words(result: Found) -> str:
    """One attack in a line."""
    verdict = "as it should be" if result.as_expected else "NOT AS IT SHOULD BE"
    kind = "broken" if result.broken else "honest"
    return f"{result.step}, {kind} {result.noise}: at least {result.empirical:.3f}, claimed {result.claim:g}: {verdict}"


IDENTITIES = one_in_each()

if __name__ == "__main__":
    sys.exit(main())
