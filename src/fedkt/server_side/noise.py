"""The server at level L1: its ledger, and noise that a killed server finds again instead of paying twice.

The secret seed of the noise lies beside the ledger, in a file that only its owner can read. It belongs to one plan and
one set of bundles: with any other bundle the votes are others, and the same noise on other votes would give both away.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, PrivacyError
from fedkt.models.prediction import predict_all
from fedkt.plan import Plan
from fedkt.privacy import Ledger
from fedkt.privacy.book import Book, locked
from fedkt.server_side.inbox import Arrival
from fedkt.transport.folder import read_at_most, write_atomically


@dataclass(frozen=True)
class KeptNoise:
    """A secret seed in its file, and the digest of the labels it has given."""

    path: Path
    ledger: Path
    """Whose lock keeps a second server out while this file is read and written."""
    belongs: str
    seed: int = field(repr=False)
    labels: str | None
    fresh: bool = False
    """Whether this run has drawn it."""

    def hold(self, labels: Any) -> None:
        """Write down which labels left, before anybody sees them; refused where the same noise has given others."""
        digest = hashlib.sha256(np.ascontiguousarray(labels, dtype="<i8").tobytes()).hexdigest()
        with locked(self.ledger):
            # Another server may have held its labels since this one began.
            _, before = read_kept(self.path, self.belongs) or (self.seed, None)
            if any(known not in (None, digest) for known in (self.labels, before)):
                raise PrivacyError(
                    "The same bundles gave other labels than before, and with the same noise on them both together "
                    "would give votes away. Nothing was written. Keep the final.onnx that you have; or remove "
                    f"{self.path} and run again, which is a new release and is charged."
                )
            write_kept(self.path, self.belongs, self.seed, digest)

    def forget(self) -> None:
        """Remove noise that was drawn for a release that has been refused; noise of an earlier run stays."""
        if self.fresh:
            self.path.unlink(missing_ok=True)


def ledger_at(plan: Plan, asked: Path | None) -> Path | None:
    """Where the server's releases are written down; nowhere unless it adds noise itself."""
    if plan.level != "L1":
        if asked is not None:
            raise ConfigurationError(
                f"At level {plan.level} the server adds no noise and keeps no ledger. Leave --ledger out."
            )
        return None
    if asked is None:
        raise ConfigurationError("Level L1 needs a ledger, in which the server's releases are written down: --ledger.")
    return asked


def open_ledger(plan: Plan, path: Path) -> Ledger:
    """The server's ledger under the plan's budget."""
    assert plan.privacy is not None
    return Ledger(owner="server", delta=plan.privacy.delta, budget=plan.budget, book=Book.open(path), plan=plan.digest)


def kept_noise(ledger: Path, plan: Plan, arrivals: Sequence[Arrival], voting: Sequence[Bundle]) -> KeptNoise:
    """The noise of this vote: the one an earlier run had drawn for the same bundles, else a new one, on the disk."""
    names = {bundle.sender for bundle in voting}
    heard = sorted((each.party or "", each.sha256) for each in arrivals if each.bundle and each.party in names)
    belongs = hashlib.sha256(json.dumps([plan.digest, heard]).encode()).hexdigest()
    path, ledger = ledger.with_name(f"{ledger.name}.{belongs[:16]}.noise"), ledger.resolve()
    with locked(ledger):
        kept = read_kept(path, belongs)
        if kept is not None:
            return KeptNoise(path, ledger, belongs, *kept)
        drawn = KeptNoise(path, ledger, belongs, secrets.randbits(128), None, fresh=True)
        write_kept(path, belongs, drawn.seed, None)
    return drawn


def read_kept(path: Path, belongs: str) -> tuple[int, str | None] | None:
    """The seed in a file of kept noise and the digest of the labels it has given, None where there is no file."""
    if not path.exists():
        return None
    try:
        said = json.loads(read_at_most(path, 2**16) or b"")
        seed, labels = said["noise_seed"], said["labels"]
        if said["belongs"] == belongs and type(seed) is int and seed >= 0:
            return seed, None if labels is None else str(labels)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise PrivacyError(
        f"{path} is damaged: it keeps the noise of this vote. Remove it to draw new noise, which is charged again."
    )


def write_kept(path: Path, belongs: str, seed: int, labels: str | None) -> None:
    """Put a seed, and the digest of the labels it has given, where only their owner can read them."""
    said = {"belongs": belongs, "noise_seed": seed, "labels": labels}
    write_atomically(path, json.dumps(said, indent=1).encode(), private=True)


def unable(plan: Plan, bundles: Sequence[Bundle], public: Any) -> dict[str, str]:
    """Parties with a student that cannot be run, tried on all rows of the vote before it is paid for: name -> why."""
    found, asked = {}, public[plan.algorithm().query_rows(len(public))]
    for bundle in bundles:
        failed = [each for each in predict_all(bundle.models, asked) if isinstance(each, str)]
        if failed:
            found[bundle.sender] = f"Party {bundle.sender!r} does not vote, because of {'; '.join(failed)}"
    return found


def bare_reasons(silent: dict[str, str]) -> dict[str, str]:
    """That parties could not vote, without the why: an error may quote what a student says about a row."""
    return {name: f"Party {name!r} does not vote: a student could not be run." for name in silent}
