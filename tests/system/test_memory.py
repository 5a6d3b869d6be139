import subprocess
import sys
from pathlib import Path

import pytest

from topicsteer.system import memory

GB = 10**9


@pytest.fixture
def limits(tmp_path):
    """Limits of control groups, which are given as files by their names."""

    def read(own, **files):
        (tmp_path / "own").write_text(own)
        for name, content in files.items():
            path = tmp_path / "groups" / name.replace("__", "/").replace("_", ".", 1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(content))
        return list(memory.group_limits(tmp_path / "own", tmp_path / "groups"))

    return read


def test_the_limit_of_a_container(limits):
    files = {"memory_max": GB, "memory_current": GB // 2, "memory_stat": f"anon 5\ninactive_file {GB // 4}\n"}
    assert limits("0::/\n", **files) == [(GB, GB // 4)]


def test_the_limit_of_a_service_and_of_the_groups_around_it(limits):
    files = {"jobs__memory_max": GB, "jobs__memory_current": 0, "jobs__night__memory_max": "max"}
    found = limits("0::/jobs/night\n", **files, memory_max=3 * GB, memory_current=0)
    assert found == [(3 * GB, 0), (GB, 0)]


def test_no_control_groups(limits):
    assert limits("0::/\n") == []


def test_a_part_of_the_memory_is_available():
    total = memory.total_memory()
    assert total is None or total > GB // 4
    assert total is None or memory.available_memory() <= memory.MARGIN * total


FREED = """
from pathlib import Path
import numpy as np
from topicsteer.system import memory

def reserved():
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0]) * 1024

size = 2 * memory.RETURNED
np.ones(memory.LARGEST // 8 - 1000)  # the C library's own limit is at its largest from now on
with memory.frugal_memory():
    before = reserved()
    blocks = [np.ones(size // 8) for _ in range(10)]
    full = reserved()
    del blocks[:-1]  # the last one would keep all others from being returned if they were in one heap
    left = reserved()
print((full - before) / size, (left - before) / size)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_freed_blocks_are_returned_at_once():
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    full, left = map(float, done.stdout.split())
    assert full > 9
    assert left < 2
