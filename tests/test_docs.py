"""What is written is true: names, paths and options in the documentation exist, and README's five lines run."""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from test_architecture import ALLOWED, BASE

from fedkt.cli import app
from paper.__main__ import app as paper_app

ROOT = Path(__file__).parent.parent
FOLDERS = ("benchmarks", "docs", "examples", "fuzz", "paper", "src", "tests", "tools")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
PAGES = sorted([*ROOT.glob("*.md"), *(path for path in FILES if path.suffix == ".md")])
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PLACE = re.compile(rf"[\w.-]+(?:/[\w.-]+)*\.py|(?:{'|'.join(FOLDERS)})/[\w./-]+")
DOTTED = re.compile(r"(?<![\w./])fedkt(?:\.[A-Za-z_]\w*)+")
HISTORY = re.compile(r"<!-- sources -->.*<!-- end sources -->", re.DOTALL)
"""The commands that results were made with, as they were then."""
PROGRAMS = {("fedkt",): app, ("python", "-m", "paper"): paper_app}


def page_id(path):
    return str(path.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=page_id)


def blocks(text, language=None):
    return [content for name, content in FENCE.findall(text) if language in (None, name)]


def inline_code(text):
    """What stands in backticks within sentences; a line may end inside."""
    return [" ".join(found.split()) for found in re.findall(r"`([^`]+)`", FENCE.sub("", text))]


def exists(name):
    """Whether some file or folder of the tree is called so; docs may leave out where the package lies."""
    parts = Path(name).parts
    return any(path.parts[-len(parts) :] == parts for path in FILES)


def resolves(name):
    """Whether a dotted name is a module, or something in one."""
    module, rest = name, []
    while module:
        try:
            found = import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
            continue
        for each in rest:
            if not hasattr(found, each):
                return False
            found = getattr(found, each)
        return True
    return False


def commands(text):
    """The commands of a page: lines of its blocks, and what stands in a sentence with an option."""
    text = HISTORY.sub("", text)
    lines = [line for block in blocks(text) for line in block.replace("\\\n", " ").splitlines()]
    lines += [code for code in inline_code(text) if "--" in code]
    for line in lines:
        try:
            yield shlex.split(line, comments=True)
        except ValueError:
            continue  # Not a command: a sentence with an apostrophe, Python, a picture.


def fault_of(words):
    """The first word of a command that no verb or option is called, or nothing where all are known."""
    for start, program in PROGRAMS.items():
        if tuple(words[: len(start)]) != start:
            continue
        command, words = typer.main.get_command(program), words[len(start) :]
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            if words[0] not in command.commands or command.commands[words[0]].hidden:
                return words[0]
            command, words = command.commands[words[0]], words[1:]
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
        return next((word for word in words if re.match("--?[a-z]", word) and word.partition("=")[0] not in known), "")
    return ""


@every_page
def test_every_file_that_a_page_names_is_there(page):
    text = page.read_text(encoding="utf-8")
    # A command may name files that it makes; the program it starts must be there.
    named = {word for code in inline_code(text) for word in code.split()[:2] if PLACE.fullmatch(word)}
    assert sorted(name for name in named if not exists(name)) == []


@every_page
def test_every_dotted_name_that_a_page_has_can_be_imported(page):
    text = page.read_text(encoding="utf-8")
    named = {found for code in inline_code(text) for found in DOTTED.findall(code)}
    named |= set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    for module, names in re.findall(r"^from (fedkt[\w.]*) import (.+)$", "\n".join(blocks(text)), re.MULTILINE):
        named |= {f"{module}.{name.strip()}" for name in names.split(",")}
    assert sorted(name for name in named if not resolves(name)) == []


@every_page
def test_every_command_that_a_page_shows_is_understood(page):
    faults = [(words, fault_of(words)) for words in commands(page.read_text(encoding="utf-8"))]
    assert [(" ".join(words), fault) for words, fault in faults if fault] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("fedkt simulate digits --noise gaussian:40 --jobs=2", ""),
        ("fedkt plan new --voting expert -o plan.toml", ""),
        ("python -m paper run all --quick", ""),
        ("make demo --loud", ""),
        ("fedkt paper list --loud", "paper"),
        ("fedkt privacy prize --sigma 4", "prize"),
        ("fedkt simulate digits --loud", "--loud"),
        ("python -m paper run all --loud", "--loud"),
    ],
)
def test_a_command_of_yesterday_would_be_found(line, fault):
    assert fault_of(line.split()) == fault


def test_a_file_and_a_name_of_yesterday_would_be_found():
    assert exists("live/mailbox.py")
    assert not exists("algorithms/not_mine.py")
    assert resolves("fedkt.privacy.Noise")
    assert resolves("fedkt.federation")
    assert not resolves("fedkt.experts.shares")
    assert not resolves("fedkt.privacy.Book")


def test_the_five_lines_of_the_readme_print_what_it_shows(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,), (shown,) = blocks(text, "python"), blocks(text, "text")
    assert len([line for line in code.splitlines() if line and not line.startswith("from ")]) <= 5
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (shown, 0), done.stderr


def test_every_page_of_the_documentation_can_be_found():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed == {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}


def test_the_rooms_are_those_that_the_imports_are_held_to():
    """But for the ways in, which may use every room below, and the command line, which may use all."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*)\|$", text, re.MULTILINE)
    assert [room for room, _ in rows] == list(ALLOWED)
    assert {room: set(re.findall(r"`(\w+)`", rooms)) for room, rooms in rows} == {
        room: rooms if room in BASE else set() for room, rooms in ALLOWED.items()
    }
