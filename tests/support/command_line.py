"""The command line in the tests' own process: loading the numbers' libraries anew each time would take two seconds."""

import contextlib
import io
import subprocess
from unittest import mock

from fedkt.cli import main


def fedkt(*words, cwd=None, together=False):
    """What a command prints and the code it leaves with; `together`, all that it prints in the order it did."""
    out, code = io.StringIO(), 0
    err = out if together else io.StringIO()
    with (
        mock.patch("sys.argv", ["fedkt", *words]),
        contextlib.chdir(cwd or "."),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as left:
            code = left.code or 0
    return subprocess.CompletedProcess(words, code, out.getvalue(), "" if together else err.getvalue())
