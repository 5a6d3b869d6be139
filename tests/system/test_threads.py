import os
import signal
import threading

import pytest
from threadpoolctl import threadpool_info

from topicsteer.system.threads import default_threads, interruptions, workers


def test_default_threads_heed_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert default_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert default_threads() >= 1


def test_workers_keep_the_order_and_hold_blas_to_one_thread():
    with workers(3) as run:
        assert list(run(lambda x: x * x, range(20))) == [x * x for x in range(20)]
        blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert blas
        assert set(blas) == {1}


def test_interruption_is_noted_once_and_the_second_one_counts():
    with interruptions() as noted:
        os.kill(os.getpid(), signal.SIGINT)
        assert noted == [signal.SIGINT]
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
