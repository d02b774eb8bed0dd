"""What a received file says it is, without building or running any of it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from fedkt.bundle import SIGNATURE, peek
from fedkt.bundle.archive import Archive
from fedkt.bundle.manifest import Manifest
from fedkt.errors import BundleError, ConfigurationError, ModelError
from fedkt.live.final_file import check_signature, operators, parse_card, signature_of
from fedkt.models.onnx_rules import Limits
from fedkt.plan import Plan
from fedkt.system.files import read_at_most, shown_name


def describe_file(path: Path, plan: Plan | None = None, *, server_key: str | None = None) -> dict[str, Any]:
    """What a bundle or a final model holds, as plain JSON values; with a plan, what the server would say to it.

    With a server's key a final model must be signed with it, or nothing in it is looked at.
    """
    limits = Limits()
    data = read_at_most(path, limits.bundle_bytes)
    if data is None:
        raise BundleError(f"{path} is larger than {limits.bundle_bytes:,} bytes, which are not read.")
    if data[:2] == b"PK":
        if server_key is not None:
            raise ConfigurationError(f"{path} is a party's bundle, whose key is in the plan: --plan, not --server-key.")
        return describe_bundle(data, path, plan)
    if path.suffix.lower() == ".toml":
        raise BundleError(
            f"{path} is no bundle and no final model: inspect takes a party's .fedkt file or a final.onnx. "
            f"What a plan says:  fedkt plan check {path}"
        )
    if server_key is not None:
        check_signature(path, data, server_key)
    try:
        return describe_final(data, path, plan, server_key)
    except ModelError as reason:
        raise ModelError(f"{reason} (inspect takes a party's .fedkt file or a final.onnx.)") from reason


def describe_bundle(data: bytes, path: Path, plan: Plan | None) -> dict[str, Any]:
    """A party's bundle: its manifest, its signature, its models, its arrays."""
    from fedkt.live.inbox import judge, limits_for

    manifest = peek(data, source=str(path))
    archive = Archive(data, str(path), Limits())
    verdict = "" if plan is None else judge(plan, data, shown_name(path), limits_for(plan)).reason
    if SIGNATURE not in archive.names:
        signature = "none"
    elif plan is None:
        signature = "there is one; pass --plan to check it"
    elif manifest.party not in plan.keys:
        signature = f"there is one, but the plan lists no key for {manifest.party!r}"
    else:
        signature = signature_state(data, path, plan)
    what = " and ".join(each for each, held in (("students", manifest.files), ("arrays", manifest.arrays)) if held)
    said: dict[str, Any] = {
        "file": str(path),
        "kind": f"bundle of {what}",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "party": manifest.party,
        "plan": manifest.plan,
        "classes": manifest.classes,
        "features": manifest.n_features,
        "versions": manifest.versions,
        "signature": signature,
    }
    if manifest.issue is not None:
        said["issue"] = manifest.issue
    if manifest.claim is not None:
        said["claim"] = manifest.claim.model_dump(exclude_none=True)
    if plan is not None:
        said["accepted"] = not verdict
        said["verdict"] = verdict or "the server would count it"
    if manifest.counts is not None:
        said["counts"] = manifest.counts
    said["models"] = [
        {
            "name": entry.name,
            "bytes": entry.size,
            "sha256": entry.sha256,
            **student(archive.read(entry.name), manifest, plan),
        }
        for entry in manifest.files
    ]
    if manifest.arrays:
        said["arrays"] = [
            {"name": entry.name, "kind": entry.kind, "shape": entry.shape, "bytes": entry.size, "sha256": entry.sha256}
            for entry in manifest.arrays
        ]
    return said


def signature_state(data: bytes, path: Path, plan: Plan) -> str:
    """Whether the party's own key made the signature."""
    try:
        peek(data, source=str(path), keys=plan.keys)
    except BundleError as reason:
        return f"wrong: {reason}"
    return "right: made with the key that the plan lists"


def describe_final(data: bytes, path: Path, plan: Plan | None, signed_by: str | None) -> dict[str, Any]:
    """A final model: its card and its graph."""
    card = parse_card(data, str(path))
    beside = signature_of(path)
    if signed_by is not None:
        signature = f"right: signed by {signed_by}"
    else:
        signature = "there is one; pass --server-key to check it" if beside.is_file() else "none: not signed"
    said: dict[str, Any] = {
        "file": str(path),
        "kind": "final model",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "task": card.task,
        "plan": card.plan,
        "level": card.level,
        "label": card.columns.label,
        "classes": card.classes,
        "columns": [column.name for column in card.columns.columns],
        "features": card.columns.n_features,
        "privacy": {key: value for key, value in card.privacy.items() if value is not None},
        "signature": signature,
    }
    if plan is not None:
        said["accepted"] = same = card.plan == plan.digest
        said["verdict"] = "made under this plan" if same else f"made under another plan than {plan.digest[:12]}"
    shown = graph(data, n_features=card.columns.n_features, n_classes=len(card.classes))
    said["models"] = [{"name": path.name, "bytes": len(data), **shown}]
    return said


def student(data: bytes, manifest: Manifest, plan: Plan | None) -> dict[str, Any]:
    """The operators of a student; without a plan it may be one of any voting."""
    n_features, n_classes = manifest.n_features, len(manifest.classes)
    if plan is not None:
        return graph(data, n_features=n_features, n_classes=plan.expected.n_outputs, soft=plan.expected.soft)
    shown = graph(data, n_features=n_features, n_classes=n_classes, soft=True)
    if "refused" not in shown:
        return shown
    # One class more: a row that is not the party's.
    other = graph(data, n_features=n_features, n_classes=n_classes + 1, soft=True)
    return shown if "refused" in other else other


def graph(data: bytes, *, n_features: int, n_classes: int, soft: bool = False) -> dict[str, Any]:
    """The operators of a graph, or the rule it breaks."""
    try:
        return {"operators": operators(data, n_features=n_features, n_classes=n_classes, soft=soft)}
    except ModelError as reason:
        return {"refused": str(reason)}
