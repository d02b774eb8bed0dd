"""Plan <-> TOML: what everyone agrees on before the one round, and its digest.

A plan is made once, from the public rows only, and sent to every party and to the server. Whoever holds the same plan
encodes the same value as the same number, votes over the same classes, and can tell a bundle made under another plan.
"""

from fedkt.plan.agreement import Plan, file_digest
from fedkt.plan.parts import MAX_CLASSES, NAME, Class, Part, Text, faults_of
from fedkt.plan.public_file import PublicFile, read_public_file
from fedkt.plan.reading import MAX_PLAN_BYTES, make_plan, parse_plan, read_plan

__all__ = [
    "MAX_CLASSES",
    "MAX_PLAN_BYTES",
    "NAME",
    "Class",
    "Part",
    "Plan",
    "PublicFile",
    "Text",
    "faults_of",
    "file_digest",
    "make_plan",
    "parse_plan",
    "read_plan",
    "read_public_file",
]
