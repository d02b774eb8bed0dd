"""What the system says about memory, and the limits of containers and jobs."""

import pytest

from fedkt.system.memory import free_memory, in_gigabytes, total_memory

MEMINFO = "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   5000 kB\nSwapTotal:      2000 kB\n"


def machine(folder, files):
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "total", "free"),
    [
        ({}, 10_000 * 1024, 5_000 * 1024),
        # A group of version 2, inside of one with less.
        (
            {
                "proc/self/cgroup": "0::/jobs/mine\n",
                "sys/fs/cgroup/jobs/mine/memory.max": "4096000\n",
                "sys/fs/cgroup/jobs/mine/memory.current": "96000\n",
                "sys/fs/cgroup/jobs/memory.max": "3000000\n",
                "sys/fs/cgroup/jobs/memory.current": "2500000\n",
            },
            3_000_000,
            500_000,
        ),
        (
            {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/memory.max": "max\n",
                "sys/fs/cgroup/memory.current": "96000\n",
            },
            10_000 * 1024,
            5_000 * 1024,
        ),
        # Version 1, seen from inside a container: the group's path is not there, its limit is the outermost.
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "2500000\n",
            },
            2_000_000,
            0,
        ),
    ],
)
def test_the_smallest_limit_counts(tmp_path, files, total, free):
    root = machine(tmp_path, files)
    assert (total_memory(root), free_memory(root)) == (total, free)


def test_a_system_that_says_nothing_is_not_guessed_at(tmp_path):
    assert (total_memory(tmp_path), free_memory(tmp_path)) == (None, None)


def test_this_machine_has_some():
    assert (total_memory() or 2**30) > 2**24


def test_bytes_are_said_in_gigabytes():
    assert in_gigabytes(9_840_000_000) == "9.8 GB"
