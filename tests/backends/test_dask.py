"""Tests on a real cluster: a scheduler and worker processes on this machine."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import polars as pl
import pytest
from problems import make_problem, planted_texts

from topicsteer import TSNMF, TopicModel
from topicsteer.backends import on_cluster
from topicsteer.backends.block_folder import BlockError, write_blocks
from topicsteer.backends.dask import NoWorkers, gather, shared_folder
from topicsteer.system.threads import interruptions

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")]

BOUNDS = [0, 90, 90, 250, 300, 400]


@pytest.fixture(scope="module")
def cluster():
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    patient = dask.config.set({"distributed.scheduler.allowed-failures": 20})
    with patient, distributed.LocalCluster(n_workers=1, **options) as cluster, distributed.Client(cluster):
        yield cluster


@pytest.fixture(scope="module")
def data():
    X, y, L = make_problem(1, n=400, t=60)
    return X, y, L


@pytest.fixture(scope="module")
def spread(cluster, tmp_path_factory):
    """From a matrix to its rows on the cluster."""

    def blocks(X):
        folder = write_blocks(tmp_path_factory.mktemp("blocks"), (X[a:b] for a, b in itertools.pairwise(BOUNDS)))
        return on_cluster(folder, distributed.get_client())

    return blocks


def fit(X, y, callback=None, **options):
    settings = {"n_components": 6, "max_iter": 12, "tol": 0.0, "random_state": 0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TSNMF(**settings).fit(X, y, callback=callback)


def scale(cluster, workers):
    cluster.scale(workers)
    client = distributed.get_client()
    wait_until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == workers)


def wait_until(true, seconds=120):
    deadline = time.time() + seconds
    while not true():
        assert time.time() < deadline, f"the cluster is not ready after {seconds} s"
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 2, 4])  # a worker takes seconds to start
def test_any_number_of_workers_gives_the_result_of_memory(cluster, data, spread, workers):
    X, y, L = data
    scale(cluster, workers)
    for dtype, rtol in ((np.float64, 1e-9), (np.float32, 1e-5)):
        whole, found = fit(X.astype(dtype), y), fit(spread(X.astype(dtype)), y)
        assert np.linalg.norm(found.components_ - whole.components_) <= rtol * np.linalg.norm(whole.components_)
        W = np.asarray(found.document_topics_)
        assert W.dtype == dtype
        assert (W[L == 0] == 0).all()


@pytest.mark.parametrize("options", [{"solver": "mu", "init": "acol"}, {"init": "random", "alpha_W": 1e-3}])
def test_other_rules_and_starts(cluster, data, spread, options):
    X, y, _ = data
    np.testing.assert_allclose(
        fit(spread(X), y, **options).components_, fit(X, y, **options).components_, rtol=1e-9, atol=1e-12
    )


def test_an_open_world_is_the_same_on_disk_and_on_a_cluster(cluster, tmp_path):
    texts = planted_texts(6, 60)
    labels = [f"t{i // 60}" if i < 180 and i % 60 < 10 else None for i in range(360)]
    expected = TopicModel(3).fit(texts, labels)
    assert expected.state_.open
    table = tmp_path / "texts.csv"
    pl.DataFrame({"id": range(360), "text": texts, "labels": [name or "" for name in labels]}).write_csv(table)
    options = {"id": "id", "text": "text", "memory": 1 << 20, "folder": tmp_path / "disk"}
    on_disk = TopicModel(3).fit(table, "labels", **options)
    on_cluster = TopicModel(3).fit(texts, labels, folder=tmp_path / "dask", client=distributed.Client(cluster))
    for found in (on_disk, on_cluster):
        assert found.state_.topics.names == expected.state_.topics.names
        np.testing.assert_array_equal(found.state_.memberships, expected.state_.memberships)
        np.testing.assert_array_equal(found.state_.document_topics, expected.state_.document_topics)


@pytest.mark.parametrize("victims", [1, 2])
def test_a_killed_worker_changes_nothing(cluster, data, spread, victims):
    """SIGKILL to one worker or to all workers during iterations; the nanny restarts them."""
    X, y, _ = data
    scale(cluster, 2)
    expected = fit(spread(X), y)
    killed = []

    def kill(iteration, *_):
        if iteration in (2, 6):
            workers = distributed.get_client().run(os.getpid)
            for pid in list(workers.values())[:victims]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            if victims == 2:  # Dask itself may hang if tasks arrive while the last worker dies
                wait_until(lambda: restarted(killed[-2:]))

    def restarted(gone):
        return len(cluster.scheduler.workers) == 2 and not {nanny.pid for nanny in cluster.workers.values()} & set(gone)

    found = fit(spread(X), y, callback=kill)
    assert len(killed) >= 2 * victims - 1
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(np.asarray(found.document_topics_), np.asarray(expected.document_topics_))


def test_after_the_client_is_gone_nothing_keeps_running(cluster, tmp_path):
    script = textwrap.dedent(
        f"""
        import distributed, numpy as np, scipy.sparse as sp
        from topicsteer import TSNMF
        from topicsteer.backends import on_cluster
        from topicsteer.backends.block_folder import write_blocks
        client = distributed.Client({cluster.scheduler_address!r})
        X = sp.random_array((400, 60), density=0.2, format="csr", rng=np.random.default_rng(0))
        folder = write_blocks({str(tmp_path / "blocks")!r}, (X[a : a + 100] for a in range(0, 400, 100)))
        blocks = on_cluster(folder, client)
        TSNMF(5, max_iter=10**9, tol=0).fit(blocks, callback=lambda i, *_: print(i, flush=True))
        """
    )
    scheduler = cluster.scheduler
    before = set(scheduler.tasks)
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) >= 3:
            break
    wait_until(lambda: not set(scheduler.tasks) <= before)  # there are tasks most of the time
    process.kill()
    process.wait()
    process.stdout.close()
    wait_until(lambda: set(scheduler.tasks) <= before)
    wait_until(lambda: not any(worker.processing for worker in scheduler.workers.values()))


def test_a_bad_block_is_named(cluster, data, spread):
    X, y, _ = data
    bad = X.copy()
    bad.data[-1] = -3
    with pytest.raises(BlockError, match=r"block 4 of .* has the entry -3 in its row"):
        fit(spread(bad), y)


def test_a_folder_that_workers_cannot_access_is_refused(tmp_path):
    class Elsewhere:
        """A client of a cluster on other machines."""

        def scheduler_info(self):
            return {"workers": {"tcp://10.0.0.4:1": {}}}

        def run(self, function, path):
            return {"tcp://10.0.0.4:1": function(path.replace(str(tmp_path), "/no/such/folder"))}

    with pytest.raises(BlockError, match="set folder= to a folder that all workers share"):
        shared_folder(Elsewhere(), tmp_path)


def test_a_fit_waits_for_the_first_worker(cluster, tmp_path):
    scale(cluster, 0)
    threading.Timer(1, cluster.scale, (1,)).start()
    with pytest.warns(UserWarning, match=r"no workers, .* dask worker tcp://"):
        shared_folder(distributed.get_client(), tmp_path)
    scale(cluster, 1)


def leave(cluster, then=None):
    """A callback that takes all workers away in one iteration; ``then`` starts a timer."""

    def callback(iteration, *_):
        if iteration == 2:
            scale(cluster, 0)
            if then:
                then.start()

    return callback


def test_a_fit_without_workers_resumes_when_they_come(cluster, data, spread):
    X, y, _ = data
    scale(cluster, 1)
    expected = fit(spread(X), y)
    back = threading.Timer(1, cluster.scale, (1,))
    found = fit(spread(X), y, callback=leave(cluster, back))
    np.testing.assert_array_equal(found.components_, expected.components_)
    scale(cluster, 1)


def test_without_workers_it_says_so_and_gives_up_in_the_end(cluster):
    client = distributed.get_client()
    scale(cluster, 0)
    task = client.submit(os.getpid, pure=False)
    with (
        pytest.warns(UserWarning, match=r"no workers, so the fit waits, .* dask worker tcp://"),
        pytest.raises(NoWorkers, match="no workers for 2 s"),
    ):
        gather(client, [task], patience=0.5, limit=2)
    cluster.scale(1)
    assert gather(client, [task]) != [os.getpid()]
    scale(cluster, 1)


@pytest.mark.filterwarnings("ignore:The cluster has no workers")
def test_the_first_ctrl_c_ends_a_wait_for_workers(cluster):
    client = distributed.get_client()
    scale(cluster, 0)
    threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with interruptions(), pytest.raises(KeyboardInterrupt):
        gather(client, [client.submit(os.getpid, pure=False)], patience=0.5)
    assert time.monotonic() - began < 60
    scale(cluster, 1)


@pytest.fixture
def mortal(tmp_path):
    """A scheduler in a process of its own, and a client of it."""
    file, common = tmp_path / "scheduler.json", ("--scheduler-file", str(tmp_path / "scheduler.json"))
    commands = (("dask_scheduler", *common, "--port", "0", "--dashboard-address", ":0"), ("dask_worker", *common))
    processes = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.{name}", *options], stderr=subprocess.DEVNULL)
        for name, *options in commands
    ]
    wait_until(file.exists)
    client = distributed.Client(scheduler_file=str(file), set_as_default=False)
    client.wait_for_workers(1, timeout=120)
    yield processes[0], client
    client.close(timeout=1)
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.filterwarnings("ignore:The cluster has no workers")
@pytest.mark.parametrize("when", ["before the rows", "before the fit", "during the fit"])
def test_a_killed_scheduler_ends_in_a_message(mortal, data, tmp_path, when):
    scheduler, client = mortal
    X, y, _ = data
    folder = write_blocks(tmp_path / "blocks", (X[a:b] for a, b in itertools.pairwise(BOUNDS)))

    def run():
        if when == "before the rows":
            scheduler.kill()
            scheduler.wait()
        rows = on_cluster(folder, client)
        if when == "before the fit":
            scheduler.kill()
            scheduler.wait()
        fit(rows, y, callback=lambda iteration, *_: scheduler.kill() if iteration == 3 else None)

    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}), pytest.raises(NoWorkers, match="is lost"):
        run()


def test_dask_is_not_imported_without_need():
    script = "import sys, topicsteer; from topicsteer import TSNMF, TopicModel; print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
