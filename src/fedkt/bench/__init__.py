"""Benchmarks: what fedkt costs beside the same models in a bare loop, and how that grows.

`plain` holds the loops, as a user would write them without fedkt: of fedkt they import the rows they are given (`work`)
and the clock that both sides are measured by. `ours` plays the same rows through fedkt. Each runs in a child process of
its own (`child`), in turn, and the parent (`measure`) knows of no learning library: a child would inherit its memory.
"""
