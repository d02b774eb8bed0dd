"""Making and reading plans: every value checked, every refusal in words."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from fedkt.algorithms.party_total import shares_in_order
from fedkt.algorithms.voting import Consistent
from fedkt.data.images import image_shape
from fedkt.data.schema import fit_schema
from fedkt.data.words import USUAL_TERMS
from fedkt.errors import ConfigurationError, PlanError
from fedkt.models.catalogue import canonical_name
from fedkt.plan.agreement import Plan
from fedkt.plan.limits import check_lengths, check_text
from fedkt.plan.method import Method
from fedkt.plan.methods import make_method, method_names
from fedkt.plan.parts import faults_of
from fedkt.plan.privacy import privacy_table, rounded_budget
from fedkt.plan.public_file import PublicFile, read_public_file
from fedkt.privacy.ledger import require_level
from fedkt.system.files import open_plain

FORMAT = 1
MAX_PLAN_BYTES = 16 * 2**20


def make_plan(
    public: str | Path | PublicFile,
    *,
    label: str,
    classes: Sequence[str | int],
    parties: Sequence[str],
    model: str,
    party_models: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
    categorical: Sequence[str] = (),
    text: Sequence[str] = (),
    terms: int = USUAL_TERMS,
    ignore: Sequence[str] = (),
    missing: Literal["as-seen", "allow", "refuse"] = "allow",
    unseen: Literal["ignore", "refuse"] = "ignore",
    task: str | None = None,
    level: str = "L0",
    partitions: int | None = None,
    subsets: int | None = None,
    voting: str = "consistent",
    rows: Mapping[str, int] | None = None,
    privacy: Mapping[str, Any] | None = None,
    card: Mapping[str, str | None] | None = None,
    **settings: Any,
) -> Plan:
    """A plan around the public rows in a file: the schema is fitted on them and on nothing else.

    Columns in `text` hold texts, of which at most `terms` words count.
    `privacy` at level L1 or L2 is mechanism and scale, or an epsilon that the smallest noise is found for, and queries,
    delta, budget (by default what one run costs) and, by their names, class shares that are public. `rows` are the most
    that a party may say it has (expert voting, moments), `card` purpose, limits and contact. `settings` are teacher,
    student, final, epochs, copies, seed and min_parties.
    """
    require_level(level)
    check_members(parties, keys=keys or {}, rows=rows or {})
    shared = public if isinstance(public, PublicFile) else read_public_file(public, label)
    table = shared.table
    if label in (*categorical, *text, *ignore):
        raise PlanError(f"{label!r} is the label; it cannot also be a categorical, a text or an ignored column.")
    kinds: dict[str, Any] = {"categorical": categorical, "text": text, "terms": terms, "ignore": ignore}
    schema = fit_schema(table, label=label, missing=missing, unseen=unseen, **kinds)
    models: dict[str, Any] = {"default": canonical_name(model)}
    models["parties"] = {name: canonical_name(family) for name, family in (party_models or {}).items()}
    roles = {role: settings.pop(role) for role in ("teacher", "student", "final") if role in settings}
    models |= {role: None if family is None else canonical_name(family) for role, family in roles.items()}
    models |= {name: settings.pop(name) for name in ("epochs", "copies") if name in settings}
    method = new_method(voting)
    shape = method.shape(level, partitions, subsets)
    method.check_new(level, shape, models)
    figures = {"public_rows": table.n_rows, "classes": len(classes), "parties": len(parties)}
    asked = with_shares(privacy or {}, classes)
    noise = privacy_table(asked, method=method, level=level, figures=figures, shape=shape)
    features = method.features(schema.encode(table), image_shape(schema.feature_names), level)
    values: dict[str, Any] = {
        "format": FORMAT,
        "task": task or label,
        "classes": list(classes),
        "level": level,
        **shape,
        "voting": method.name,
        "privacy": noise,
        "card": {name: text for name, text in (card or {}).items() if text is not None} or None,
        "public": {"file": shared.name, "sha256": shared.sha256, "rows": table.n_rows},
        "models": models,
        "parties": [{"name": name, "key": (keys or {}).get(name), "rows": (rows or {}).get(name)} for name in parties],
        "schema": schema.model_dump(mode="json"),
        "features": None if features is None else features.model_dump(mode="json"),
        **settings,
    }
    plan = validate_plan(values, "The new plan")
    return plan if plan.privacy is None else with_budget(plan)


def check_members(parties: Sequence[str], *, keys: Mapping[str, str], rows: Mapping[str, int]) -> None:
    """Refuse a key or a number of rows for somebody who does not take part."""
    for what, names in (("A key was", list(keys)), ("Rows were", list(rows))):
        strangers = [name for name in names if name not in parties]
        if strangers:
            raise PlanError(f"{what} given for {strangers[0]!r}, which is not among the parties: {', '.join(parties)}.")


def with_shares(privacy: Mapping[str, Any], classes: Sequence[str | int]) -> dict[str, Any]:
    """What was asked for, class shares by name as one for each class in the plan's order."""
    shares = privacy.get("class_shares")
    if not shares:
        return dict(privacy)
    named = {str(name): share for name, share in dict(shares).items()}
    return {**privacy, "class_shares": shares_in_order(named, [str(each) for each in classes])}


def new_method(name: str) -> Method:
    """The voting of a new plan, or what takes its place."""
    try:
        return make_method(name)
    except ConfigurationError as reason:
        raise PlanError(f"The new plan: voting: {str(reason)[0].lower()}{str(reason)[1:]}") from reason


def with_budget(plan: Plan) -> Plan:
    """The plan with its budget written out, refused where the budget does not cover one run."""
    price, budget = plan.price(), plan.budget
    assert price is not None
    assert budget is not None
    assert plan.privacy is not None
    if not price.epsilon <= budget:
        raise PlanError(
            f"The budget of epsilon {budget:g} does not cover one run, which costs {rounded_budget(price.epsilon):g} "
            f"at delta {price.delta:g}. Ask fewer queries, add more noise, or agree on a larger budget."
        )
    return plan.model_copy(update={"privacy": plan.privacy.model_copy(update={"budget": budget})})


def read_plan(path: str | Path) -> Plan:
    """The plan in a TOML file, every value checked."""
    path = Path(path)
    if not path.is_file():
        raise PlanError(f"{path} is not a file. Pass the plan.toml that you were sent, or make one: fedkt plan new")
    with open_plain(path) as file:
        data = file.read(MAX_PLAN_BYTES + 1)
    if len(data) > MAX_PLAN_BYTES:
        raise PlanError(f"{path} is larger than {MAX_PLAN_BYTES:,} bytes, which no plan is.")
    return parse_plan(data, str(path))


def parse_plan(data: bytes, source: str) -> Plan:
    """The plan in the bytes of a TOML file; `source` is what messages call it."""
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
        check_text(text, source)
        values = tomllib.loads(text)
    except UnicodeDecodeError as reason:
        raise PlanError(f"{source} is not UTF-8 text, so it is no plan.") from reason
    except RecursionError as reason:
        raise PlanError(
            f"{source} is not TOML that can be read: nested too deeply. Ask for the plan again."
        ) from reason
    except ValueError as reason:
        # Also a number of thousands of digits, which is no TOMLDecodeError.
        raise PlanError(
            f"{source} is not TOML: {str(reason)[:200]}. Is it the plan? If so, ask for it again."
        ) from reason
    # True equals 1.
    if type(values.get("format")) is not int or values["format"] != FORMAT:
        raise PlanError(
            f"{source}, format: got {repr(values.get('format'))[:80]}, this version of fedkt reads plans of format "
            f"{FORMAT}. Use the version of fedkt that made the plan, or make a new plan."
        )
    check_lengths(values, source)
    return validate_plan(values, source)


def validate_plan(values: dict[str, Any], source: str) -> Plan:
    """The plan with these values, each of them checked."""
    for name, usual in method_named(values).shape(str(values.get("level", "L0")), None, None).items():
        values.setdefault(name, usual)
    try:
        # By way of JSON: strict, but lists may be tuples. Dates and infinities have no JSON and no place in a plan.
        text = json.dumps(values, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as reason:
        raise PlanError(f"{source}: {reason}. A plan has texts, whole numbers, finite decimals and lists.") from reason
    try:
        return Plan.model_validate_json(text, strict=True)
    except ValidationError as reason:
        raise PlanError(_fault_words(reason, source)) from reason


def method_named(values: dict[str, Any]) -> Method:
    """What a plan names as its voting, for its defaults; one that there is not is refused with all other faults."""
    name = values.get("voting", Consistent.name)
    return make_method(name if isinstance(name, str) and name in method_names() else Consistent.name)


def _fault_words(reason: ValidationError, source: str) -> str:
    """The first few faults: file, key, what was got, what is wanted."""
    faults = []
    for key, kind, words in faults_of(reason):
        if kind == "missing":
            faults.append(f"{key} is missing")
        elif kind == "extra_forbidden":
            faults.append(f"{key} is not a key that a plan has; check the spelling or remove it")
        else:
            faults.append(f"{key}: {words}" if key else words)
    more = f" And {len(faults) - 5} more." if len(faults) > 5 else ""
    return f"{source}: {'; '.join(faults[:5])}.{more}"
