"""What a received convolution or pooling may look like: a window of the same number of axes everywhere, none of it 0.

onnxruntime refuses most of the rest by itself, in some versions, or only when it runs; here it is refused in all.
"""

from __future__ import annotations

from typing import Any

from fedkt.errors import ModelError

WINDOWS = frozenset({"AveragePool", "Conv", "MaxPool"})
LISTS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 0}
"""The lists a window may come with, and the least each entry is."""
NUMBERS = {"group": (1, 65_536), "ceil_mode": (0, 1), "count_include_pad": (0, 1), "storage_order": (0, 1)}
LARGEST = 1_024
MAX_AXES = 3


def check_window(node: Any) -> None:
    """Nothing, if the window is one; otherwise a ModelError in words."""
    lists: dict[str, list[int]] = {}
    for each in node.attribute:
        if each.name in LISTS and each.type == 7:
            lists[each.name] = list(each.ints)
        elif each.name in NUMBERS and each.type == 2:
            low, high = NUMBERS[each.name]
            if not low <= each.i <= high:
                raise ModelError(f"a {node.op_type} node has {each.name!r} outside {low} … {high}: {each.i}.")
        elif not (each.name == "auto_pad" and each.type == 3):
            raise ModelError(f"a {node.op_type} node has an attribute {each.name[:40]!r} that is not allowed.")
    axes = len(lists.get("kernel_shape", ()))
    if not 1 <= axes <= MAX_AXES:
        raise ModelError(f"a {node.op_type} node has a window ('kernel_shape') of {axes} axes, not 1 … {MAX_AXES}.")
    for name, entries in lists.items():
        length = 2 * axes if name == "pads" else axes
        if len(entries) != length:
            raise ModelError(f"a {node.op_type} node has {len(entries)} {name!r}, not {length}.")
        if any(not LISTS[name] <= entry <= LARGEST for entry in entries):
            raise ModelError(f"a {node.op_type} node has {name!r} outside {LISTS[name]} … {LARGEST}.")
