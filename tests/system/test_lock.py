"""Locks between processes and threads."""

import subprocess
import sys
import threading
import time

import pytest

from topicsteer.system.files import Busy, locked, one_at_a_time

pytestmark = pytest.mark.slow

HOLD = """
import sys, time
from pathlib import Path
from topicsteer.system.files import locked
with locked(Path(sys.argv[1]), "m"):
    print("ready", flush=True)
    time.sleep(100)
"""


def test_another_process_waits_or_is_refused_and_a_kill_releases(tmp_path):
    file = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, file], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(Busy, match="m is in use by another program"), locked(file, "m", wait=False):
            raise AssertionError
        threading.Timer(0.5, process.kill).start()
        with pytest.warns(UserWarning, match="Another program is writing to m"), locked(file, "m", notice=0.1):
            assert process.wait() == -9


def test_threads_take_turns_and_one_thread_may_nest(tmp_path):
    inside, most = [], []

    def work():
        with locked(tmp_path / "lock", "m"), locked(tmp_path / "lock", "m"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


def test_methods_of_one_object_run_one_at_a_time():
    class Slow:
        value = 0

        @one_at_a_time
        def add(self):
            before = self.value
            time.sleep(0.01)
            self.value = before + 1

    one = Slow()
    threads = [threading.Thread(target=one.add) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.value == 5


@pytest.mark.parametrize(
    ("error", "message"),
    [(PermissionError(13, "no"), "belongs to another user"), (NotImplementedError(), "m cannot be locked")],
)
def test_a_lock_that_cannot_be_had(tmp_path, monkeypatch, error, message):
    import filelock

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with pytest.raises(OSError, match=message), locked(tmp_path / "lock", "m"):
        raise AssertionError
