"""Three clinics whose tables have names and codes of their own, and public rows: files for docs/guide/own-tables.md.

python examples/own_tables/make_files.py clinics

The people are made up. What makes them ill here: age, blood pressure, weight, smoking, and a good deal of chance.
"""

import csv
import sys
from pathlib import Path

import numpy as np

COLUMNS = ("age", "sex", "weight", "blood_pressure", "smoking")
WORDS = {"never": "nie", "daily": "oft"}
"""South's for smoking."""


def people(count, rng):
    """Rows with the agreed columns, and who is ill."""
    age = rng.normal(52, 16, count).clip(18, 95).round()
    male = rng.random(count) < 0.5
    weight = (rng.normal(70, 11, count) + 9 * male).round(1)
    pressure = (rng.normal(122, 14, count) + 0.3 * (age - 52)).round()
    smoker = rng.random(count) < 0.3
    risk = 0.05 * (age - 52) + 0.05 * (pressure - 122) + 0.03 * (weight - 75) + 1.5 * smoker - 0.6
    ill = rng.random(count) < 1 / (1 + np.exp(-1.5 * risk))
    words = np.where(male, "male", "female"), np.where(smoker, "daily", "never"), np.where(ill, "ill", "well")
    return list(zip(age.astype(int), words[0], weight, pressure.astype(int), words[1], words[2], strict=True))


def write(path, header, rows, delimiter=","):
    """One file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def make_files(folder):
    """public.csv, test.csv, and north.csv, south.csv and west.csv as three clinics would export them."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(11)
    write(folder / "public.csv", COLUMNS, [row[:-1] for row in people(400, rng)])
    write(folder / "test.csv", (*COLUMNS, "outcome"), people(300, rng))
    # North writes its names with capitals and spaces, and its labels too.
    rows = [(*row[:-1], row[-1].title()) for row in people(240, rng)]
    write(folder / "north.csv", ("Age", "Sex", "Weight", "Blood Pressure", "Smoking", "Outcome"), rows)
    # South speaks German, and codes what it can.
    coded = [
        (weight, age, "m" if sex == "male" else "w", pressure, WORDS[smoking], int(outcome == "ill"))
        for age, sex, weight, pressure, smoking, outcome in people(240, rng)
    ]
    write(folder / "south.csv", ("Gewicht", "Alter", "Geschlecht", "RR_sys", "Rauchen", "Befund"), coded, delimiter=";")
    # West has the agreed names, other words in one column, and a column more.
    rows = [(1000 + place, age, sex[0].upper(), *rest) for place, (age, sex, *rest) in enumerate(people(240, rng))]
    write(folder / "west.csv", ("patient", *COLUMNS, "outcome"), rows)


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "clinics")
    make_files(folder)
    print(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
