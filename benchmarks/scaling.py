"""Beyond memory and one machine: `python benchmarks/scaling.py NAME`.

    disk      5,000,000 documents from disk under 4 GB, against 500,000 in memory
    dask      one and two workers against memory

Each measurement runs in a process of its own, and prints a line of JSON; a table comes last.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

TERMS, LENGTH, TOPICS, RATE = 50_000, 50, 100, 0.01  # LENGTH draws give some 60 different terms


def once(task: str, threads: int = 1, **arguments: object) -> dict:
    """Run one task below in a new process."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    command = [sys.executable, __file__, "--task", task, json.dumps(arguments)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **limits})
    if run.returncode:
        sys.exit(f"{task} {arguments} failed")
    answer = {"task": task, "threads": threads, **arguments, **json.loads(run.stdout.splitlines()[-1])}
    print(json.dumps(answer), flush=True)
    return answer


def fit(X, labels, *, topics=TOPICS, iterations=15, threads=None, **further):
    """The model, seconds an iteration once it makes three sweeps, and seconds until the first one is over."""
    from topicsteer import TSNMF

    times = []
    began = time.perf_counter()
    model = TSNMF(topics, max_iter=iterations, tol=0, random_state=0, threads=threads)
    model.fit(X, labels, callback=lambda i, o, s: times.append(time.perf_counter() - began) and None, **further)
    steps = [b - a for a, b in itertools.pairwise(times[6:])]
    return model, {"iteration": statistics.median(steps), "mean": statistics.mean(steps), "first": times[0]}


def problem(n, t=TERMS, topics=TOPICS):
    import data

    return data.synthetic(n, t, LENGTH, topics), data.synthetic_labels(n, t, LENGTH, topics, RATE)


def memory(n, t=TERMS, topics=TOPICS, iterations=15):
    X, labels = problem(n, t, topics)
    return fit(X, labels, topics=topics, iterations=iterations)[1]


def cluster(n, workers, blocks, t=TERMS, topics=TOPICS, iterations=15):
    """The blocks are in a folder; `start` is all from the making of the cluster to its readiness."""
    import distributed

    from topicsteer.blockfolder import in_blocks, write_blocks
    from topicsteer.cluster import ClusterBlocks

    X, labels = problem(n, t, topics)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        folder = write_blocks(place + "/X", in_blocks(X, -(-n // blocks)))
        began = time.perf_counter()
        options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": 0}
        with distributed.LocalCluster(n_workers=workers, **options) as here, distributed.Client(here) as client:
            start = time.perf_counter() - began
            found = fit(
                ClusterBlocks.of(folder, client), labels, topics=topics, iterations=iterations, folder=place + "/fit"
            )
        return {"start": start, **found[1]}


TASKS = {f.__name__: f for f in (memory, cluster)}


def dask(n=300_000, blocks=8):
    plain = once("memory", 1, n=n)
    one, two = (once("cluster", 1, n=n, workers=workers, blocks=blocks) for workers in (1, 2))
    yield "one worker against memory, one thread", one["iteration"] / plain["iteration"], "≤ 1.2"
    yield "two workers against one", one["iteration"] / two["iteration"], "≥ 1.6"


BENCHES = {f.__name__: f for f in (dask,)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        warnings.simplefilter("ignore")
        print(json.dumps(TASKS[sys.argv[2]](**json.loads(sys.argv[3]))))
    else:
        for name in sys.argv[1:]:
            for row in BENCHES[name]():
                print(row, flush=True)
