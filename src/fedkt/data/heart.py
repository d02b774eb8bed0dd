"""UCI Heart Disease (Janosi, Steinbrunn, Pfisterer, Detrano 1988): four hospitals, each with its own gaps.

The natural federation: Cleveland, Budapest, Switzerland and Long Beach differ in size, in who is ill and in what was
measured. Some rows of each hospital are held out as public and test rows, so that a schema can be fitted and a result
measured on people like those of every hospital.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedkt.data.dataset import Dataset, assign_rows, split_rows_within
from fedkt.data.download import Progress, find_content

CLASSES = ("healthy", "disease")
CATEGORICAL = ("cp", "restecg", "slope", "thal")
NEVER_ZERO = ("chol", "trestbps")
"""A cholesterol or a blood pressure of 0 was not measured (all Swiss rows, some of Long Beach)."""
HELD_OUT = 0.5


def load_heart(*, seed: int, data_dir: str | Path | None = None, progress: Progress | None = None) -> Dataset:
    """Heart disease: 920 patients of four hospitals; of each, half for the party, a quarter public, a quarter test."""
    import io

    from fedkt.data.schema import fit_schema
    from fedkt.data.table import Table, parse_csv

    text = find_content("heart_disease_4sites.csv", data_dir=data_dir, progress=progress)
    table = parse_csv(io.StringIO(text.content.decode("utf-8")), "heart_disease_4sites.csv")
    columns = dict(table.columns)
    for name in NEVER_ZERO:
        columns[name] = np.where(columns[name] == "0", "", columns[name])
    columns["num"] = np.where(columns["num"] == "0", CLASSES[0], CLASSES[1]).astype(object)
    table = Table(columns, table.source, table.lines)
    sites = np.array(columns["site"].tolist())
    rows = split_rows_within(sites, seed=seed, held_out=HELD_OUT)
    # Allowed everywhere: a rare gap that the few public rows happen not to show must not refuse a hospital.
    schema = fit_schema(table.take(rows.public), label="num", categorical=CATEGORICAL, ignore=["site"], missing="allow")
    return assign_rows(
        "heart",
        schema.encode(table),
        schema.labels(table, CLASSES),
        rows,
        classes=CLASSES,
        groups=sites,
        source=f"UCI Heart Disease, four hospitals, {text.source}",
        feature_names=schema.feature_names,
    )
