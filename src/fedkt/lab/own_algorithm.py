"""An algorithm in a file of the user's own, named on the command line as `mine.py:Mine`. No other file is ever run."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from fedkt.algorithms import ALGORITHMS, Card, card_of_found, known_algorithms
from fedkt.errors import ConfigurationError

PLACE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>\w*))?")


def is_own(text: str) -> bool:
    """Whether the word for an algorithm is a Python file, and maybe a class in it."""
    return PLACE.fullmatch(text) is not None


def own_algorithm(text: str) -> str:
    """The name that an algorithm of the user's own has in the catalogue from now on; its file is run for it."""
    match = PLACE.fullmatch(text)
    assert match is not None
    path, wanted = Path(match["path"]), match["name"]
    if not wanted:
        raise ConfigurationError(f"Which algorithm of {path}? Write --algorithm {path}:CLASS.")
    try:
        source = path.read_bytes()
    except OSError as reason:
        raise ConfigurationError(
            f"{path} cannot be read: {reason.strerror}. Check the path of --algorithm."
        ) from reason
    digest = hashlib.sha256(source).hexdigest()
    # What results call it has no spaces.
    name = f"{path.name}:{wanted}".replace(" ", "_")
    known = known_algorithms().get(name)
    if known is None or known.file != digest:
        ALGORITHMS[name] = replace(card_in(run_file(path, source, digest), path, wanted, name), file=digest)
    return name


def card_in(module: ModuleType, path: Path, wanted: str, name: str) -> Card:
    """The card of the class or card called so in a module."""
    found = getattr(module, wanted, None)
    if found is None:
        there = [
            key
            for key, each in vars(module).items()
            if isinstance(each, Card) or (isinstance(each, type) and each.__module__ == module.__name__)
        ]
        raise ConfigurationError(f"{path} has no {wanted!r}. It has: {', '.join(there) or 'no class'}.")
    try:
        return card_of_found(replace(found, name=name) if isinstance(found, Card) else found, name)
    except (TypeError, ValueError) as reason:
        raise ConfigurationError(f"{path}: {wanted} is no algorithm: {reason}.") from reason


def run_file(path: Path, source: bytes, digest: str) -> ModuleType:
    """What a Python file defines. The bytes that are run are those that were digested."""
    module = ModuleType(f"fedkt_own_{path.stem}_{digest[:8]}")
    module.__file__ = str(path)
    # Dataclasses look for their module while they are made. Afterwards it goes: other processes cannot import it, and
    # are sent as a whole what no module has.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as reason:
        line = last_line(reason, path)
        raise ConfigurationError(
            f"{path}{'' if line is None else f', line {line}'}: {type(reason).__name__}: {reason}. An algorithm of "
            "your own is one file; what it imports has to be installed."
        ) from reason
    finally:
        del sys.modules[module.__name__]
    return module


def last_line(reason: BaseException, path: Path) -> int | None:
    """The last line of this file that an error went through."""
    if isinstance(reason, SyntaxError):
        return reason.lineno
    line, trace = None, reason.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
