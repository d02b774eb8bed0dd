"""A plan for people: as TOML with comments, and explained in words."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from fedkt.algorithms.calibration import cautions
from fedkt.data.values import plural
from fedkt.privacy import statement
from fedkt.privacy.mechanisms import noise_cautions
from fedkt.privacy.statement import rounded_up

if TYPE_CHECKING:
    from fedkt.plan import Plan

HEAD = """\
A fedkt plan: what everyone agrees on before the one round. Send this file and the public rows to every party and to
the server. Comments and layout may be changed; anything else makes it another plan, and bundles made under it are
refused. What it means in words:  fedkt plan check plan.toml"""

OWN_KEYS = {"number": ("fill", "mean", "scale"), "category": ("categories",), "text": ("terms", "weights")}
"""What a plan says of a column besides its name and kind, and whether it may have gaps."""


def to_toml(plan: Plan) -> str:
    """The plan as TOML, with comments that explain it."""
    import tomlkit

    method = plan.method
    values: dict[str, Any] = plan.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"features"})
    document = tomlkit.document()
    for line in HEAD.splitlines():
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("format", tomlkit.item(values["format"]))
    document.add("task", tomlkit.item(values["task"]))
    for key, why in (
        ("classes", "the labels that may occur; their order is part of the agreement"),
        ("level", method.level_words[plan.level]),
        ("partitions", "s: how often a party cuts its rows; it sends one student per cut"),
        ("subsets", "t: subsets of a cut; one teacher is trained on each and never leaves the party"),
        ("voting", method.server_rule),
        ("seed", 'a number: everybody\'s training can be repeated; "private": everybody draws and keeps their own'),
        ("min_parties", "the server needs at least so many parties"),
    ):
        if key in values and key not in method.silent:
            document.add(key, tomlkit.item(values[key]).comment(why))
    if plan.privacy is not None:
        private = tomlkit.table()
        for line in method.privacy_comment.splitlines():
            private.add(tomlkit.comment(line))
        scale = tomlkit.inline_table()
        scale.update(values["privacy"].pop("scale"))
        private.add("mechanism", values["privacy"].pop("mechanism"))
        private.add("scale", scale)
        document.add("privacy", _fill(private, values["privacy"]))
    if values.get("card"):
        card = tomlkit.table()
        card.add(tomlkit.comment("For the model card that goes with the final model, in your own words."))
        document.add("card", _fill(card, values["card"]))
    public = tomlkit.table()
    public.add(
        tomlkit.comment("The unlabelled rows that everybody has; the file's bytes are checked, its name is a hint.")
    )
    document.add("public", _fill(public, values["public"]))
    models = tomlkit.table()
    for line in method.models_comment.splitlines():
        models.add(tomlkit.comment(line))
    own = values["models"].pop("parties")
    _fill(models, values["models"])
    if own:
        families = tomlkit.table()
        families.add(tomlkit.comment("Parties that use a family of their own."))
        models.add("parties", _fill(families, own))
    document.add("models", models)
    members = tomlkit.aot()
    for member in values["parties"]:
        members.append(_fill(tomlkit.table(), member))
    document.add("parties", members)
    schema = tomlkit.table()
    schema.add(tomlkit.comment("Fitted on the public rows only: nothing here comes from a party."))
    columns = values["schema"].pop("columns")
    _fill(schema, values["schema"])
    text = tomlkit.dumps(document) + "\n" + tomlkit.dumps({"schema": schema}).rstrip() + "\n" + _columns(columns)
    return text if plan.features is None else text + plan.features.to_toml()


def _fill(table: Any, values: dict[str, Any]) -> Any:
    for key, value in values.items():
        table.add(key, value)
    return table


def _columns(columns: list[dict[str, Any]]) -> str:
    """One inline table a line: a hundred columns stay readable."""
    import tomlkit

    lines = []
    for column in columns:
        row = tomlkit.inline_table()
        # What a column is not does not stand in a plan.
        meaning = [key for key in ("date", "boolean") if key in column]
        for key in ("name", "kind", "missing", *meaning, *OWN_KEYS[column["kind"]]):
            row.append(key, column[key])
        lines.append(f"    {row.as_string()},\n")
    return f"columns = [\n{''.join(lines)}]\n"


def explain(plan: Plan) -> str:
    """In words: what everybody agrees on, what travels, and what is (not) protected."""
    n, method = len(plan.names), plan.method
    schema = plan.columns
    categories = sum(column.kind == "category" for column in schema.columns)
    dates = sum(column.date for column in schema.columns)
    signers = [name for name in plan.names if name in plan.keys]
    if plan.seed == "private":
        seed = "Everybody draws a seed of their own and keeps it: nobody else can repeat their training."
    else:
        seed = f"Training follows from the seed {plan.seed} and everybody's name: it can be repeated."
        if plan.privacy is not None:
            seed += " The noise does not: it is drawn in secret."
    needed = f"at least {plan.min_parties}" if plan.min_parties is not None else "all, unless the server says otherwise"
    lines = [
        f"Plan {plan.digest[:12]}: {plan.task}",
        "",
        "What everybody agrees on",
        f"  Question    column {schema.label!r} is one of {_some(plan.classes)}",
        f"  Parties     {n}: {_some(plan.names)}; needed: {needed}",
        f"  Signatures  {_some(signers) + ' must sign' if signers else 'none: anybody can send a bundle in any name'}",
        f"  Public rows {plural(plan.public.rows, 'row')} in {plan.public.file} (SHA-256 {plan.public.sha256[:12]}…)",
        f"  Columns     {len(schema.columns)} ({categories} of them categories{f', {dates} dates' * (dates > 0)}"
        f"{_texts(plan)}), encoded as {plural(schema.n_features, 'number')}; "
        "categories, fills and scales come from the public rows only",
        "              A category that is not among the agreed ones "
        + ("is refused" if schema.unseen == "refuse" else "counts as none of them, and whoever reads it is told"),
        *_feature_lines(plan),
        f"  Models      {method.models_words(plan)}",
        *([f"  Weights     {_weights(plan)}"] if method.weighs_rows(plan.level) else []),
        f"  Seed        {seed}",
        *_card_lines(plan),
        "",
        "What happens",
        *_wrapped(method.party_words(plan)),
        *_wrapped(
            f"{sentence(method.server_rule)}"
            f"{f', on {method.queries_words(plan)}, adds noise to the counts' * (plan.level == 'L1')}, and "
            f"{method.final_words(plan)}."
        ),
        *_wrapped(plan_advice(plan)),
        "",
        "What travels, once",
        *method.travel_words(plan),
    ]
    return "\n".join([*lines, "", *promise_lines(plan)])


def _texts(plan: Plan) -> str:
    """How many columns are texts, and that words of the public ones are for everybody to read."""
    texts = [column for column in plan.columns.columns if column.kind == "text"]
    if not texts:
        return ""
    words = plural(sum(len(column.terms) for column in texts), "word")
    return f", {plural(len(texts), 'text')} of which {words} count, all of them in this plan"


def _feature_lines(plan: Plan) -> list[str]:
    """The feature map, where there is one."""
    if plan.features is None:
        return []
    return [
        f"  Features    {plan.features.width} numbers of a row, by a graph in this plan (SHA-256 "
        f"{plan.features.sha256[:12]}…), made from the public rows only"
    ]


def promise_lines(plan: Plan) -> list[str]:
    """What the noise promises, and what nobody promises, in words."""
    price = plan.price()
    if plan.privacy is None or price is None:
        return ["What is not protected", *plan.method.risk_lines(plan)]
    promise = statement(plan.level, price)
    owner = "the server" if plan.level == "L1" else "a party"
    first = "a vote is read" if plan.method.cuts_rows else "anything is summed up"
    scale = ", ".join(f"{name} {value:.4g}" for name, value in plan.privacy.scale.items())
    lines = [
        "What is promised",
        *_wrapped(
            f"epsilon {rounded_up(price.epsilon)} at delta {price.delta:g} for one {promise.unit} "
            f"({promise.adjacency}): {plan.privacy.mechanism} noise ({scale}) on "
            f"{plan.method.released_words(plan, price)}, by the accountant {price.accountant!r}."
        ),
        *_wrapped(plan.method.noise_words(plan, price)),
        *_wrapped(f"Protected: {promise.protects}. Private: {promise.satisfies}. To be trusted: {promise.trusted}."),
        *_wrapped(
            f"Budget: all releases of {owner} together may cost epsilon {plan.budget:g}. They are written into a "
            f"ledger before {first}, and what the budget does not cover is refused before anything is trained."
        ),
    ]
    lines += [line for words in plan.method.privacy_words(plan) for line in _wrapped(words)]
    lines += [line for caution in plan_cautions(plan) for line in _wrapped(f"Caution: {caution}")]
    return [*lines, "", "What is not protected", *_wrapped(promise.not_protected)]


def plan_cautions(plan: Plan) -> tuple[str, ...]:
    """What somebody asked to agree should hear before trusting the plan's promise."""
    noise = None if plan.privacy is None else plan.privacy.mechanism
    sizes = [1] * len(plan.parties) if plan.level == "L1" else [1]
    return (*noise_cautions(noise), *cautions(plan.level, plan.price(), sizes))


def plan_advice(plan: Plan) -> str:
    """What to know beforehand of how the parties pass on what they know; empty where there is nothing."""
    return plan.method.advice(plan)


def sentence(words: str) -> str:
    """The words with a capital letter."""
    return words[:1].upper() + words[1:]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _card_lines(plan: Plan) -> list[str]:
    """What the model card will say in the words of whoever made the plan."""
    texts = {} if plan.card is None else plan.card.model_dump(exclude_none=True)
    titles = {"purpose": "Purpose", "limits": "Not for", "contact": "Contact"}
    return [f"  {titles[name]:<11} {text}" for name, text in texts.items()]


def _weights(plan: Plan) -> str:
    """How far a party is believed that says, or whose student makes believe, that it has many rows."""
    limits = [f"{member.name} to {member.rows:,} rows" for member in plan.parties if member.rows is not None]
    free = [member.name for member in plan.parties if member.rows is None]
    notes = [f"limited: {_some(limits)}"] if limits else []
    if free:
        notes.append(f"nobody checks how many rows {_some(free)} may claim to have (--rows NAME=NUMBER limits it)")
    return "; ".join(notes)


def _some(values: Any) -> str:
    words = [str(each) for each in values]
    return ", ".join(words[:20]) + (f", … ({len(words)} in all)" if len(words) > 20 else "")
