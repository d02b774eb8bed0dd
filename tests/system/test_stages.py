"""The clock of stages: every second belongs to one of them."""

from __future__ import annotations

from fedkt.system.stages import in_stage, measured_stages, stage


def test_seconds_of_an_inner_stage_are_its_own(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr("fedkt.system.stages.cpu_clock", lambda: float(next(ticks)))
    # Every look at the clock is a second: one before the outer stage, one before the inner, one in it, one after.
    with measured_stages() as clock, stage("outer"), stage("inner"):
        pass
    assert {name: spent.cpu for name, spent in clock.spent.items()} == {"rest": 2.0, "outer": 2.0, "inner": 1.0}


def test_a_stage_of_results_is_their_making_and_not_what_is_done_with_them(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr("fedkt.system.stages.cpu_clock", lambda: float(next(ticks)))
    with measured_stages() as clock:
        for _ in in_stage("making", iter([1, 2])):
            with stage("using"):
                pass
    # Twice made and once found to be at the end.
    assert {name: spent.cpu for name, spent in clock.spent.items() if name != "rest"} == {"making": 3.0, "using": 2.0}


def test_nothing_is_measured_where_nobody_does():
    with stage("teachers"):
        pass
    assert list(in_stage("teachers", iter([1, 2]))) == [1, 2]
