"""One thread for the numeric libraries while a model is trained or asked."""

import json
import os
import subprocess
import sys

from fedkt.system import threads
from fedkt.system.threads import one_thread

COUNT = """
import json, sys
import numpy
from fedkt.system.threads import one_thread
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


def counted_by(program):
    """What a new process counts, where every library would take two threads."""
    two = {f"{name}_NUM_THREADS": "2" for name in ("OMP", "OPENBLAS", "MKL", "BLIS")}
    child = subprocess.run([sys.executable, "-c", program], env=os.environ | two, capture_output=True, check=True)
    return json.loads(child.stdout)


def test_a_library_that_came_after_the_first_block_has_one_thread_in_the_next_and_its_own_number_after_it():
    first, before, second, after = counted_by(COUNT)
    assert len(before) < len(after)
    assert {*first.values(), *second.values()} == {1}
    assert {*before.values(), *after.values()} == {2}


def test_the_libraries_are_looked_for_once_while_no_module_comes(monkeypatch):
    looks, search = [], threads.ThreadpoolController
    monkeypatch.setattr(threads, "ThreadpoolController", lambda: looks.append(1) or search())
    threads._numeric_libraries.cache_clear()
    for _ in range(3):
        with one_thread():
            pass
    assert len(looks) == 1
    monkeypatch.setitem(sys.modules, "this_has_come", sys)
    with one_thread():
        pass
    assert len(looks) == 2


INSIDE = """
import json, sys
import numpy
from fedkt.system.threads import one_thread
from threadpoolctl import threadpool_info

def threads():
    return {each["filepath"]: each["num_threads"] for each in threadpool_info()}

with one_thread():
    before = threads()
    import sklearn.ensemble
    with one_thread():
        inside = threads()
        with one_thread():
            pass
        still = threads()
json.dump([before, inside, still, threads()], sys.stdout)
"""


def test_a_library_that_came_inside_a_block_has_one_thread_in_a_block_within_it():
    before, inside, still, after = counted_by(INSIDE)
    assert len(before) < len(inside)
    assert {*inside.values(), *still.values()} == {1}
    assert {*after.values()} == {2}
