"""One thread for the numeric libraries while a model is trained or asked."""

import json
import os
import subprocess
import sys

from fedkt.models import base
from fedkt.models.base import one_thread

COUNT = """
import json, sys
import numpy
from fedkt.models.base import one_thread
from threadpoolctl import threadpool_info

def threads():
    return {each["filepath"]: each["num_threads"] for each in threadpool_info()}

found = []
for module in ("math", "sklearn.ensemble"):
    __import__(module)
    with one_thread():
        found.append(threads())
    found.append(threads())
json.dump(found, sys.stdout)
"""


def test_a_library_that_came_after_the_first_block_has_one_thread_in_the_next_and_its_own_number_after_it():
    two = {f"{name}_NUM_THREADS": "2" for name in ("OMP", "OPENBLAS", "MKL", "BLIS")}
    child = subprocess.run([sys.executable, "-c", COUNT], env=os.environ | two, capture_output=True, check=True)
    first, before, second, after = json.loads(child.stdout)
    assert len(before) < len(after)
    assert {*first.values(), *second.values()} == {1}
    assert {*before.values(), *after.values()} == {2}


def test_the_libraries_are_looked_for_once_while_no_module_comes(monkeypatch):
    looks, search = [], base.ThreadpoolController
    monkeypatch.setattr(base, "ThreadpoolController", lambda: looks.append(1) or search())
    base._numeric_libraries.cache_clear()
    for _ in range(3):
        with one_thread():
            pass
    assert len(looks) == 1
    monkeypatch.setitem(sys.modules, "this_has_come", sys)
    with one_thread():
        pass
    assert len(looks) == 2
