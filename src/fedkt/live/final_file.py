"""final.onnx: the final model with its classes and columns inside, so that one file is enough to predict.

The file may come from a stranger: its notes are capped, checked and validated before the graph is, and the graph runs
where every received model runs.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, FiniteFloat, ValidationError

from fedkt.bundle.signing import SigningKey, check_public_key, sign_final, verify_final
from fedkt.data.schema import Schema
from fedkt.data.table import MAX_COLUMNS, Table, printable
from fedkt.errors import DataError, ModelError
from fedkt.live.mailbox import Mailbox, file_at
from fedkt.models.exchange import OnnxModel
from fedkt.models.onnx_rules import Limits, check_graph
from fedkt.plan import MAX_CLASSES, Class, Part, Plan, Text, faults_of
from fedkt.privacy import Statement
from fedkt.system.files import write_atomically

NOTE = "fedkt"
MAX_NOTE_BYTES = 16 * 2**20
MAX_SIGNATURE_BYTES = 1_000
MAX_FIELDS = 10_000
MAX_PARTS = 4 * MAX_COLUMNS + 1_000
"""Lists and objects in a card: a column is an object with a list or two in it."""
MAX_KEYS = 100
"""Keys of one object in a card."""
METADATA = 14
"""The field of onnx.proto's ModelProto that holds notes."""
PREDICTION = "prediction"
FORMULA = re.compile(r"[ ]*[=+\-@\t\r\n＝＋－＠]")
"""How a cell begins that spreadsheets may compute: also in the wide signs of East Asian keyboards."""
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


def _without_controls(text: str) -> str:
    if not printable(text):
        raise ValueError("control characters have no place in a privacy statement")
    return text


StatementValue = (
    Annotated[str, Field(max_length=2_000), AfterValidator(_without_controls)] | bool | int | FiniteFloat | None
)


class ModelCard(Part):
    """What a final file says about itself."""

    # Not Literal[1], which takes true for 1.
    format: Annotated[int, Field(ge=1, le=1)] = 1
    task: Text
    plan: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    level: Literal["L0", "L1", "L2"]
    classes: tuple[Class, ...] = Field(min_length=2, max_length=MAX_CLASSES, fail_fast=True)
    columns: Schema = Field(alias="schema")
    privacy: dict[Text, StatementValue | dict[Text, FiniteFloat]] = Field(default_factory=dict, max_length=50)
    """The privacy statement: what was promised when it was made."""


@dataclass(frozen=True)
class FinalModel:
    """A final file that has been checked; its graph has not been run."""

    model: OnnxModel
    card: ModelCard


@dataclass(frozen=True)
class Predictions:
    """The predicted class of every row, in the rows' order."""

    table: Table
    labels: tuple[str | int, ...]
    accuracy: float | None
    notes: tuple[str, ...] = ()


def write_final(model: OnnxModel, plan: Plan, promise: Statement) -> bytes:
    """The final model's bytes, with everything that is needed to use it in its metadata."""
    from onnx import ModelProto

    card = ModelCard.model_validate(
        {
            "task": plan.task,
            "plan": plan.digest,
            "level": plan.level,
            "classes": plan.classes,
            "schema": plan.columns,
            "privacy": promise.as_dict(),
        }
    )
    proto = ModelProto()
    proto.ParseFromString(model.data)
    entry = proto.metadata_props.add()
    entry.key = NOTE
    entry.value = json.dumps(card.model_dump(mode="json", by_alias=True), sort_keys=True)
    return bytes(proto.SerializeToString(deterministic=True))


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
        graph = check_graph(data, n_features=width, n_classes=classes, limits=limits)
    except ModelError as reason:
        raise ModelError(f"{path} is refused: {reason}") from reason
    return FinalModel(OnnxModel(graph.data, width, classes, str(path)), card)


def parse_card(data: bytes, source: str) -> ModelCard:
    """The card in the bytes of a final file."""
    note = find_note(data, source)
    if note.count("{") + note.count("[") > MAX_PARTS:
        raise ModelError(f"{source}: what it says about itself is wrong: it has more than {MAX_PARTS:,} parts.")
    try:
        # Every fault of a card is an error in memory: what no card has is refused before it is held against one.
        json.loads(note, object_pairs_hook=_check_number_of_keys)
    except (ValueError, RecursionError) as reason:
        raise ModelError(f"{source}: what it says about itself is wrong: {str(reason)[:200]}.") from reason
    try:
        return ModelCard.model_validate_json(note, strict=True)
    except ValidationError as reason:
        where, _, words = faults_of(reason)[0]
        raise ModelError(f"{source}: what it says about itself is wrong at {where[:100]!r}: {words}.") from reason


def _check_number_of_keys(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > MAX_KEYS:
        raise ValueError(f"an object with {len(pairs)} keys")


def find_note(data: bytes, source: str) -> str:
    """The text of our metadata entry, found by walking the outermost fields; nothing is parsed before it is bounded."""
    remaining = [MAX_FIELDS]
    metadata = (value for number, value in fields(data, source, remaining) if number == METADATA)
    entries = [dict(fields(each, source, remaining)) for each in metadata]
    notes = [each.get(2, b"") for each in entries if each.get(1) == NOTE.encode()]
    if len(notes) != 1:
        raise ModelError(
            f"{source} has {len(notes) or 'no'} fedkt notes inside; a final model has one. Use the final.onnx that "
            "`fedkt server` has written."
        )
    if len(notes[0]) > MAX_NOTE_BYTES:
        raise ModelError(f"{source} says more about itself than the {MAX_NOTE_BYTES:,} bytes that are read.")
    try:
        return notes[0].decode("utf-8")
    except UnicodeDecodeError as reason:
        raise ModelError(f"{source}: what it says about itself is not text.") from reason


def fields(data: bytes, source: str, remaining: list[int]) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field of a protobuf message that has a length; other fields are passed over.

    `remaining` counts down how many fields may still come, in this message and in those inside it.
    """
    place = 0
    while place < len(data) and remaining[0] > 0:
        remaining[0] -= 1
        tag, place = varint(data, place)
        kind = tag & 7
        if kind == 2:
            size, place = varint(data, place)
            yield tag >> 3, data[place : place + size]
            place += size
        elif kind == 0:
            _, place = varint(data, place)
        else:
            place += {1: 8, 5: 4}.get(kind, len(data) + 1)
    if place != len(data):
        raise ModelError(f"{source} is not an ONNX file, or is damaged.")


def varint(data: bytes, place: int) -> tuple[int, int]:
    """A protobuf number and the place after it; past the end, a place that fits no file."""
    value = 0
    for shift in range(0, 64, 7):
        if place >= len(data):
            break
        value |= (data[place] & 0x7F) << shift
        place += 1
        if data[place - 1] < 0x80:
            return value, place
    return 0, len(data) + 1


def predict_file(final: FinalModel, path: str | Path) -> Predictions:
    """What the final model says about each row of a file; the accuracy too, where the rows are labelled."""
    schema = final.card.columns
    table = schema.read(path, labelled=False)
    codes = final.model.predict(schema.encode(table))
    accuracy, notes = None, list(schema.unseen_notes(table))
    if schema.label in table.columns:
        try:
            accuracy = float(np.mean(codes == schema.labels(table, final.card.classes)))
        except DataError as reason:
            notes.append(f"No accuracy: {reason}")
    return Predictions(table, tuple(final.card.classes[code] for code in codes), accuracy, tuple(notes))


def to_csv(predictions: Predictions) -> str:
    """The rows as they were read, in their order, with the prediction as the last column; an image as its file.

    A spreadsheet takes a text that begins like a formula for one: such a text gets an apostrophe before it.
    """
    table = predictions.table
    if table.files is not None:
        table = Table({"file": table.files}, table.source)
    if PREDICTION in table.columns:
        raise DataError(f"{table.source} already has a column {PREDICTION!r}. Rename it first.")
    # A carriage return inside a cell is quoted only where lines end with one.
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    lines = []
    columns = [values.tolist() for values in table.columns.values()]
    for row in ((*table.columns, PREDICTION), *zip(*columns, predictions.labels, strict=True)):
        writer.writerow(map(no_formula, row))
        lines.append(text.getvalue().removesuffix("\r\n"))
        text.seek(0)
        text.truncate()
    return "\n".join([*lines, ""])


def no_formula(value: Any) -> Any:
    """The value of a cell; a text that is no number and begins like a formula has an apostrophe before it."""
    if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value
