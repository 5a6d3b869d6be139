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


def refuse_once(monkeypatch):
    """Let numba refuse to cache unless it has a folder."""
    real = numba.njit

    def njit(*given, cache=False, **options):
        if cache and not numba.config.CACHE_DIR:
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return real(*given, cache=cache, **options)

    monkeypatch.setattr(numba, "njit", njit)


def double(number):
    return 2 * number


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    machine_code.private_folder.cache_clear()
    yield
    machine_code.private_folder.cache_clear()


def test_machine_code_goes_to_a_private_folder(monkeypatch, tmp_path):
    refuse_once(monkeypatch)
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", lambda: str(tmp_path))
    found = machine_code.jit()(double)
    assert found(4) == 8
    folder = tmp_path / f"topicsteer-numba-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.rglob("*.nbc"))
    assert folder.samefile(numba.config.CACHE_DIR)  # for other packages


@pytest.mark.parametrize("mode", [0o777, 0o750])
def test_the_folder_of_a_stranger_is_not_used(monkeypatch, tmp_path, mode):
    refuse_once(monkeypatch)
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"topicsteer-numba-{os.getuid()}"
    folder.mkdir()
    folder.chmod(mode)
    assert machine_code.jit()(double)(4) == 8
    assert not list(folder.iterdir())


def test_code_next_to_the_source_is_not_compiled_again(monkeypatch, tmp_path):
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", lambda: str(tmp_path))
    assert machine_code.jit()(double)(4) == 8  # next to the source
    refuse_once(monkeypatch)
    for _ in range(2):  # numba refuses the first function alone: then it has a folder
        machine_code.copy_code.cache_clear()
        for file in tmp_path.rglob("*.nb[ci]"):
            file.unlink()
        found = machine_code.jit()(double)
        assert found(4) == 8
        assert sum(found.stats.cache_hits.values()) == 1


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
    code = (
        "from topicsteer import TSNMF; import numpy as np; print(TSNMF(2).fit(np.eye(6, 4)).n_iter_ > 0);"
        "from topicsteer.nmf import kernels; print(kernels.cross_rows.stats.cache_path)"
    )
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
    first, folder = done.stdout.split()
    assert first == "True"
    assert folder.startswith(room)
