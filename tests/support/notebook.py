"""Notebooks without Jupyter: cells run in order, in one namespace, and what they print is kept as Jupyter keeps it.

    python tests/support/notebook.py examples/own_table.ipynb

runs a notebook and writes its outputs anew.
"""

import ast
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from unittest import mock

from command_line import fedkt
from fedkt.cli import output

WIDTH = 100
"""Columns of what is printed, whatever terminal it is run in."""
VARYING = (
    (re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b"), "DIGEST"),
    (re.compile(r"/\S*/tmp\w+"), "FOLDER"),
    (re.compile(r"\b\d{1,3}(,\d{3})+\b(?! rows)"), "BYTES"),
    (re.compile(r"^(\S+ +(?:Time|Disk) ).*|^( *seconds: ).*", re.MULTILINE), r"\1\2…"),
    (re.compile(r"[ ─]+"), " "),
)
"""What differs from one run to the next: digests, places, sizes of files, clocks, and the width of columns of these."""
CLOCKED_TABLE = re.compile(r"^.* seconds\n(?:.+\n)+", re.MULTILINE)
"""A table whose last column is a clock, up to an empty line."""


def run(notebook, folder):
    """The notebook with new outputs; its cells start in a folder, and leave the process where it was."""
    namespace = {"__name__": "__main__"}
    cells, count = [], 0
    with (
        mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "TMPDIR": str(folder)}),
        mock.patch("tempfile.tempdir", None),
        # A console keeps the width that the environment names when it is made.
        mock.patch.object(output.stdout, "_width", WIDTH),
        mock.patch.object(output.stderr, "_width", WIDTH),
        contextlib.chdir(folder),
    ):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell = cell | {"execution_count": count, "outputs": outputs("".join(cell["source"]), namespace, count)}
            cells.append(cell)
    return notebook | {"cells": cells}


def outputs(source, namespace, count):
    """What a cell prints, and the value of its last line if that is an expression."""
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        if source.startswith("!"):
            for line in source.replace("\\\n", " ").splitlines():
                command(line)
        else:
            value = execute(source, namespace)
    kept = []
    if printed.getvalue():
        kept.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        kept.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return kept


def command(line):
    """One line for the shell, of which there is one kind; a terminal shows both streams in one."""
    program, *words = shlex.split(line.removeprefix("!"))
    assert program == "fedkt", f"Only lines beginning with !fedkt can be run, not {line!r}"
    print(fedkt(*words, together=True).stdout, end="")


def execute(source, namespace):
    """Run Python; the value of its last line if that is an expression, which is `_` as in every interpreter."""
    module = ast.parse(source)
    namespace["_"] = None
    if isinstance(module.body[-1], ast.Expr):
        last = module.body[-1]
        module.body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
    exec(compile(ast.fix_missing_locations(module), "<cell>", "exec"), namespace)
    return namespace["_"]


def lines(text):
    """Text as notebooks keep it."""
    return text.splitlines(keepends=True)


def shown(notebook):
    """What each code cell shows, by the cell's id."""
    return {
        cell["id"]: "\n".join("".join(each.get("text") or each["data"]["text/plain"]) for each in cell["outputs"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    }


def steady(text):
    """A text without what differs from run to run."""
    text = CLOCKED_TABLE.sub(lambda table: re.sub(r"(?<= )\d+(\.\d+)?$", "…", table[0], flags=re.MULTILINE), text)
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


def write_anew(path):
    """Run a notebook and replace its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = run(json.loads(path.read_text(encoding="utf-8")), Path(folder))
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write_anew(Path(name))
