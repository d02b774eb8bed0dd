"""An ONNX file read field by field, before a parser builds anything from it.

A parser trusts lengths and counts, makes objects of whatever it finds, and lays aside what has another form than it
expects: a few megabytes of empty parts become gigabytes, and bytes that one reader passes over mean something to
another. So every field is looked at by number, form and size first, and only the known ones may be there.
"""

from __future__ import annotations

import re

from fedkt.errors import ModelError

# The parts of onnx.proto that a graph of ours can consist of: field number -> what it holds, a form or a message.
MESSAGES: dict[str, dict[int, str]] = {
    "model": {
        **{1: "number", 2: "text", 3: "text", 4: "text", 5: "number", 6: "text"},
        **{7: "graph", 8: "opset", 14: "entry"},
    },
    "opset": {1: "text", 2: "number"},
    "entry": {1: "text", 2: "note"},
    "graph": {1: "node", 2: "text", 5: "tensor", 10: "text", 11: "value", 12: "value", 13: "value"},
    "node": {1: "text", 2: "text", 3: "text", 4: "text", 5: "attribute", 6: "text", 7: "text"},
    "attribute": {
        **{1: "text", 2: "float", 3: "number", 4: "bytes", 5: "tensor", 7: "float", 8: "number", 9: "bytes"},
        **{13: "text", 20: "number"},
    },
    "tensor": {
        **{1: "number", 2: "number", 4: "floats", 5: "numbers", 6: "bytes", 7: "numbers", 8: "text", 9: "bytes"},
        **{10: "doubles", 12: "text"},
    },
    "value": {1: "text", 2: "type", 3: "text"},
    "type": {1: "tensor type", 6: "text"},
    "tensor type": {1: "number", 2: "shape"},
    "shape": {1: "dimension"},
    "dimension": {1: "number", 2: "text", 3: "text"},
}

WIRE = {"number": 0, "float": 5}
"""How a field stands in the file: a varint, four bytes; all others have a length before them (2)."""
TEXT_BYTES = {"text": 2**16, "note": 16 * 2**20}
"""Text is UTF-8, which a parser would hand on in other forms if it were not, and not longer than a name or a note."""
HIGH = bytes(range(0x80, 0x100))
"""The bytes after which a varint goes on."""

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

# Runs of list entries in an attribute (ints, floats, tree modes): millions in a large forest, so matched at once. The
# repetitions are possessive: what is never tried another way need not be remembered, which took 90 bytes for each.
LISTS = re.compile(
    rb"(?:\x40[\x80-\xff]{0,9}+[\x00-\x7f]|\x3d.{4})++"
    rb"|(?P<modes>(?:\x4a(?:\x0aBRANCH_LEQ|\x04LEAF|\x09BRANCH_LT|\x0aBRANCH_GTE|\x09BRANCH_GT))++)",
    re.DOTALL,
)


def walk(data: bytes, *, max_fields: int, max_elements: int, max_modes: int) -> None:
    """Nothing, if the file has only known fields and not too many of them; otherwise a ModelError in words."""
    _walk(data, 0, len(data), "model", {"fields": max_fields, "elements": max_elements, "modes": max_modes})


def _walk(data: bytes, start: int, end: int, kind: str, budget: dict[str, int]) -> None:
    """The fields of one message, and of those inside it; `budget` counts down what may still come."""
    fields = MESSAGES[kind]
    place = start
    while place < end:
        if kind == "attribute" and (run := LISTS.match(data, place, end)):
            place = run.end()
            if run.lastgroup == "modes":
                # The first byte of each, which occurs nowhere else in them.
                budget["modes"] -= data.count(b"\x4a", run.start(), place)
                if budget["modes"] < 0:
                    raise ModelError("the model has too many tree nodes to be read safely.")
            continue
        budget["fields"] -= 1
        if budget["fields"] < 0:
            raise ModelError("the model has too many parts (protobuf fields) to be read safely.")
        tag, place = _varint(data, place, end)
        number, wire = tag >> 3, tag & 7
        if number not in fields:
            what = FORBIDDEN.get((kind, number), f"an unknown field {number} in its {kind}")
            raise ModelError(f"the model contains {what}, which is not allowed.")
        form = fields[number]
        if wire != WIRE.get(form, 2):
            raise ModelError(f"the model is damaged: field {number} of a {kind} has a wrong type.")
        if form == "number":
            _, place = _varint(data, place, end)
        elif form == "float":
            place += 4
        else:
            size, place = _varint(data, place, end)
            if size > end - place:
                raise ModelError(f"the model is damaged: a {kind} field claims {size} bytes, {end - place} are left.")
            if form in MESSAGES:
                _walk(data, place, place + size, form, budget)
            else:
                _check_content(data, place, place + size, form, kind, budget)
            place += size
    if place != end:
        raise ModelError(f"the model is damaged: a {kind} ends in the middle of a field.")


def _check_content(data: bytes, start: int, end: int, form: str, kind: str, budget: dict[str, int]) -> None:
    """Text is text and short; packed numbers are counted before a parser makes eight bytes of each."""
    size = end - start
    if form in TEXT_BYTES:
        if size > TEXT_BYTES[form]:
            raise ModelError(
                f"the model has a text of {size} bytes in its {kind}; at most {TEXT_BYTES[form]} are read."
            )
        if not _is_utf8(data[start:end]):
            raise ModelError(f"the model is damaged: a {kind} has a name that is not text.")
    elif form == "numbers":
        budget["elements"] -= len(data[start:end].translate(None, HIGH))
    elif form in ("floats", "doubles"):
        budget["elements"] -= size // (4 if form == "floats" else 8)
    if budget["elements"] < 0:
        raise ModelError("the model stores too many numbers to be read safely.")


def _is_utf8(raw: bytes) -> bool:
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
