"""What a received file says it is, without building or running any of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from fedkt.bundle import SIGNATURE, peek
from fedkt.bundle.archive import Archive
from fedkt.bundle.manifest import Manifest
from fedkt.errors import BundleError, ConfigurationError, ModelError
from fedkt.final_card import FinalCard, parse_card
from fedkt.live.arrivals import judge
from fedkt.live.final_file import MAX_SIGNATURE_BYTES, check_final_graph, check_signature, signature_name
from fedkt.live.inbox import limits_for
from fedkt.live.mailbox import Mailbox
from fedkt.live.sums_words import sums_in_words
from fedkt.models.onnx_rules import Limits, SafeGraph, check_graph
from fedkt.plan import Plan
from fedkt.system.files import printable_name


def describe_file(
    mailbox: Mailbox, name: str, plan: Plan | None = None, *, server_key: str | None = None
) -> dict[str, Any]:
    """What a bundle or a final model holds, as plain JSON values; with a plan, what the server would say to it.

    With a server's key a final model must be signed with it, or nothing in it is looked at.
    """
    limits, place = Limits(), mailbox.where(name)
    data = mailbox.read(name, limits.bundle_bytes)
    if data is None:
        raise BundleError(f"{place} is larger than {limits.bundle_bytes:,} bytes, which are not read.")
    if data[:2] == b"PK":
        if server_key is not None:
            raise ConfigurationError(
                f"{place} is a party's bundle, whose key is in the plan: --plan, not --server-key."
            )
        return describe_bundle(data, name, place, plan)
    if name.lower().endswith(".toml"):
        raise BundleError(
            f"{place} is no bundle and no final model: inspect takes a party's .fedkt file or a final.onnx. "
            f"What a plan says:  fedkt plan check {place}"
        )
    if server_key is not None:
        check_signature(mailbox, name, data, server_key)
        signature = f"right: signed by {server_key}"
    else:
        signature = (
            "there is one; pass --server-key to check it" if has_signature(mailbox, name) else "none: not signed"
        )
    try:
        return describe_final(data, name, place, plan, signature)
    except ModelError as reason:
        raise ModelError(f"{reason} (inspect takes a party's .fedkt file or a final.onnx.)") from reason


def describe_bundle(data: bytes, name: str, place: str, plan: Plan | None) -> dict[str, Any]:
    """A party's bundle: its manifest, its signature, its models, its arrays."""
    manifest = peek(data, source=place)
    archive = Archive(data, place, Limits())
    kinds = " and ".join(
        kind for kind, entries in (("students", manifest.files), ("arrays", manifest.arrays)) if entries
    )
    facts = {
        **describe_bytes(data, place, f"bundle of {kinds}"),
        "party": manifest.party,
        "plan": manifest.plan,
        "classes": manifest.classes,
        "features": manifest.n_features,
        "versions": manifest.versions,
        "signature": signature_state(data, place, archive, manifest, plan),
    }
    if manifest.issue is not None:
        facts["issue"] = manifest.issue
    if manifest.claim is not None:
        facts["claim"] = manifest.claim.model_dump(exclude_none=True)
    if plan is not None:
        verdict = judge(plan, data, printable_name(name), limits_for(plan)).reason
        facts |= {"accepted": not verdict, "verdict": verdict or "the server would count it"}
    if manifest.counts is not None:
        facts["counts"] = manifest.counts
    sums = sums_in_words(manifest, archive, place)
    if sums:
        facts |= {"kind": "bundle of sums", "sums": sums}
    facts["models"] = [
        {
            "name": entry.name,
            "bytes": entry.size,
            "sha256": entry.sha256,
            **describe_student(archive.read(entry.name), manifest, plan),
        }
        for entry in manifest.files
    ]
    if manifest.arrays:
        facts["arrays"] = [
            {"name": entry.name, "kind": entry.kind, "shape": entry.shape, "bytes": entry.size, "sha256": entry.sha256}
            for entry in manifest.arrays
        ]
    return facts


def describe_bytes(data: bytes, place: str, kind: str) -> dict[str, Any]:
    """Which file this is about."""
    return {"file": place, "kind": kind, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def signature_state(data: bytes, place: str, archive: Archive, manifest: Manifest, plan: Plan | None) -> str:
    """Whether the party's own key made the signature, as far as the plan can tell."""
    if SIGNATURE not in archive.names:
        return "none"
    if plan is None:
        return "there is one; pass --plan to check it"
    if manifest.party not in plan.keys:
        return f"there is one, but the plan lists no key for {manifest.party!r}"
    try:
        peek(data, source=place, keys=plan.keys)
    except BundleError as reason:
        return f"wrong: {reason}"
    return "right: made with the key that the plan lists"


def has_signature(mailbox: Mailbox, name: str) -> bool:
    """Whether a signature lies beside a final model; one that may not be read is one."""
    try:
        mailbox.read(signature_name(name), MAX_SIGNATURE_BYTES)
    except OSError as reason:
        return isinstance(reason, PermissionError)
    return True


def describe_final(data: bytes, name: str, place: str, plan: Plan | None, signature: str) -> dict[str, Any]:
    """A final model: its card and its graph."""
    card = parse_card(data, place)
    facts = {
        **describe_bytes(data, place, "final model"),
        "task": card.task,
        "plan": card.plan,
        "level": card.level,
        "label": card.columns.label,
        "classes": card.classes,
        "columns": [column.name for column in card.columns.columns],
        "features": card.columns.n_features,
        "output": output_words(card),
        "privacy": {key: value for key, value in card.privacy.items() if value is not None},
        "alarms": list(card.alarms),
        "signature": signature,
    }
    if plan is not None:
        facts["accepted"] = same = card.plan == plan.digest
        facts["verdict"] = "made under this plan" if same else f"made under another plan than {plan.digest[:12]}"
    facts["models"] = [{"name": name, "bytes": len(data), **operators_of(lambda: check_final_graph(data, card))}]
    if card.model_card is not None:
        facts["model_card"] = card.model_card
    return facts


def output_words(card: FinalCard) -> str:
    """What a final model says about a row."""
    return "a label and the probability of each class" if card.probabilities else "a label; no probabilities"


def describe_student(data: bytes, manifest: Manifest, plan: Plan | None) -> dict[str, Any]:
    """The operators of a student; without a plan it may be one of any voting."""
    n_features, n_classes = manifest.n_features, len(manifest.classes)
    if plan is not None:
        return describe_graph(data, n_features=n_features, n_classes=plan.expected.n_outputs, soft=plan.expected.soft)
    graph = describe_graph(data, n_features=n_features, n_classes=n_classes, soft=True)
    if "refused" not in graph:
        return graph
    # One class more: a row that is not the party's.
    other = describe_graph(data, n_features=n_features, n_classes=n_classes + 1, soft=True)
    return graph if "refused" in other else other


def describe_graph(data: bytes, *, n_features: int, n_classes: int, soft: bool = False) -> dict[str, Any]:
    """The operators of a graph, by name, or the rule it breaks. Nothing is run."""
    return operators_of(lambda: check_graph(data, n_features=n_features, n_classes=n_classes, soft=soft))


def operators_of(check: Callable[[], SafeGraph]) -> dict[str, Any]:
    """The operators of the graph that a check lets through, or why it does not."""
    from onnx import ModelProto

    try:
        graph = check()
    except ModelError as reason:
        return {"refused": str(reason)}
    proto = ModelProto()
    proto.ParseFromString(graph.data)
    return {"operators": tuple(sorted({node.op_type for node in proto.graph.node}))}
