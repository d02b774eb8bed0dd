"""What a server leaves behind: the final model, what it promises, and a report that everybody may read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedkt.bundle import Bundle
from fedkt.bundle.signing import SigningKey
from fedkt.live.arrivals import Arrival, without_reasons
from fedkt.live.final_file import FinalModel, write_final, write_signed
from fedkt.live.model_card import write_card
from fedkt.models.exchange import OnnxModel
from fedkt.plan import Plan
from fedkt.privacy import Price, Statement
from fedkt.quality import Quality, probability_verdicts
from fedkt.report import Report, protects_parties, public_reasons
from fedkt.system.files import read_at_most, write_atomically

REPORT = "report.json"
MAX_REPORT_BYTES = 64 * 2**20


@dataclass(frozen=True)
class VoteOutcome:
    """What came of a vote: who took part, what is promised, and the final model."""

    voting: list[Bundle]
    silent: dict[str, str]
    """Who could not be heard, and why."""
    price: Price | None
    promise: Statement
    final: OnnxModel
    notes: tuple[str, ...] = ()
    """What is to be known of the final model from its plan and its vote, whenever it is made again."""


@dataclass(frozen=True)
class ServerResult:
    """What the server has made, and of what."""

    report: Report
    arrivals: tuple[Arrival, ...]
    missing: tuple[str, ...]
    final: Path
    plan: str
    details: tuple[str, ...] = ()
    """Level L1: why files were refused or students not run. For the eyes of the server only: it is stored nowhere."""
    final_sha256: str = ""
    """Of the bytes of the final file: which one this report is about."""
    signed_by: str | None = None
    """The public key that fits the signature beside the final file."""

    @property
    def model_card(self) -> Path:
        """Where the model card lies, which is inside the final model too."""
        return self.final.with_name("model-card.md")

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values: the report, the files that came, and the final file."""
        bundles = [
            {
                "file": each.file,
                "party": each.party,
                "accepted": not each.reason,
                "status": each.status,
                "reason": each.reason or None,
                "students": 0 if each.bundle is None else len(each.bundle.models),
                # A digest of students tells whoever guesses the rows that the guess is right.
                **({} if protects_parties(self.report.level) else {"bytes": each.bytes, "sha256": each.sha256}),
                **(
                    {}
                    if each.bundle is None or each.bundle.claim is None
                    else {"claim": each.bundle.claim.model_dump(exclude_none=True)}
                ),
            }
            for each in self.arrivals
        ]
        result: dict[str, Any] = {
            "plan": self.plan,
            "bundles": bundles,
            "missing": self.missing,
            "final": str(self.final),
            "model_card": str(self.model_card),
        }
        result |= {"final_sha256": self.final_sha256, "signed_by": self.signed_by}
        return {**asdict(self.report), **result}


def write_result(
    plan: Plan, vote: VoteOutcome, arrivals: Sequence[Arrival], report: Report, folder: Path, key: SigningKey | None
) -> ServerResult:
    """The final model, its card, the promise and the report, on the disk, the report last."""
    public, details = public_arrivals(plan, vote, arrivals)
    absent = parties_without_vote(plan, vote)
    notes = [note for note in report.notes if note in vote.notes and note not in report.alarms]
    card = write_card(plan, report, probabilities=vote.final.soft, absent=absent, notes=notes)
    found = () if report.quality is None else probability_verdicts(Quality.from_dict(report.quality))
    data = write_final(vote.final, plan, vote.promise, card, alarms=report.alarms, probability_verdicts=found)
    result = ServerResult(
        report,
        tuple(public),
        absent,
        final_in(folder),
        plan.digest,
        details,
        hashlib.sha256(data).hexdigest(),
        None if key is None else key.public,
    )
    write_atomically(folder / "privacy.txt", f"{vote.promise}\n".encode())
    write_atomically(result.model_card, card.encode())
    write_signed(result.final, data, key)
    text = json.dumps(result.as_dict(), ensure_ascii=False, indent=1, allow_nan=False)
    write_atomically(folder / REPORT, text.encode() + b"\n")
    return result


def final_in(folder: Path) -> Path:
    """The final model in a result folder."""
    return folder / "final.onnx"


def public_arrivals(
    plan: Plan, vote: VoteOutcome, arrivals: Sequence[Arrival]
) -> tuple[Sequence[Arrival], tuple[str, ...]]:
    """The arrivals as everybody may know them, and what only the server's operator may: at level L1 every reason."""
    reasons = public_reasons(vote.silent, plan.level)
    public = [
        replace(each, reason=reasons[each.party], bundle=None)
        if each.bundle is not None and each.party in vote.silent
        else each
        for each in arrivals
    ]
    if not protects_parties(plan.level):
        return public, ()
    bare, refusals = without_reasons(public)
    return bare, (*refusals, *vote.silent.values())


def parties_without_vote(plan: Plan, vote: VoteOutcome) -> tuple[str, ...]:
    """The parties without a vote, in the plan's order."""
    voted = {bundle.sender for bundle in vote.voting}
    return tuple(name for name in plan.names if name not in voted)


def bundle_behind(final: FinalModel, party: str) -> str | None:
    """SHA-256 of the party's bundle that a final model was made from, by the report beside it; "" where it had none.

    None where no report about this very file lies there, or one that does not say (level L1).
    """
    try:
        told = json.loads(read_at_most(Path(final.model.name).with_name(REPORT), MAX_REPORT_BYTES) or b"")
        if told["final_sha256"] != final.sha256:
            return None
        digests = [each.get("sha256") for each in told["bundles"] if each["party"] == party and each["accepted"]]
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None
    if not digests:
        return ""
    return digests[0] if isinstance(digests[0], str) else None
