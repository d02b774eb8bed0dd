"""Two neighbouring files of one party at level L2, and what of it reaches the teachers and the outbox."""

import csv
import gzip
import struct
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from unittest import mock

import numpy as np

from fedkt.algorithms import lesson
from fedkt.live.mailbox import FolderMailbox
from fedkt.live.party import run_party
from fedkt.plan import make_plan

N_ROWS, PLACE = 36, 4
"""36 records, and the one that changes."""
CLASSES = ("a", "b")
NUMBERED = ("1", "2")


@dataclass(frozen=True)
class Records:
    """A party's records: names, pixels and classes."""

    names: tuple[str, ...]
    pixels: np.ndarray
    classes: tuple[int, ...]

    @property
    def side(self) -> int:
        """Height and width of an image."""
        return round(self.pixels.shape[1] ** 0.5)

    def replaced(self) -> "Records":
        """The watched record with other pixels."""
        pixels = self.pixels.copy()
        pixels[PLACE] = 255 - pixels[PLACE]
        return replace(self, pixels=pixels)

    def relabelled(self) -> "Records":
        """The watched record with another class."""
        classes = list(self.classes)
        classes[PLACE] = 1 - classes[PLACE]
        return replace(self, classes=tuple(classes))

    def moved(self) -> "Records":
        """The watched record at the end of the file."""
        return self.taken([*(row for row in range(len(self.names)) if row != PLACE), PLACE])

    def removed(self) -> "Records":
        """All records but the watched one."""
        return self.taken([row for row in range(len(self.names)) if row != PLACE])

    def taken(self, rows: list[int]) -> "Records":
        """The records in these rows."""
        return Records(
            tuple(self.names[row] for row in rows), self.pixels[rows], tuple(self.classes[row] for row in rows)
        )


def records(side: int = 3) -> Records:
    """Records whose first pixel tells the class, in the order of their class: as an export often is."""
    rng = np.random.default_rng(7)
    classes = tuple([0] * (N_ROWS // 2) + [1] * (N_ROWS // 2))
    pixels = rng.integers(0, 256, size=(N_ROWS, side * side))
    pixels[:, 0] = np.where(np.array(classes) == 1, 200, 50) + rng.integers(-45, 45, size=N_ROWS)
    return Records(tuple(f"{row:03d}" for row in rng.permutation(N_ROWS)), pixels.astype(np.uint8), classes)


def write_csv(path: Path, own: Records, labelled: bool = True) -> Path:
    path = path.with_suffix(".csv")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"p{j}" for j in range(own.pixels.shape[1])), "patient", *(["kind"] if labelled else [])])
        for name, row, code in zip(own.names, own.pixels.tolist(), own.classes, strict=True):
            writer.writerow([*row, name, *([CLASSES[code]] if labelled else [])])
    return path


def write_parquet(path: Path, own: Records, labelled: bool = True) -> Path:
    import pandas

    columns = {f"p{j}": own.pixels[:, j].astype(float) for j in range(own.pixels.shape[1])} | {
        "patient": list(own.names)
    }
    path = path.with_suffix(".parquet")
    pandas.DataFrame(columns | ({"kind": [CLASSES[c] for c in own.classes]} if labelled else {})).to_parquet(path)
    return path


def write_npz(path: Path, own: Records, labelled: bool = True) -> Path:
    path = path.with_suffix(".npz")
    named = {"y": np.array([CLASSES[code] for code in own.classes])} if labelled else {}
    np.savez(path, X=own.pixels.astype(float), **named)
    return path


def write_npz_with_ids(path: Path, own: Records, labelled: bool = True) -> Path:
    path = write_npz(path, own, labelled)
    np.savez(path, **np.load(path), ids=np.array(own.names))
    return path


def write_libsvm(path: Path, own: Records, labelled: bool = True) -> Path:
    path = path.with_suffix(".libsvm")
    lines = [
        " ".join([NUMBERED[code], *(f"{j + 1}:{value}" for j, value in enumerate(row))])
        for row, code in zip(own.pixels.tolist(), own.classes, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_idx(path: Path, own: Records, labelled: bool = True) -> Path:
    images = path.with_name(f"{path.name}-images-idx3-ubyte.gz")
    with gzip.open(images, "wb") as file:
        file.write(struct.pack(">4B3I", 0, 0, 8, 3, len(own.pixels), own.side, own.side) + own.pixels.tobytes())
    if labelled:
        codes = bytes(code + 1 for code in own.classes)
        labels = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
        with gzip.open(labels, "wb") as file:
            file.write(struct.pack(">4BI", 0, 0, 8, 1, len(codes)) + codes)
    return images


def write_folder(path: Path, own: Records, labelled: bool = True) -> Path:
    from PIL import Image

    for name, row, code in zip(own.names, own.pixels, own.classes, strict=True):
        place = path / CLASSES[code] if labelled else path
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(row.reshape(own.side, own.side)).save(place / f"{name}.png")
    return path


def records_for(family: str) -> Records:
    """Records that a family can read: a convolution needs images of 16 × 16."""
    return records(16 if family == "cnn" else 3)


KINDS = {
    "csv with ids": (write_csv, "patient", CLASSES),
    "parquet with ids": (write_parquet, "patient", CLASSES),
    "image folder": (write_folder, None, CLASSES),
    "npz with ids": (write_npz_with_ids, None, CLASSES),
    "csv": (write_csv, None, CLASSES),
    "npz": (write_npz, None, CLASSES),
    "libsvm": (write_libsvm, None, NUMBERED),
    "idx": (write_idx, None, NUMBERED),
}
"""A kind of file: how it is written, its column of identities, and what its classes are called."""
OWN_IDENTITIES = ("csv with ids", "parquet with ids", "image folder", "npz with ids")
"""Kinds whose records are told apart by something else than their places."""


@dataclass(frozen=True)
class Run:
    """What a party's run showed."""

    teachers: dict[str, bytes]
    """What each teacher learned and said, or why it said nothing."""
    votes: list[np.ndarray]
    """The votes of each partition, before their noise."""
    files: list[str]
    """What was written, but for the noise of this run."""
    manifest: dict


def planned(folder: Path, kind: str, family: str, **settings):
    """The plan of a party of this kind, and its public file."""
    write, column, classes = KINDS[kind]
    shown = records_for(family).taken(list(range(0, N_ROWS, 2)))
    shown = replace(shown, names=tuple(f"public-{name}" for name in shown.names))
    public = write(folder / "public", shown, labelled=kind == "libsvm")
    private = {"mechanism": "gaussian", "scale": {"sigma": 5.0}, "queries": 10, "budget": 1000.0} | settings
    plan = make_plan(
        public,
        label="kind",
        classes=classes,
        parties=["north"],
        model="tree",
        teacher=family,
        student="tree",
        **({"epochs": 2} if family in ("mlp", "cnn") else {}),
        level="L2",
        partitions=2,
        subsets=3,
        ignore=["patient"] if kind in ("csv", "csv with ids", "parquet with ids") else [],
        privacy=private,
    )
    return plan, public, column


def played(
    folder: Path, plan, public: Path, column: str | None, kind: str, own: Records, hold_out: float | None = None
) -> Run:
    """A run of the party on these records."""
    from fedkt.bundle import peek

    folder.mkdir()
    data = KINDS[kind][0](folder / "north", own)
    teachers, votes = {}, []
    asked, release = lesson.train_and_ask, lesson.TeacherVotes.counts.func

    def listening(problems, *rest, **named):
        for place, answer in asked(problems, *rest, **named):
            said = answer.encode() if isinstance(answer, str) else answer.tobytes()
            learned = np.ascontiguousarray(problems[place].own_rows).tobytes() + problems[place].labels.tobytes()
            teachers[problems[place].who] = learned + said
            yield place, answer

    def counting(teacher_votes):
        counted = release(teacher_votes)
        votes.extend(counted)
        return counted

    hook = cached_property(counting)
    hook.__set_name__(lesson.TeacherVotes, "counts")
    with mock.patch.object(lesson, "train_and_ask", listening), mock.patch.object(lesson.TeacherVotes, "counts", hook):
        places = {"data": data, "public": public, "outbox": FolderMailbox(folder / "outbox"), "work": folder / "work"}
        sent = run_party(plan, "north", **places, identity=column, hold_out=hold_out)
    manifest = peek(Path(sent.path).read_bytes(), source="north").model_dump(mode="json")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if data not in (path, *path.parents))
    return Run(teachers, votes, files, manifest)
