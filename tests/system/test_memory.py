import subprocess
import sys
from pathlib import Path

import pytest

from topicsteer.system import memory

GB = 10**9


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Control groups of a process: files by their names."""

    def write(own, **files):
        (tmp_path / "own").write_text(own)
        for name, content in files.items():
            path = tmp_path / "groups" / name.replace("__", "/").replace("_", ".", 1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(content))
        monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
        monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")

    return write


def test_the_limit_of_a_container(groups):
    groups("0::/\n", memory_max=GB, memory_current=GB // 2, memory_stat=f"anon 5\ninactive_file {GB // 4}\n")
    assert memory.total_memory() == GB
    assert memory.available_memory() == pytest.approx(memory.MARGIN * 0.75 * GB, abs=2)


def test_the_limit_of_a_service_and_of_the_groups_around_it(groups):
    files = {"jobs__memory_max": GB, "jobs__memory_current": 0, "jobs__night__memory_max": "max"}
    groups("0::/jobs/night\n", **files, memory_max=3 * GB, memory_current=0)
    assert memory.total_memory() == GB


def test_the_first_version_of_control_groups(groups):
    files = {"memory__docker__memory_limit_in_bytes": GB, "memory__docker__memory_usage_in_bytes": 0}
    groups("4:cpu,memory:/docker\n0::/\n", **files)
    assert memory.total_memory() == GB


def test_no_control_groups(groups):
    groups("0::/\n")
    total = memory.total_memory()
    assert total is None or total > GB // 4


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
