"""The server at level L1: its ledger, and noise that a killed server finds again instead of paying twice.

The secret of the noise lies beside the ledger, in a file that only its owner can read. It belongs to one plan and one
set of bundles: with any other bundle the votes are others, and the same noise on other votes would give both away.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError, FedKTError, PrivacyError
from fedkt.federation import Diary
from fedkt.plan import Plan, read_plan
from fedkt.privacy import Ledger
from fedkt.privacy.ledger_file import LedgerFile, locked
from fedkt.privacy.stream import new_secret
from fedkt.system.files import read_at_most, write_atomically

PARTIES, ENDING = "parties-", ".ledger"
"""How the ledger of a set of parties is called, with what tells the set between."""


@dataclass(frozen=True)
class NoiseFile:
    """A secret seed in its file, and the digest of the labels it has given."""

    path: Path
    ledger: Path
    """Whose lock keeps a second server out while this file is read and written."""
    belongs: str
    seed: int = field(repr=False)
    labels: str | None
    fresh: bool = False
    """Whether this run has drawn it."""

    def hold(self, digest: str) -> None:
        """Write down which labels left, before anybody sees them; refused where the same noise has given others."""
        with locked(self.ledger):
            # Another server may have held its labels since this one began.
            before = (read_noise(self.path, self.belongs) or (self.seed, None))[1]
            if any(labels not in (None, digest) for labels in (self.labels, before)):
                raise PrivacyError(
                    "The same bundles gave other labels than before, and with the same noise on them both together "
                    "would give votes away. Nothing was written. Keep the final.onnx that you have; or remove "
                    f"{self.path} and run again, which is a new release and is charged."
                )
            write_noise(self.path, self.belongs, self.seed, digest)

    def forget(self) -> None:
        """Remove noise that was drawn for a release that has been refused; noise that has given labels stays."""
        with locked(self.ledger):
            if self.fresh and read_noise(self.path, self.belongs) == (self.seed, None):
                self.path.unlink()


def default_ledger(plan: Plan, file: Path) -> Path:
    """The ledger of a plan's parties, beside the plan: all plans there over the same parties share it.

    Parties go by their names: who has a new key is still the same, and so are its rows. Earlier versions named the
    ledger after the plan's file; one that is there goes on being used, by all these plans.
    """
    # A link to the plan from another folder is no other plan.
    file, names = file.resolve(), sorted(plan.names)
    ours = file.with_name(f"{PARTIES}{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:12]}{ENDING}")
    ledgers = [ours] if ours.exists() else []
    foreign = [each.name for each in sorted(file.parent.glob(f"{PARTIES}*{ENDING}")) if each != ours]
    for each in sorted(file.parent.glob(f"*{ENDING}")):
        theirs = names_in(each.with_name(each.name.removesuffix(ENDING)))
        if theirs == names:
            ledgers.append(each)
        elif theirs and set(theirs) & set(names):
            foreign.append(each.name)
    if foreign and not ledgers:
        # A plan with one party fewer would else be a second release about all the others, which nobody charges.
        raise PrivacyError(
            f"{foreign[0]} beside {file} is the ledger of another set of parties. If any of them takes part here too, "
            "their releases add up: pass that ledger as --ledger. If none does, name a new one: --ledger FILE. Nothing "
            "is released."
        )
    if len(ledgers) > 1:
        raise PrivacyError(
            f"{len(ledgers)} ledgers beside {file} hold releases about these parties: "
            f"{', '.join(each.name for each in ledgers)}. Nothing is released: what is in the others would not be "
            "counted. Pass the one to go on with as --ledger."
        )
    return ledgers[0] if ledgers else ours


def names_in(file: Path) -> list[str] | None:
    """Who takes part by the plan in this file; None where it is no plan."""
    try:
        return sorted(read_plan(file).names)
    except (FedKTError, OSError, ValueError):
        return None


def ledger_at(plan: Plan, path: Path | None) -> Path | None:
    """Where the server's releases are written down; nowhere unless it adds noise itself."""
    if plan.level != "L1":
        if path is not None:
            raise ConfigurationError(
                f"At level {plan.level} the server adds no noise and keeps no ledger. Leave --ledger out."
            )
        return None
    if path is None:
        raise ConfigurationError("Level L1 needs a ledger, in which the server's releases are written down: --ledger.")
    return path


def server_ledger(plan: Plan, path: Path, diary: Diary) -> Ledger:
    """The server's ledger under the plan's budget; a new one is told of, since it knows of no release before."""
    assert plan.privacy is not None
    if not path.exists():
        diary.say(
            f"{path.name} is new: if noisy votes about these parties were written into another ledger, pass it with "
            "--ledger, or they are not counted."
        )
    return Ledger(
        owner="server",
        delta=plan.privacy.delta,
        budget=plan.budget,
        file=LedgerFile.open(path),
        plan=plan.digest,
    )


def open_noise(ledger: Path, plan: Plan, voting: Sequence[Bundle]) -> NoiseFile:
    """The noise of this vote: the one an earlier run had drawn for the same bundles, else a new one, on the disk."""
    senders = sorted((bundle.sender, bundle.identity) for bundle in voting)
    belongs = hashlib.sha256(json.dumps([plan.digest, senders]).encode()).hexdigest()
    path, ledger = ledger.with_name(f"{ledger.name}.{belongs[:16]}.noise"), ledger.resolve()
    with locked(ledger):
        stored = read_noise(path, belongs)
        if stored is not None:
            return NoiseFile(path, ledger, belongs, *stored)
        new = NoiseFile(path, ledger, belongs, new_secret(), None, fresh=True)
        write_noise(path, belongs, new.seed, None)
    return new


def read_noise(path: Path, belongs: str) -> tuple[int, str | None] | None:
    """The seed in a file of kept noise and the digest of the labels it has given, None where there is no file."""
    if not path.exists():
        return None
    try:
        fields = json.loads(read_at_most(path, 2**16) or b"")
        seed, labels = fields["noise_secret"], fields["labels"]
        if fields["belongs"] == belongs and type(seed) is int and seed >= 0:
            return seed, None if labels is None else str(labels)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise PrivacyError(
        f"{path} is damaged, or of an earlier version that drew noise in another way: it keeps the noise of this vote. "
        "If you have its final.onnx, keep that. Remove the file to draw new noise, which is charged again."
    )


def write_noise(path: Path, belongs: str, seed: int, labels: str | None) -> None:
    """Put a seed, and the digest of the labels it has given, where only their owner can read them."""
    fields = {"belongs": belongs, "noise_secret": seed, "labels": labels}
    write_atomically(path, json.dumps(fields, indent=1).encode(), private=True)
