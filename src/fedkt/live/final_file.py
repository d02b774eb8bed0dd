"""final.onnx: the final model with its classes and columns inside, so that one file is enough to predict.

The file may come from a stranger: its notes are checked before the graph is, and the graph runs where every received
model runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedkt.bundle.signing import SigningKey, check_public_key, sign_final, verify_final
from fedkt.errors import ModelError
from fedkt.final_card import FinalCard, parse_card, with_card
from fedkt.live.mailbox import Mailbox, file_at
from fedkt.models.exchange import OnnxModel
from fedkt.models.onnx_rules import Limits, SafeGraph, check_graph
from fedkt.plan import Plan
from fedkt.privacy import Statement
from fedkt.system.files import write_atomically

MAX_SIGNATURE_BYTES = 1_000


@dataclass(frozen=True)
class FinalModel:
    """A final file that has been checked; its graph has not been run."""

    model: OnnxModel
    card: FinalCard
    sha256: str
    """Of the file's bytes."""


def write_final(
    model: OnnxModel,
    plan: Plan,
    promise: Statement,
    model_card: str | None = None,
    *,
    alarms: Sequence[str] = (),
    probability_verdicts: Sequence[str] = (),
) -> bytes:
    """The final model's bytes, with everything that is needed to use it in its metadata."""
    card = FinalCard.model_validate(
        {
            "task": plan.task,
            "plan": plan.digest,
            "level": plan.level,
            "classes": plan.classes,
            "schema": plan.columns,
            "privacy": promise.as_dict(),
            "probabilities": model.soft,
            "model_card": model_card,
            "alarms": tuple(alarms),
            "probability_verdicts": tuple(probability_verdicts),
        }
    )
    return with_card(model.data, card)


def write_signed(path: Path, data: bytes, key: SigningKey | None) -> None:
    """Write a final model, and its signature beside it where there is a key."""
    beside = path.with_name(signature_name(path.name))
    # An earlier signature fits other bytes: stopped half-way, the new file is unsigned and not wrongly signed.
    beside.unlink(missing_ok=True)
    write_atomically(path, data)
    if key is not None:
        write_atomically(beside, sign_final(key, data))


def signature_name(name: str) -> str:
    """What the signature of a final model is called, which lies beside it."""
    return f"{name}.sig"


def check_signature(mailbox: Mailbox, name: str, data: bytes, public: str) -> None:
    """Refuse a final model that the owner of this public key has not signed; nothing in it is parsed before."""
    check_public_key(public, source="--server-key")
    place, beside = mailbox.where(name), signature_name(name)
    try:
        signature = mailbox.read(beside, MAX_SIGNATURE_BYTES)
    except FileNotFoundError as reason:
        raise ModelError(
            f"{place} is not signed: there is no {beside} beside it. Ask whoever runs the server for both files, "
            "or leave --server-key out if you trust the way it came."
        ) from reason
    if signature is None or not verify_final(public, data, signature):
        raise ModelError(
            f"{place} is refused: the signature in {beside} is not the server's ({public}) for this file. It was "
            "changed on the way, or another server made it."
        )


def read_final(path: str | Path, *, server_key: str | None = None) -> FinalModel:
    """The final model in a file, checked; nothing in it has been run. With a server's key, it must have signed it."""
    limits = Limits()
    mailbox, name = file_at(path, own=True)
    data = mailbox.read(name, limits.member_bytes)
    if data is None:
        raise ModelError(f"{path} is larger than {limits.member_bytes:,} bytes; no final model is.")
    if data[:4] == b"PK\x03\x04":
        raise ModelError(
            f"{path} is a party's bundle, not a final model. Use the final.onnx that `fedkt server` has written."
        )
    if server_key is not None:
        check_signature(mailbox, name, data, server_key)
    card = parse_card(data, str(path))
    width, classes = card.columns.n_features, len(card.classes)
    try:
        graph = check_final_graph(data, card, limits)
    except ModelError as reason:
        raise ModelError(f"{path} is refused: {reason}") from reason
    return FinalModel(
        OnnxModel(graph.data, width, classes, str(path), soft=graph.soft, free_label=True, limits=limits),
        card,
        hashlib.sha256(data).hexdigest(),
    )


def check_final_graph(data: bytes, card: FinalCard, limits: Limits | None = None) -> SafeGraph:
    """The graph of a final file, which gives probabilities where its card says so and nowhere else."""
    graph = check_graph(data, n_features=card.columns.n_features, n_classes=len(card.classes), limits=limits, soft=True)
    if graph.soft != card.probabilities:
        wrong = (
            "it says that it gives probabilities, but only names a class."
            if card.probabilities
            else "it gives probabilities and does not say so."
        )
        raise ModelError(f"{wrong} Use the final.onnx that `fedkt server` has written.")
    return graph
