import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from topicsteer.system.threads import default_threads, interruptions, ordered_map, workers


def test_default_threads_heed_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert default_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert default_threads() >= 1


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_workers_keep_the_order_and_hold_blas_to_one_thread():
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        with workers(3) as run:
            assert list(run(lambda x: x * x, range(20))) == [x * x for x in range(20)]
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_interruption_is_noted_once_and_the_second_one_counts(capfd):
    with interruptions() as noted:
        os.kill(os.getpid(), signal.SIGINT)
        assert noted == [signal.SIGINT]
        assert "press Ctrl-C again" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interruptions_elsewhere_are_left_alone():
    seen = []

    def in_a_thread():
        with interruptions() as noted:
            seen.append(signal.getsignal(signal.SIGINT))
            assert noted == []

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptions() as noted:
            os.kill(os.getpid(), signal.SIGINT)
            assert noted == []
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("give", [workers, ordered_map])
def test_work_that_has_not_begun_is_dropped_after_an_interruption(give):
    begun = []

    def work(item):
        begun.append(item)
        time.sleep(0.02)
        return item

    def interrupt():
        with give(2) as run:
            for item in run(work, range(500)):
                if item == 3:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert len(begun) < 100


@pytest.mark.parametrize("give", [workers, ordered_map])
def test_kernels_never_lose_an_interruption(give):
    with give(1) as run:  # the main thread gets Ctrl-C, also while the one thread works
        assert threading.main_thread() not in list(run(lambda _: threading.current_thread(), range(3)))
    with pytest.raises(KeyboardInterrupt), give(1):
        raise SystemError("a kernel returned a result with an exception set") from KeyboardInterrupt()
    with pytest.raises(SystemError), give(1):
        raise SystemError("something else")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["terms", "features", "known topics", "fit"])
def test_a_fit_answers_an_interruption_in_every_stage(tmp_path, stage):
    code = f"""
import os, signal, sys, threading, time, warnings
import numpy as np
from topicsteer import TopicModel
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
words = np.array([f"w{{i}}x" for i in range(20_000)])
texts = [" ".join(words[np.minimum(rng.zipf(1.3, 90), 20_000) - 1]) for _ in range(8_000)]
labels = [f"t{{i % 20}}" if i % 20 == 0 or i % 20 == i // 20 % 20 else None for i in range(8_000)]
sent = []
def progress(name, done, total, detail):
    if {stage!r} in (name, detail) and not sent:
        sent.append(time.process_time())
        threading.Timer(0.005, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    model = TopicModel().fit(texts, labels, progress=progress)
    assert model.state_.interrupted or {stage!r} == "known topics", "not interrupted"
except KeyboardInterrupt:
    pass
print(time.process_time() - sent[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 3  # processor seconds: other programs do not count
