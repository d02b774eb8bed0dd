"""`fedkt party --check`: everything that a run would look at, and nothing of what it would do.

Nothing is trained on a party's rows, nothing is spent and nothing is written, not even a lock.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fedkt.algorithms.teachers import refuse_early_stopping, try_on_public_rows
from fedkt.data.format import PLAIN, Format
from fedkt.data.mapping import NO_MAPPING, TableMapping
from fedkt.data.nearest import nearest
from fedkt.data.values import plural
from fedkt.errors import ConfigurationError, DataError, FedKTError, PrivacyError
from fedkt.live.check_data import OwnFile, check_data
from fedkt.live.duration import about_seconds, public_party, roles_at
from fedkt.live.findings import Findings
from fedkt.live.keys import check_key, read_key
from fedkt.live.mailbox import FolderMailbox, Mailbox, bundle_name
from fedkt.live.outbox import check_issue
from fedkt.live.shelf import LOCK, WORK, Seeds, check_is_shelf, unfinished_run
from fedkt.live.spending import check_budget, check_limits, due_releases, ledger_path, own_budget
from fedkt.plan import Plan
from fedkt.plan.text import plan_cautions
from fedkt.privacy.ledger import total_of
from fedkt.privacy.ledger_file import LedgerFile
from fedkt.privacy.statement import rounded_up
from fedkt.system.files import can_be_written, nearest_folder
from fedkt.system.locks import is_free

SPARE_BYTES = 50 * 2**20
"""What a run may write beside its rows."""


def check_party(
    plan: Plan,
    name: str,
    *,
    data: Path,
    public: Path,
    outbox: Mailbox,
    key: Path | None = None,
    jobs: int = 1,
    work: Path | None = None,
    ledger: Path | None = None,
    identity: str | None = None,
    hold_out: float | None = None,
    issue: int | None = None,
    most_epsilon: float | None = None,
    most_delta: float | None = None,
    form: Format = PLAIN,
    choices: TableMapping = NO_MAPPING,
) -> Findings:
    """What `run_party` would find with the same settings: all its refusals, and what it would cost, send and take."""
    found = Findings()
    found.facts |= {"party": name, "plan": plan.digest, "level": plan.level}
    found.add("Plan", f"{plan.digest[:12]}, {plan.task}: level {plan.level}, {plan.method.called}")
    if found.attempt("Name", lambda: plan.require(name)) is None:
        # Looked on as if it were the one that is probably meant.
        name = nearest(name, plan.names) or plan.names[0]
    else:
        found.add("Name", f"{name!r} is in the plan: {', '.join(plan.names[:20])}{', …' * (len(plan.names) > 20)}")
    found.attempt("Limits", lambda: check_limits(plan, name, most_epsilon=most_epsilon, most_delta=most_delta))
    check_signature(found, plan, name, key, issue)
    rows = check_public(found, plan, public)
    own = check_data(found, plan, name, data, identity=identity, hold_out=hold_out, form=form, choices=choices)
    check_outbox(found, outbox, bundle_name(name))
    folder = work if work is not None else WORK / f"{name}-{plan.digest[:12]}"
    seeds = check_work(found, plan, name, folder, own)
    check_disk(found, plan, folder, outbox, own)
    check_ledger(found, plan, name, data, ledger, seeds, most_epsilon)
    found.add("Travels", " ".join(line.strip() for line in plan.method.travel_words(plan)))
    if rows is not None:
        check_teacher(found, plan, name, rows)
    if rows is not None and own is not None:
        check_time(found, plan, name, rows, len(own.records.y), jobs)
    found.facts["would_run"] = not found.problems
    return found


def check_signature(found: Findings, plan: Plan, name: str, path: Path | None, issue: int | None) -> None:
    """The key that signs, and the number of what it signs."""
    key = None if path is None else found.attempt("Key", lambda: read_key(path))
    if path is not None and key is None:
        return
    before = len(found.problems)
    found.attempt("Key", lambda: check_key(plan, name, key))
    found.attempt("Key", lambda: check_issue(issue, key))
    if len(found.problems) == before:
        found.add("Key", "none agreed on: anybody could send a bundle in your name" if key is None else f"{path}")


def check_public(found: Findings, plan: Plan, public: Path) -> Any:
    """The public rows, encoded; None where they are not those of the plan, or the plan does not work on them."""

    def encoded() -> Any:
        rows = plan.columns.encode(plan.read_public(public))
        plan.method.try_on(plan, rows)
        return rows

    rows = found.attempt("Public", encoded)
    if rows is not None:
        found.add("Public", f"{public} is the public file of this plan: {plural(len(rows), 'row')}")
    return rows


def check_teacher(found: Findings, plan: Plan, name: str, public: Any) -> None:
    """At level L2: a teacher that can be trained on public rows, as the run demands."""
    if plan.level == "L2" and plan.method.cuts_rows:
        party = public_party(plan, name, public)
        teacher = roles_at(plan, party).teacher

        def tried() -> None:
            refuse_early_stopping(teacher)
            try_on_public_rows(teacher, party)

        found.attempt("Models", tried)


def check_outbox(found: Findings, outbox: Mailbox, name: str) -> None:
    """Where the bundle would go."""
    before = len(found.problems)
    found.attempt("Outbox", lambda: outbox.check_writable(name))
    if len(found.problems) == before:
        found.add("Outbox", f"{outbox.where(name)} can be written")


def check_work(found: Findings, plan: Plan, name: str, folder: Path, own: OwnFile | None) -> Seeds | None:
    """The working folder, and the run that may lie there unfinished."""

    def usable() -> bool:
        check_is_shelf(folder)
        if (folder / LOCK).exists() and not is_free(folder / LOCK):
            raise ConfigurationError(f"Another process is working for {name!r} in {folder}. Wait until it is through.")
        if not can_be_written(folder):
            raise DataError(f"{folder} cannot be written to. Pass a folder of yours as --work.")
        return True

    if not found.attempt("Work", usable) or own is None:
        return None
    run = found.attempt("Work", lambda: unfinished_run(folder, plan, name, own.digest))
    if run is None:
        return None
    seeds, difference = run
    if seeds is not None:
        found.add("Work", f"{folder} holds an unfinished run, which goes on at no further charge")
    elif difference:
        found.add("Work", f"{folder} holds work begun with another {difference}; it would be done again", "note")
    else:
        found.add("Work", f"{folder} is free")
    return seeds


def check_disk(found: Findings, plan: Plan, folder: Path, outbox: Mailbox, own: OwnFile | None) -> None:
    """Whether there is room for unfinished work and the bundle."""
    rows = plan.public.rows + (0 if own is None else len(own.records.y))
    needed = SPARE_BYTES + 4 * rows * plan.columns.n_features
    places = [folder, outbox.folder] if isinstance(outbox, FolderMailbox) else [folder]
    free = min(shutil.disk_usage(nearest_folder(each)).free for each in places)
    found.facts["free_bytes"] = free
    words = f"{free / 2**30:,.1f} GB free, about {needed / 2**20:,.0f} MB may be needed"
    found.add("Disk", words, "ok" if free >= needed else "problem")


def check_ledger(
    found: Findings,
    plan: Plan,
    name: str,
    data: Path,
    ledger: Path | None,
    seeds: Seeds | None,
    most_epsilon: float | None,
) -> None:
    """What a run would cost, and whether the ledger's budget covers it."""
    before = len(found.problems)
    path = found.attempt("Ledger", lambda: ledger_path(plan, data, ledger))
    price = plan.price()
    if price is None or plan.privacy is None:
        found.add("Cost", "no noise, so no epsilon: whoever sees what you send can learn something about your rows")
        return
    if plan.level == "L1":
        found.add("Cost", f"nothing of yours: the server adds the noise and pays epsilon {rounded_up(price.epsilon)}")
        return
    for caution in plan_cautions(plan):
        found.add("Cost", caution, "note")
    found.facts |= {"epsilon": price.epsilon, "delta": price.delta}
    if path is None or len(found.problems) > before:
        return

    def total() -> float:
        if not path.parent.is_dir() or not can_be_written(path.parent):
            raise PrivacyError(f"The ledger {path} cannot be written: its folder is not there, or not yours.")
        ledger_file = LedgerFile.peek(path)
        due = due_releases(plan, name, ledger_file, None if seeds is None else seeds.noise_seed)
        spent, delta, budget = ledger_file.spent(who=name), price.delta, own_budget(plan, most_epsilon)
        assert budget is not None
        so_far = f"{plural(len(spent), 'release')}, epsilon {rounded_up(total_of(spent, delta))}" if spent else "empty"
        if not path.exists():
            so_far = "it would be new; if there is another one for these rows, pass it with --ledger"
        found.add("Ledger", f"{path}: {so_far}. Budget: epsilon {budget:g} at delta {delta:g}")
        return check_budget(plan, ledger_file, due, budget=budget, delta=delta) if due else total_of(spent, delta)

    after = found.attempt("Cost", total)
    if after is not None:
        found.facts["total_epsilon"] = after
        charged = "nothing more: it is paid for" if seeds is not None else f"epsilon {rounded_up(price.epsilon)}"
        found.add("Cost", f"{charged} at delta {price.delta:g} for one record; {rounded_up(after)} with all before it")


def check_time(found: Findings, plan: Plan, name: str, public: Any, n_rows: int, jobs: int) -> None:
    """About how long a run would take."""
    try:
        seconds = about_seconds(plan, name, public, n_rows, jobs=jobs)
    except FedKTError as reason:
        found.add("Time", f"not known: {reason}", "note")
        return
    found.facts["about_seconds"] = round(seconds, 1)
    found.add("Time", f"about {in_words(seconds)}, with {plural(jobs, 'job')}; a part was tried on public rows")


def in_words(seconds: float) -> str:
    """A duration as one says it."""
    if seconds < 90:
        return plural(max(1, round(seconds)), "second")
    return plural(round(seconds / 60), "minute") if seconds < 5400 else plural(round(seconds / 3600), "hour")
