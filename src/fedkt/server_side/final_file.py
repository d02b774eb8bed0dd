"""final.onnx: the final model with its classes and columns inside, so that one file is enough to predict.

The file may come from a stranger: its notes are capped, checked and validated before the graph is, and the graph runs
where every received model runs.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, FiniteFloat, ValidationError

from fedkt.data.schema import Schema
from fedkt.data.table import Table, printable
from fedkt.errors import DataError, ModelError
from fedkt.models.exchange import OnnxModel
from fedkt.models.onnx_rules import Limits, check_graph
from fedkt.plan import MAX_CLASSES, Class, Part, Plan, Text, faults_of
from fedkt.privacy import Statement
from fedkt.transport.folder import read_at_most

NOTE = "fedkt"
MAX_NOTE_BYTES = 16 * 2**20
MAX_FIELDS = 10_000
METADATA = 14
"""The field of onnx.proto's ModelProto that holds notes."""
PREDICTION = "prediction"


def _one_line(text: str) -> str:
    if not printable(text):
        raise ValueError("control characters have no place in a privacy statement")
    return text


Said = Annotated[str, Field(max_length=2_000), AfterValidator(_one_line)] | bool | int | FiniteFloat | None


class Card(Part):
    """What a final file says about itself."""

    # Not Literal[1], which takes true for 1.
    format: Annotated[int, Field(ge=1, le=1)] = 1
    task: Text
    plan: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    level: Literal["L0", "L1", "L2"]
    classes: tuple[Class, ...] = Field(min_length=2, max_length=MAX_CLASSES)
    columns: Schema = Field(alias="schema")
    privacy: dict[Text, Said | dict[Text, FiniteFloat]] = Field(default_factory=dict, max_length=50)
    """The privacy statement: what was promised when it was made."""


@dataclass(frozen=True)
class FinalModel:
    """A final file that has been checked; its graph has not been run."""

    model: OnnxModel
    card: Card


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

    card = Card.model_validate(
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


def read_final(path: str | Path) -> FinalModel:
    """The final model in a file, checked; nothing in it has been run."""
    limits = Limits()
    data = read_at_most(Path(path), limits.member_bytes)
    if data is None:
        raise ModelError(f"{path} is larger than {limits.member_bytes:,} bytes; no final model is.")
    card = parse_card(data, str(path))
    width, classes = card.columns.n_features, len(card.classes)
    try:
        graph = check_graph(data, n_features=width, n_classes=classes, limits=limits)
    except ModelError as reason:
        raise ModelError(f"{path} is refused: {reason}") from reason
    return FinalModel(OnnxModel(graph.data, width, classes, str(path)), card)


def parse_card(data: bytes, source: str) -> Card:
    """The card in the bytes of a final file."""
    note = find_note(data, source)
    try:
        return Card.model_validate_json(note, strict=True)
    except ValidationError as reason:
        where, _, words = faults_of(reason)[0]
        raise ModelError(f"{source}: what it says about itself is wrong at {where[:100]!r}: {words}.") from reason


def find_note(data: bytes, source: str) -> str:
    """The text of our metadata entry, found by walking the outermost fields; nothing is parsed before it is bounded."""
    found = [dict(fields(value, source)) for number, value in fields(data, source) if number == METADATA]
    notes = [each.get(2, b"") for each in found if each.get(1) == NOTE.encode()]
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


def fields(data: bytes, source: str) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field of a protobuf message that has a length; other fields are passed over."""
    place = 0
    for _ in range(MAX_FIELDS):
        if place >= len(data):
            break
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
    """The rows as they were read, in their order, with the prediction as the last column; an image as its file."""
    table = predictions.table
    if table.files is not None:
        table = Table({"file": table.files}, table.source)
    if PREDICTION in table.columns:
        raise DataError(f"{table.source} already has a column {PREDICTION!r}. Rename it first.")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*table.columns, PREDICTION])
    writer.writerows(zip(*(values.tolist() for values in table.columns.values()), predictions.labels, strict=True))
    return text.getvalue()


def operators(data: bytes, *, n_features: int, n_classes: int, soft: bool = False) -> tuple[str, ...]:
    """The operators of a graph that keeps the rules, by name; a ModelError if it breaks one. Nothing is run."""
    from onnx import ModelProto

    graph = check_graph(data, n_features=n_features, n_classes=n_classes, soft=soft)
    proto = ModelProto()
    proto.ParseFromString(graph.data)
    return tuple(sorted({node.op_type for node in proto.graph.node}))
