"""Known advisories against the versions in lock files, and plain words where nothing could be asked.

    python tools/audit.py requirements.lock tools.lock

Exit code 0: every package was asked about and none has an advisory. 1: some have. 2: some or all could not be asked
about. pip-audit by itself ends with 0 and "no known vulnerabilities" where it was let down by its database.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def asked(lock: str) -> list[dict[str, Any]] | None:
    """What pip-audit says about each package of a lock file; None if it says nothing."""
    command = ["pip-audit", "--requirement", lock, "--require-hashes", "--disable-pip", "--format", "json"]
    done = subprocess.run(
        [str(Path(sys.executable).with_name(command[0])), *command[1:], "--progress-spinner", "off"],
        capture_output=True,
        text=True,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"{lock}: pip-audit gave no answer: {(done.stderr.strip().splitlines() or ['(nothing)'])[-1][:300]}")
        return None
    return found


def main(locks: list[str]) -> int:
    """Prints what was found in each lock file, and gives the exit code."""
    code = 0
    for lock in locks:
        found = asked(lock)
        if found is None:
            code = code or 2
            continue
        unknown = [each["name"] for each in found if "skip_reason" in each]
        for each in found:
            for advisory in each.get("vulns", []):
                print(
                    f"{lock}: {each['name']} {each['version']}: {advisory['id']} "
                    f"({', '.join(advisory.get('aliases', [])) or 'no other name'}), mended in "
                    f"{', '.join(advisory['fix_versions']) or 'no version'}"
                )
                code = 1
        print(f"{lock}: {len(found) - len(unknown)} of {len(found)} packages asked about.")
        if unknown:
            code = code or 2
            print(
                f"{lock}: NOT asked about: {', '.join(unknown[:10])}{' …' * (len(unknown) > 10)}. The registry "
                "that pip uses answers for no advisories, or is not reached: run this where the public one is."
            )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
