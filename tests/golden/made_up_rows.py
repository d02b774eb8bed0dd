"""The made-up rows of the golden files: a table of patients and small pictures, the same on every machine."""

import csv
import struct

import numpy as np

COLUMNS = ("age", "dose", "ward")
CLASSES = ("ill", "well")
SIDE = 16
"""Pixels of a picture's side: the fewest that the family cnn reads."""


def write_table(path, *, seed, rows, labels=True):
    """Patients in a CSV file, some of them without a dose; who is old or has little of it is mostly ill."""
    rng = np.random.default_rng(seed)
    ages, doses, wards = rng.integers(20, 90, rows), rng.uniform(0, 5, rows).round(2), rng.integers(0, 3, rows)
    ill = ages + 10 * rng.standard_normal(rows) > 40 + 6 * doses
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*COLUMNS, "outcome"] if labels else COLUMNS)
        for place in range(rows):
            dose = "" if place % 11 == 5 else float(doses[place])
            cells = [int(ages[place]), dose, ("east", "west", "hall")[wards[place]]]
            writer.writerow([*cells, CLASSES[0 if ill[place] else 1]] if labels else cells)


def write_pictures(path, *, seed, rows, labels=True):
    """Pictures in an IDX file, bright on the left or on the right, and the file of their labels beside it."""
    rng = np.random.default_rng(seed)
    right = np.arange(rows) % 2
    pictures = rng.integers(0, 80, (rows, SIDE, SIDE), dtype=np.uint8)
    for place in range(rows):
        half = slice(SIDE // 2, None) if right[place] else slice(0, SIDE // 2)
        pictures[place, :, half] += 120
    path.write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, rows, SIDE, SIDE) + pictures.tobytes())
    if labels:
        beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
        beside.write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, rows) + right.astype(np.uint8).tobytes())
