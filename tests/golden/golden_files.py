"""How the makers of the golden files run commands and write what they found."""

import json

from command_line import fedkt


def run(*words):
    """What a command that must succeed prints."""
    done = fedkt(*map(str, words))
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def write_json(path, content):
    """A line for every entry."""
    lines = [f"{json.dumps(key)}:{compact(content[key])}" for key in sorted(content)]
    path.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def compact(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
