"""Students that are trained once: what they say is kept by the content of their lesson, and recalled in a later run.

A lesson has no part in what a server does: neither its final model nor its noise nor the rows it asks are in the key,
and a run that differs in these alone trains nothing at the parties. Kept is what a student says of the public rows,
which is all that is asked of it, to the bit; no model, which could only be unpickled.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedkt.algorithms.lesson import Lesson
from fedkt.algorithms.soft_lesson import SoftLesson, learn_all
from fedkt.federation import Diary, Party
from fedkt.models.base import Model
from fedkt.models.content import Undescribed, content_digest, rows_digest
from fedkt.models.ensemble import trains_networks
from fedkt.models.recalled import Answer, RecalledModel, recall
from fedkt.system.cache import Cache, DamagedEntry
from fedkt.system.parallel import Progress, cpu_clock, in_parallel
from fedkt.system.versions import made_by

FORMAT = 1
NOT_CONTENT = frozenset({"jobs", "diary", "progress", "noise_seed", "ledger", "shelf", "cache", "model"})
"""Fields of a party that decide nothing, and its model, which is in its lesson's roles."""


@dataclass(frozen=True)
class Learned:
    """The students of lessons that are learned together, and what the parties wrote down."""

    students: Sequence[Model]
    diaries: Sequence[Diary]
    """Of each party, in the order in which they first come."""
    seconds: float
    cpu_seconds: float
    recalled: bool = False


def learn_or_recall(lessons: Sequence[Lesson], *, soft: bool, jobs: int, progress: Progress | None) -> list[Model]:
    """The student of each lesson; of one that is in the parties' cache, or comes into it, what it says.

    That is how sure it is where it is asked for that (`soft`), else its labels. At level L2 it is both: there votings
    that ask for either teach their students alike.
    """
    if not lessons or lessons[0].party.cache is None:
        return list(learn_all(lessons, jobs=jobs, progress=progress))
    # Networks in other company end with other last digits, so what is trained as one stack is kept as one.
    if len(lessons) == 1 or trains_networks(each.roles for each in lessons):
        return join([lessons], [learn_together(lessons, soft=soft, jobs=jobs, progress=progress)])
    # Each is kept as soon as it is there.
    alone = [with_own_diaries([each]) for each in lessons]
    sizes = [len(each.party.y) for each in lessons]
    learned = list(in_parallel(partial(learn_together, soft=soft), alone, jobs=jobs, sizes=sizes, progress=progress))
    return join([[each] for each in lessons], learned)


def join(groups: Sequence[Sequence[Lesson]], learned: Sequence[Learned]) -> list[Model]:
    """The students of all groups; the parties' diaries are told."""
    students: list[Model] = []
    for lessons, one in zip(groups, learned, strict=True):
        students += one.students
        for party, diary in zip(parties_of(lessons), one.diaries, strict=True):
            party.diary.notes += diary.notes
            party.diary.alarms += diary.alarms
            party.diary.vote.labels += diary.vote.labels
            party.diary.bare_votes += diary.bare_votes
        if one.recalled:
            spared = lessons[0].party.diary.spared
            spared.students += len(lessons)
            spared.seconds += one.seconds
            spared.cpu_seconds += one.cpu_seconds
    return students


def parties_of(lessons: Sequence[Lesson]) -> list[Party]:
    """The parties of these lessons, each once."""
    return list({id(each.party): each.party for each in lessons}.values())


def with_own_diaries(lessons: Sequence[Lesson]) -> list[Lesson]:
    """The lessons at parties that write into new diaries; light enough for another process."""
    own = {id(party): replace(party, diary=Diary(), progress=None, shelf={}) for party in parties_of(lessons)}
    return [replace(each, party=own[id(each.party)]) for each in lessons]


def learn_together(
    lessons: Sequence[Lesson], *, soft: bool, jobs: int = 1, progress: Progress | None = None
) -> Learned:
    """What came of these lessons: recalled, or learned and kept."""
    cache = lessons[0].party.cache
    assert cache is not None
    lessons = with_own_diaries(lessons)
    try:
        key = key_of(lessons, soft=soft)
    except Undescribed:
        return learn(lessons, jobs=jobs, progress=progress)
    found, damage = recall_sound(cache, key)
    if found is None:
        with cache.sole_maker(key):
            if not damage:
                # Another process may have made it meanwhile.
                found, damage = recall_sound(cache, key)
            if found is None:
                found = keep(cache, key, lessons, learn(lessons, jobs=jobs, progress=progress), soft=soft)
    if damage:
        found.diaries[0].say(damage)
    return found


def recall_sound(cache: Cache, key: str) -> tuple[Learned | None, str]:
    """What lies in the cache under this key, None where nothing does; and what is wrong with an entry."""
    try:
        return recall_together(cache, key), ""
    except DamagedEntry as reason:
        return None, f"Finished students were kept, but damaged ({reason}), and are trained again."


def learn(lessons: Sequence[Lesson], *, jobs: int, progress: Progress | None) -> Learned:
    """The students, trained now."""
    started, cpu_started = time.perf_counter(), cpu_clock()
    students = learn_all(lessons, jobs=jobs, progress=progress)
    seconds, cpu_seconds = time.perf_counter() - started, cpu_clock() - cpu_started
    return Learned(students, [party.diary for party in parties_of(lessons)], seconds, cpu_seconds)


def key_of(lessons: Sequence[Lesson], *, soft: bool) -> str:
    """The digest of all that students of these lessons follow from; nothing of what a server does later."""
    digests: dict[int, str] = {}
    asked = [asks(each, soft=soft) for each in lessons]
    contents = [content_of(each, digests) for each in lessons]
    return content_digest(FORMAT, made_by(), devices(lessons), asked, contents)


def devices(lessons: Sequence[Lesson]) -> list[str]:
    """Where networks are trained that name no device, or `auto`: on another one they end with other last digits."""
    if not trains_networks(each.roles for each in lessons):
        return []
    from fedkt.models.neural.device import device_of

    return [str(device_of(name)) for name in (None, "auto")]


def asks(lesson: Lesson, *, soft: bool) -> dict[str, bool]:
    """What a student is asked for."""
    both = lesson.release is not None
    return {"labels": both or not soft, "probabilities": both or soft}


def content_of(lesson: Lesson, digests: dict[int, str]) -> dict[str, Any]:
    """What one student follows from; rows that several lessons share are read once."""
    party, release = lesson.party, lesson.release
    if release is not None and party.noise_seed is None:
        raise Undescribed("noise that is drawn once only")
    if party.diagnostic or party.ledger.file is not None or party.ledger.budget is not None:
        raise Undescribed("a run whose ledger has to see every vote")
    kind = type(lesson)
    if kind.__module__.partition(".")[0] != "fedkt":
        raise Undescribed(f"a lesson of the kind {kind.__module__}.{kind.__qualname__}")

    def digest(rows: Any) -> str:
        if id(rows) not in digests:
            digests[id(rows)] = content_digest(rows)
        return digests[id(rows)]

    own = {each.name: getattr(party, each.name) for each in fields(party) if each.name not in NOT_CONTENT}
    own |= {name: digest(own[name]) for name in ("public", "X", "asked_too")}
    return {
        **{each.name: getattr(lesson, each.name) for each in fields(lesson) if each.name not in ("party", "roles")},
        "kind": f"{kind.__module__}.{kind.__qualname__}",
        "teacher": lesson.roles.teacher,
        "student": lesson.roles.student,
        "party": own,
        "noise_seed": None if release is None else party.noise_seed,
    }


def keep(cache: Cache, key: str, lessons: Sequence[Lesson], learned: Learned, *, soft: bool) -> Learned:
    """What students say in their places, in the cache from now on; the students where that cannot be."""
    try:
        students = [
            what_is_said(lesson, model, soft=soft) for lesson, model in zip(lessons, learned.students, strict=True)
        ]
    except Exception:
        # A student that cannot even be asked is the server's to report.
        return learned
    kept = replace(learned, students=students)
    try:
        cache.write(key, to_bytes(kept))
    except OSError as reason:
        kept.diaries[0].say(f"Finished students could not be kept: {reason.strerror or reason}.")
    return kept


def what_is_said(lesson: Lesson, student: Any, *, soft: bool) -> RecalledModel:
    """What a student says of all that it will be asked about."""
    party = lesson.party
    tables = [party.public] if party.asked_too is None else [party.public, party.asked_too]
    n_outputs = lesson.n_outputs if isinstance(lesson, SoftLesson) else len(party.classes)
    named = {rows_digest(rows): rows for rows in tables}
    return recall(student, named, n_outputs, **asks(lesson, soft=soft))


def to_bytes(learned: Learned) -> bytes:
    """An entry: arrays, and the rest in words."""
    arrays: dict[str, NDArray[Any]] = {}
    students = []
    for place, student in enumerate(learned.students):
        assert isinstance(student, RecalledModel)
        students.append((list(student.answers), student.has_probabilities))
        for number, answer in enumerate(student.answers.values()):
            if answer.labels is not None:
                arrays[f"labels.{place}.{number}"] = answer.labels
            if answer.probabilities is not None:
                arrays[f"probabilities.{place}.{number}"] = answer.probabilities
    for place, diary in enumerate(learned.diaries):
        for number, (queries, labels) in enumerate(diary.vote.labels):
            arrays[f"vote.{place}.{number}"] = labels
            if queries is not None:
                arrays[f"queries.{place}.{number}"] = queries
    facts = {
        "students": students,
        "notes": [diary.notes for diary in learned.diaries],
        "votes": [len(diary.vote.labels) for diary in learned.diaries],
        "seconds": learned.seconds,
        "cpu_seconds": learned.cpu_seconds,
    }
    file = io.BytesIO()
    np.savez_compressed(
        file, allow_pickle=False, facts=np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8), **arrays
    )
    return file.getvalue()


def recall_together(cache: Cache, key: str) -> Learned | None:
    """What lies in the cache under this key, None where nothing does."""
    content = cache.read(key)
    if content is None:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = dict(archive)
    facts = json.loads(arrays["facts"].tobytes())
    students = [
        RecalledModel(
            {
                rows: Answer(arrays.get(f"labels.{place}.{number}"), arrays.get(f"probabilities.{place}.{number}"))
                for number, rows in enumerate(asked)
            },
            has_probabilities,
        )
        for place, (asked, has_probabilities) in enumerate(facts["students"])
    ]
    diaries = [Diary(notes=notes) for notes in facts["notes"]]
    for place, (diary, votes) in enumerate(zip(diaries, facts["votes"], strict=True)):
        diary.vote.labels = [
            (arrays.get(f"queries.{place}.{number}"), arrays[f"vote.{place}.{number}"]) for number in range(votes)
        ]
    return Learned(students, diaries, facts["seconds"], facts["cpu_seconds"], recalled=True)
