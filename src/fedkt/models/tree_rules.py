"""What a received tree ensemble may look like: every index inside its own tree, every tree a tree.

onnxruntime trusts these indices; a forged one reads memory that is not the model's, a cycle never ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.errors import ModelError

Ints = NDArray[np.int64]

MODES = {b"LEAF", b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT"}
MAX_FEATURE = 2**24


def check_trees(node: Any, max_nodes: int, max_depth: int) -> int:
    """The highest feature index the trees read, if they are trees; otherwise a ModelError in words."""
    attributes = {each.name: each for each in node.attribute}
    _check_names(attributes)
    n_nodes = len(attributes["nodes_modes"].strings) if "nodes_modes" in attributes else 0
    if not 0 < n_nodes <= max_nodes:
        raise ModelError(f"a tree ensemble has {n_nodes} nodes; between 1 and {max_nodes} are run.")
    modes = list(attributes["nodes_modes"].strings)
    if not MODES.issuperset(modes):
        raise ModelError("a tree ensemble has a node mode that is not allowed.")
    trees = _ints(attributes, "nodes_treeids", n_nodes)
    ids = _ints(attributes, "nodes_nodeids", n_nodes)
    features = _ints(attributes, "nodes_featureids", n_nodes)
    yes = _ints(attributes, "nodes_truenodeids", n_nodes)
    no = _ints(attributes, "nodes_falsenodeids", n_nodes)
    _length(attributes, "nodes_values", n_nodes)
    for name in ("nodes_missing_value_tracks_true", "nodes_hitrates"):
        if name in attributes or f"{name}_as_tensor" in attributes:
            _length(attributes, name, n_nodes, optional=True)
    starts = np.flatnonzero(np.diff(trees, prepend=trees[0] - 1))
    sizes = np.diff(starts, append=n_nodes)
    if not np.array_equal(trees, np.repeat(np.arange(len(starts)) + trees[0], sizes)) or trees[0] != 0:
        raise ModelError("a tree ensemble does not list its trees one after the other.")
    first = np.repeat(starts, sizes)
    if not np.array_equal(ids, np.arange(n_nodes) - first):
        raise ModelError("a tree ensemble does not number the nodes of a tree 0, 1, 2, …")
    leaf = np.array([each == b"LEAF" for each in modes])
    inner = ~leaf
    size_of = np.repeat(sizes, sizes)
    for children in (yes[inner], no[inner]):
        if ((children <= 0) | (children >= size_of[inner])).any():
            raise ModelError("a tree has a child index outside the tree.")
    if ((features < 0) | (features > MAX_FEATURE)).any():
        raise ModelError("a tree has a feature index that no column can have.")
    _check_depth(inner, first, yes, no, starts, max_depth)
    _check_leaves(attributes, leaf, starts, sizes)
    return int(features[inner].max(initial=0))


def _check_names(attributes: dict[str, Any]) -> None:
    allowed = {"nodes_modes", "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids"}
    allowed |= {"nodes_falsenodeids", "nodes_values", "nodes_missing_value_tracks_true", "nodes_hitrates"}
    allowed |= {f"class_{name}" for name in ("ids", "nodeids", "treeids", "weights")}
    allowed |= {"base_values", "post_transform", "classlabels_int64s"}
    for name in attributes:
        if name.removesuffix("_as_tensor") not in allowed:
            raise ModelError(f"a tree ensemble has an attribute {name[:40]!r} that is not allowed.")


def _ints(attributes: dict[str, Any], name: str, length: int) -> Ints:
    count = len(attributes[name].ints) if name in attributes else 0
    if count != length:
        raise ModelError(f"a tree ensemble has {count} {name}, not {length}.")
    return np.fromiter(attributes[name].ints, np.int64, count) if count else np.empty(0, np.int64)


def _length(attributes: dict[str, Any], name: str, length: int, *, optional: bool = False) -> None:
    plain, tensor = attributes.get(name), attributes.get(f"{name}_as_tensor")
    if plain is not None and tensor is not None:
        raise ModelError(f"a tree ensemble gives {name} twice.")
    count = 0
    if plain is not None:
        count = len(plain.floats) + len(plain.ints)
    elif tensor is not None:
        count = int(np.prod(tensor.t.dims, dtype=np.int64)) if tensor.t.dims else 0
    if count != length and not (optional and count == 0):
        raise ModelError(f"a tree ensemble has {count} {name}, not {length}.")


def _check_depth(inner: NDArray[np.bool_], first: Ints, yes: Ints, no: Ints, starts: Ints, max_depth: int) -> None:
    """Every node hangs under its root once: level by level, all of them are met, and none twice."""
    visits = np.zeros(len(first), dtype=np.int64)
    front = starts
    for _ in range(max_depth):
        np.add.at(visits, front, 1)
        if (visits[front] > 1).any():
            raise ModelError("a tree has a node with two parents, or a cycle.")
        parents = front[inner[front]]
        if not len(parents):
            break
        front = np.concatenate([first[parents] + yes[parents], first[parents] + no[parents]])
    else:
        raise ModelError(f"a tree is deeper than {max_depth} levels.")
    if not visits.all():
        raise ModelError("a tree has nodes that hang under nothing.")


def _check_leaves(attributes: dict[str, Any], leaf: NDArray[np.bool_], starts: Ints, sizes: Ints) -> None:
    count = len(attributes["class_ids"].ints) if "class_ids" in attributes else 0
    class_ids = _ints(attributes, "class_ids", count)
    tree, node = _ints(attributes, "class_treeids", count), _ints(attributes, "class_nodeids", count)
    _length(attributes, "class_weights", count)
    if not count or ((tree < 0) | (tree >= len(starts))).any() or ((node < 0) | (node >= sizes[tree])).any():
        raise ModelError("a tree ensemble scores a leaf that does not exist.")
    if not leaf[starts[tree] + node].all():
        raise ModelError("a tree ensemble scores a node that is not a leaf.")
    outcomes = len(attributes["classlabels_int64s"].ints) if "classlabels_int64s" in attributes else 0
    if not 0 < outcomes <= 100_000 or ((class_ids < 0) | (class_ids >= outcomes)).any():
        raise ModelError("a tree ensemble scores a class that it does not have.")
    n_base = len(attributes["base_values"].floats) if "base_values" in attributes else 0
    if "base_values_as_tensor" in attributes or n_base not in (0, 1, outcomes):
        raise ModelError("a tree ensemble has base_values that do not fit its classes.")
