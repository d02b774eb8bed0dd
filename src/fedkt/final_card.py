"""What a final.onnx says about itself: written into its metadata; found there, capped, checked and validated.

The file may come from a stranger.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, FiniteFloat, ValidationError

from fedkt.data.schema import Schema
from fedkt.data.table import MAX_COLUMNS, printable
from fedkt.data.values import as_key
from fedkt.errors import ModelError
from fedkt.plan import MAX_CLASSES, Class, Part, Text, faults_of

NOTE = "fedkt"
MAX_NOTE_BYTES = 16 * 2**20
MAX_FIELDS = 10_000
MAX_PARTS = 4 * MAX_COLUMNS + 1_000
"""Lists and objects in a card: a column is an object with a list or two in it."""
MAX_KEYS = 100
"""Keys of one object in a card."""
MAX_CARD_TEXT = 20_000
"""Characters of the model card for people."""
NO_PLAN = "0" * 64
"""Instead of a plan's digest, where a model was made without one."""
METADATA = 14
"""The field of onnx.proto's ModelProto that holds notes."""


def _without_controls(text: str) -> str:
    if not printable(text):
        raise ValueError("control characters have no place here")
    return text


def _lines_without_controls(text: str) -> str:
    if not printable(text.replace("\n", "")):
        raise ValueError("control characters have no place in a model card")
    return text


StatementValue = (
    Annotated[str, Field(max_length=2_000), AfterValidator(_without_controls)] | bool | int | FiniteFloat | None
)
Alarm = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_without_controls)]
CardText = Annotated[str, Field(min_length=1, max_length=MAX_CARD_TEXT), AfterValidator(_lines_without_controls)]


def _each_once(classes: tuple[Class, ...]) -> tuple[Class, ...]:
    if len(set(map(as_key, classes))) != len(classes):
        raise ValueError("it has the same class twice (1 and '1' are the same)")
    return classes


class FinalCard(Part):
    """What a final file says about itself."""

    # Not Literal[1], which takes true for 1.
    format: Annotated[int, Field(ge=1, le=1)] = 1
    task: Text
    plan: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    level: Literal["L0", "L1", "L2"]
    classes: Annotated[
        tuple[Class, ...], Field(min_length=2, max_length=MAX_CLASSES, fail_fast=True), AfterValidator(_each_once)
    ]
    columns: Schema = Field(alias="schema")
    privacy: dict[Text, StatementValue | dict[Text, FiniteFloat]] = Field(default_factory=dict, max_length=50)
    """The privacy statement: what was promised when it was made."""
    probabilities: bool = False
    """Whether the graph also says how probable each class is; files of 0.1 do not know the question."""
    model_card: CardText | None = None
    """The model card for people, in Markdown; files of 0.1 have none."""
    alarms: tuple[Alarm, ...] = Field(default=(), max_length=20)
    """Why its noise leaves it of little use, as its plan tells: whoever predicts with it hears of it."""
    probability_verdicts: tuple[Alarm, ...] = Field(default=(), max_length=20)
    """What its server found wrong with its probabilities; empty where it found nothing, or measured nothing."""


def with_card(data: bytes, card: FinalCard) -> bytes:
    """The bytes of a graph with a card in its metadata."""
    from onnx import ModelProto

    proto = ModelProto()
    proto.ParseFromString(data)
    entry = proto.metadata_props.add()
    entry.key = NOTE
    entry.value = json.dumps(card.model_dump(mode="json", by_alias=True), sort_keys=True)
    return bytes(proto.SerializeToString(deterministic=True))


def parse_card(data: bytes, source: str) -> FinalCard:
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
        return FinalCard.model_validate_json(note, strict=True)
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
