"""The files that public rows are made of, and the rows themselves: read with distrust, and with their origin."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedkt.data.description import Description, description_from
from fedkt.data.format import PLAIN, Format
from fedkt.data.images import image_shape
from fedkt.data.table import Table, names_its_label, read_table
from fedkt.errors import DataError, PlanError
from fedkt.plan.limits import check_text
from fedkt.plan.reading import MAX_PLAN_BYTES
from fedkt.system.files import read_at_most

ORIGIN = ".toml"
"""What the name of the file that says where rows come from has more than theirs."""


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The values in a TOML file that may be anybody's; `what` it should be."""
    try:
        data = read_at_most(path, MAX_PLAN_BYTES)
    except FileNotFoundError as reason:
        raise DataError(f"{path} is not a file. Check the path.") from reason
    if data is None:
        raise DataError(f"{path} is larger than {MAX_PLAN_BYTES:,} bytes, which no {what} is.")
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
        check_text(text, str(path), what=what)
        return tomllib.loads(text)
    except UnicodeDecodeError as reason:
        raise DataError(f"{path} is not UTF-8 text, so it is no {what}.") from reason
    except PlanError as reason:
        raise DataError(str(reason)) from reason
    except (ValueError, RecursionError) as reason:
        raise DataError(f"{path} is not TOML: {str(reason)[:200]}. Is it the {what}?") from reason


def read_description(path: Path) -> Description:
    """What everybody knows of the columns, from a schema.toml or from a plan."""
    return description_from(read_toml(path, "description of columns"), str(path))


def read_rows(path: Path, label: str, columns: Sequence[str] = (), *, form: Format = PLAIN) -> Table:
    """The rows of a table, in which the label is known as such; a LIBSVM file has all of these columns."""
    indices = [int(name[1:]) for name in columns if re.fullmatch(r"f[1-9][0-9]{0,6}", name)]
    # A file that does not name its label would pass it on as a column.
    own = None if names_its_label(path) else label
    table = read_table(path, label=own, least_features=max(indices, default=0), form=form)
    if image_shape([name for name in table.columns if name != label]) is not None:
        raise DataError(f"{path} has pixels of images. Rows are made of tables; use images that are public.")
    return table


def toml_bytes(values: dict[str, Any], head: Sequence[str]) -> bytes:
    """The values as TOML, under lines that explain them."""
    import tomlkit

    document = tomlkit.document()
    for line in head:
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.update(values)
    return tomlkit.dumps(document).encode()


def write_description(description: Description, head: Sequence[str]) -> bytes:
    """A description as a file, without what it need not say."""
    columns = [
        {name: value for name, value in column.model_dump(mode="json", exclude_defaults=True).items() if value != []}
        for column in description.columns
    ]
    return toml_bytes({"label": description.label, "columns": columns}, head)


def csv_bytes(table: Table) -> bytes:
    """A table as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(zip(*table.columns.values(), strict=True))
    return text.getvalue().encode()


def origin_path(path: Path) -> Path:
    """Where it stands how a file of rows was made."""
    return path.with_name(path.name + ORIGIN)


def origin_bytes(rows: bytes, facts: dict[str, Any]) -> bytes:
    """How rows were made, with the digest that tells which rows are meant."""
    from fedkt.system.versions import versions

    values = {**facts, "sha256": hashlib.sha256(rows).hexdigest(), "fedkt": versions()["fedkt"]}
    return toml_bytes(values, ["How these public rows were made."])
