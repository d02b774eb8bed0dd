"""An ONNX file read field by field, before a parser builds anything from it.

A parser trusts lengths and counts, and makes objects of whatever it finds: a few megabytes of empty parts become
gigabytes. So every field is looked at by number, type and size first, and only the known ones may be there.
"""

from __future__ import annotations

import re

from fedkt.errors import ModelError

# The parts of onnx.proto that a graph of ours can consist of: field number -> (name, nested message or None).
MESSAGES: dict[str, dict[int, str | None]] = {
    "model": {1: None, 2: None, 3: None, 4: None, 5: None, 6: None, 7: "graph", 8: "opset", 14: "entry"},
    "opset": {1: None, 2: None},
    "entry": {1: None, 2: None},
    "graph": {1: "node", 2: None, 5: "tensor", 10: None, 11: "value", 12: "value", 13: "value"},
    "node": {1: None, 2: None, 3: None, 4: None, 5: "attribute", 6: None, 7: None},
    "attribute": {1: None, 2: None, 3: None, 4: None, 5: "tensor", 7: None, 8: None, 9: None, 13: None, 20: None},
    "tensor": {1: None, 2: None, 4: None, 5: None, 6: None, 7: None, 8: None, 9: None, 10: None, 12: None},
    "value": {1: None, 2: "type", 3: None},
    "type": {1: "tensor type", 6: None},
    "tensor type": {1: None, 2: "shape"},
    "shape": {1: "dimension"},
    "dimension": {1: None, 2: None, 3: None},
}

# Which of these fields are text: a parser hands text that is not UTF-8 on in other forms.
TEXT: dict[str, set[int]] = {
    "model": {2, 3, 4, 6},
    "opset": {1},
    "entry": {1, 2},
    "graph": {2, 10},
    "node": {1, 2, 3, 4, 6, 7},
    "attribute": {1, 13},
    "tensor": {8, 12},
    "value": {1, 3},
    "type": {6},
    "dimension": {2, 3},
}

FORBIDDEN = {
    ("model", 20): "training information",
    ("model", 25): "a local function",
    ("graph", 14): "quantisation notes",
    ("graph", 15): "a sparse initialiser",
    ("attribute", 6): "a subgraph",
    ("attribute", 11): "subgraphs",
    ("attribute", 22): "a sparse tensor",
    ("attribute", 23): "sparse tensors",
    ("tensor", 13): "external data",
    ("tensor", 14): "external data",
    ("tensor", 3): "a tensor in segments",
}

# Runs of list entries in an attribute (ints, floats, tree modes): millions in a large forest, so matched at once.
LISTS = re.compile(
    rb"(?:\x40[\x80-\xff]{0,9}[\x00-\x7f]|\x3d.{4}"
    rb"|\x4a(?:\x0aBRANCH_LEQ|\x04LEAF|\x09BRANCH_LT|\x0aBRANCH_GTE|\x09BRANCH_GT))+",
    re.DOTALL,
)


def walk(data: bytes, *, max_fields: int) -> None:
    """Nothing, if the file has only known fields and not too many of them; otherwise a ModelError in words."""
    _walk(data, 0, len(data), "model", [max_fields])


def _walk(data: bytes, start: int, end: int, kind: str, left: list[int]) -> None:
    """The fields of one message, and of those inside it; `left` counts down what may still come."""
    known = MESSAGES[kind]
    place = start
    while place < end:
        if kind == "attribute" and (run := LISTS.match(data, place, end)):
            place = run.end()
            continue
        left[0] -= 1
        if left[0] < 0:
            raise ModelError("the model has too many parts (protobuf fields) to be read safely.")
        tag, place = _varint(data, place, end)
        number, wire = tag >> 3, tag & 7
        if number not in known:
            what = FORBIDDEN.get((kind, number), f"an unknown field {number} in its {kind}")
            raise ModelError(f"the model contains {what}, which is not allowed.")
        nested = known[number]
        if wire == 2:
            size, place = _varint(data, place, end)
            if size > end - place:
                raise ModelError(f"the model is damaged: a {kind} field claims {size} bytes, {end - place} are left.")
            if number in TEXT.get(kind, ()) and not _is_text(data[place : place + size]):
                raise ModelError(f"the model is damaged: a {kind} has a name that is not text.")
            if nested is not None:
                _walk(data, place, place + size, nested, left)
            place += size
        elif nested is not None or wire not in (0, 1, 5):
            raise ModelError(f"the model is damaged: field {number} of a {kind} has a wrong type.")
        elif wire == 0:
            _, place = _varint(data, place, end)
        else:
            place += 8 if wire == 1 else 4
    if place != end:
        raise ModelError(f"the model is damaged: a {kind} ends in the middle of a field.")


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end and shift < 64:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise ModelError("the model is damaged: it is not an ONNX file.")
