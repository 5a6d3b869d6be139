import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from topicsteer.system import machine_code

SOURCE = Path(machine_code.__file__).parents[2]


def refuse(monkeypatch):
    """Let numba refuse to cache."""
    real = numba.njit

    def njit(*given, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return real(*given, **options)

    monkeypatch.setattr(numba, "njit", njit)


def double(number):
    return 2 * number


def test_without_a_folder_for_machine_code(monkeypatch):
    refuse(monkeypatch)
    assert machine_code.jit()(double)(4) == 8


def test_machine_code_of_other_packages_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    other = SimpleNamespace(double=numba.njit(double), plain=double)
    machine_code.keep(other, ("double", "plain", "of another version"))
    assert other.double(4) == 8
    again = numba.njit(cache=True)(double)
    assert again(4) == 8
    assert sum(again.stats.cache_hits.values()) == 1


def reachable(path):
    """Whether every user can reach a file."""
    return all(part.stat().st_mode & 0o001 for part in Path(path).resolve().parents)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become nobody")
@pytest.mark.skipif(not reachable(sys.executable), reason="nobody cannot run this Python")
def test_nobody_without_a_home_fits():
    """The source is not writable for nobody, and there is no home."""
    code = "from topicsteer import TSNMF; import numpy as np; print(TSNMF(2).fit(np.eye(6, 4)).n_iter_ > 0)"
    with tempfile.TemporaryDirectory(dir="/tmp") as room:  # nobody cannot reach the folders of pytest
        os.chmod(room, 0o777)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "TMPDIR": room},
            cwd="/",
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
