"""A plan for people: as TOML with comments, and explained in words."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from fedkt.algorithms.calibration import cautions
from fedkt.algorithms.chances import chances_in_words
from fedkt.algorithms.fedkt import number_of_queries
from fedkt.data.values import plural
from fedkt.privacy import statement
from fedkt.privacy.statement import rounded_up

if TYPE_CHECKING:
    from fedkt.plan import Plan

HEAD = """\
A fedkt plan: what everyone agrees on before the one round. Send this file and the public rows to every party and to
the server. Comments and layout may be changed; anything else makes it another plan, and bundles made under it are
refused. What it means in words:  fedkt plan check plan.toml"""


LEVELS = {
    "L0": "no noise, no privacy promise beyond that rows do not travel",
    "L1": "noise at the server protects each party; the server sees the students without noise",
    "L2": "noise at the parties protects each record before anything leaves",
}
UNPROTECTED = (
    "  Level L0 adds no noise: epsilon is infinite. A student is trained on what the party's rows say of public rows,",
    "  and whoever holds it can learn something about those rows, for instance by asking it many questions. Send",
    "  bundles only to a server you trust with that, over a channel you trust.",
)
PRIVATE = """\
mechanism and scale: the noise on the vote counts. queries: public rows that are asked (a number, or a fraction).
budget: the epsilon that all releases of one owner (L1: the server, L2: a party) may cost together, at this delta."""


def to_toml(plan: Plan) -> str:
    """The plan as TOML, with comments that explain it."""
    import tomlkit

    values: dict[str, Any] = plan.model_dump(mode="json", by_alias=True, exclude_none=True)
    document = tomlkit.document()
    for line in HEAD.splitlines():
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("format", tomlkit.item(values["format"]))
    document.add("task", tomlkit.item(values["task"]))
    for key, why in (
        ("classes", "the labels that may occur; their order is part of the agreement"),
        ("level", LEVELS[plan.level]),
        ("partitions", "s: how often a party cuts its rows; it sends one student per cut"),
        ("subsets", "t: subsets of a cut; one teacher is trained on each and never leaves the party"),
        ("voting", plan.voting_rule.server_rule),
        ("seed", 'a number: everybody\'s training can be repeated; "private": everybody draws and keeps their own'),
        ("min_parties", "the server needs at least so many parties"),
    ):
        if key in values and values[key] != "consistent":
            document.add(key, tomlkit.item(values[key]).comment(why))
    if plan.privacy is not None:
        private = tomlkit.table()
        for line in PRIVATE.splitlines():
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
    models.add(tomlkit.comment("Families by name; teacher, student and final follow from the default unless given."))
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
    return tomlkit.dumps(document) + "\n" + tomlkit.dumps({"schema": schema}).rstrip() + "\n" + _columns(columns)


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
        private = ("categories",) if column["kind"] == "category" else ("fill", "mean", "scale")
        for key in ("name", "kind", "missing", *private):
            row.append(key, column[key])
        lines.append(f"    {row.as_string()},\n")
    return f"columns = [\n{''.join(lines)}]\n"


def explain(plan: Plan) -> str:
    """In words: what everybody agrees on, what travels, and what is (not) protected."""
    s, n, voting = plan.partitions, len(plan.names), plan.voting_rule
    students = plural(s, "student")
    schema = plan.columns
    categories = sum(column.kind == "category" for column in schema.columns)
    signers = [name for name in plan.names if name in plan.keys]
    models = plan.models
    if plan.seed == "private":
        seed = "Everybody draws a seed of their own and keeps it: nobody else can repeat their training."
    else:
        seed = f"Training follows from the seed {plan.seed} and everybody's name: it can be repeated."
        if plan.privacy is not None:
            seed += " The noise does not: it is drawn in secret."
    needed = f"at least {plan.min_parties}" if plan.min_parties is not None else "all, unless the server says otherwise"
    queries = "the public rows"
    if plan.privacy is not None:
        k = number_of_queries(plan.privacy.queries, plan.public.rows)
        queries = f"{k} of the public rows (the same for everybody, chosen by a fixed rule)"
    silent = " and votes" if plan.level == "L2" or voting.probabilities else ", votes and row counts"
    lines = [
        f"Plan {plan.digest[:12]}: {plan.task}",
        "",
        "What everybody agrees on",
        f"  Question    column {schema.label!r} is one of {_some(plan.classes)}",
        f"  Parties     {n}: {_some(plan.names)}; needed: {needed}",
        f"  Signatures  {_some(signers) + ' must sign' if signers else 'none: anybody can send a bundle in any name'}",
        f"  Public rows {plural(plan.public.rows, 'row')} in {plan.public.file} (SHA-256 {plan.public.sha256[:12]}…)",
        f"  Columns     {len(schema.columns)} ({categories} of them categories), encoded as "
        f"{plural(schema.n_features, 'number')}; "
        "categories, fills and scales come from the public rows only",
        "              A category that is not among the agreed ones "
        + ("is refused" if schema.unseen == "refuse" else "counts as none of them, and whoever reads it is told"),
        f"  Models      {models_in_words(plan)}",
        *([f"  Weights     {_weights(plan)}"] if voting.probabilities else []),
        f"  Seed        {seed}",
        *_card_lines(plan),
        "",
        "What happens",
        *_wrapped(_at_a_party(plan, students, queries)),
        *_wrapped(
            f"{sentence(voting.server_rule)}"
            f"{f', on {queries}, adds noise to the counts' * (plan.level == 'L1')}, and trains the final model "
            f"({models.final or models.default})."
        ),
        *_wrapped(plan_advice(plan)),
        "",
        "What travels, once",
        f"  One file per party: {students} as ONNX, and a manifest (party, plan, classes, versions, digests"
        f"{', privacy claim' * (plan.level == 'L2')}{', the rows of each class' * voting.class_counts}).",
        f"  Rows, labels, teachers{silent} stay with the party.",
    ]
    return "\n".join([*lines, "", *promise_lines(plan)])


def _at_a_party(plan: Plan, students: str, queries: str) -> str:
    """What each party does before it sends anything."""
    if plan.voting_rule.background_class:
        return (
            "Each party trains two teachers on its rows and, as one class more, on a half of the public rows each, "
            "which are not its own. Each says of the other half how likely a row is of each class and how likely not "
            "the party's at all, and a student learns that."
        )
    s, t = plan.partitions, plan.subsets
    if plan.voting_rule.probabilities and plan.level == "L0":
        teaches = "a teacher on all its rows" if t == 1 else f"a teacher on each of {t} parts of its rows"
        return (
            f"Each party trains {teaches} and asks it how probable it finds the classes of each public row. A student "
            f"learns these probabilities or, in families that cannot, the likeliest class: {students} a party."
        )
    return (
        f"Each party cuts its rows {plural(s, 'time')} into {plural(t, 'subset')}, trains a teacher on each, lets "
        f"the {t} vote on {queries if plan.level == 'L2' else 'the public rows'}, "
        f"{'adds noise to the counts, ' * (plan.level == 'L2')}and trains a student on the winning labels: "
        f"{students} a party."
    )


def promise_lines(plan: Plan) -> list[str]:
    """What the noise promises, and what nobody promises, in words."""
    price = plan.price()
    if plan.privacy is None or price is None:
        return ["What is not protected", *UNPROTECTED, *plan.voting_rule.reveals]
    words = statement(plan.level, price)
    owner = "the server" if plan.level == "L1" else "a party"
    scale = ", ".join(f"{name} {value:.4g}" for name, value in plan.privacy.scale.items())
    lines = [
        "What is promised",
        *_wrapped(
            f"epsilon {rounded_up(price.epsilon)} at delta {price.delta:g} for one {words.unit} ({words.adjacency}): "
            f"{plan.privacy.mechanism} noise ({scale}) on {plural(price.release.queries, 'released label')}, "
            f"{plural(price.release.voters, 'voter')}, by the accountant {price.accountant!r}."
        ),
        *_wrapped(chances_in_words(price)),
        *_wrapped(f"Protected: {words.protects}. Private: {words.satisfies}. To be trusted: {words.trusted}."),
        *_wrapped(
            f"Budget: all releases of {owner} together may cost epsilon {plan.budget:g}. They are written into a "
            "ledger before a vote is read, and what the budget does not cover is refused before anything is trained."
        ),
    ]
    if plan.privacy.count_sigma is not None:
        lines += _wrapped(
            f"With them every party's class counts leave, with Gaussian noise (sigma {plan.privacy.count_sigma:.4g} "
            "rows). They are in this price."
        )
    if plan.level == "L2":
        lines += _wrapped(
            f"Every party has {plural(plan.subsets, 'voter')}, whatever its rows: a subset without rows, or whose "
            "teacher fails, votes by a fixed rule. Which subset a record is in, its own identity decides (--id)."
        )
        if plan.privacy.adjacency == "add-or-remove":
            lines += _wrapped(
                "A record may also be added or removed: every party needs identities of its records, that is --id "
                "COLUMN, ids in an NPZ file, or files of images."
            )
    lines += [line for caution in plan_cautions(plan) for line in _wrapped(f"Caution: {caution}")]
    return [*lines, "", "What is not protected", *_wrapped(words.not_protected)]


def plan_cautions(plan: Plan) -> tuple[str, ...]:
    """What somebody asked to agree should hear before trusting the plan's promise."""
    return cautions(plan.level, plan.price(), [1] * len(plan.parties) if plan.level == "L1" else [1])


def plan_advice(plan: Plan) -> str:
    """What to know about the plan's voting beforehand; nothing where nobody can be outvoted."""
    return plan.voting_rule.advice(plan.level) if len(plan.parties) > 1 else ""


def sentence(words: str) -> str:
    """The words with a capital letter."""
    return words[:1].upper() + words[1:]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def models_in_words(plan: Plan) -> str:
    """The families that are trained, and by whom."""
    models = plan.models
    roles = [f"{role} {name}" for role in ("teacher", "student", "final") if (name := getattr(models, role))]
    own = [f"{party} uses {family}" for party, family in models.parties.items()]
    long = [] if models.epochs is None else [f"networks are trained for {plural(models.epochs, 'epoch')}"]
    copies = ["the final network also learns each public image shifted by one pixel"] if models.copies else []
    return "; ".join([models.default, *roles, *own, *long, *copies])


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
