"""Benchmarks of disk and cluster: `python benchmarks/scaling.py NAME ...`.

    disk      5,000,000 documents from disk with 4 GB, against 500,000 in memory;
    dask      one and two workers against memory, 300,000 documents;
    kill      workers killed at random moments, one and all of them;
    equal     the same H in memory, on disk and on 1, 2 and 4 workers;
    rivals    time to the same error: scikit-learn's MiniBatchNMF, and gensim's Nmf if it is installed;
    guided    guidance and factorisation of TopicModel, 300,000 documents, 5,000 labels;
    model     the cost model: constants from runs, a simulation, 100 million documents on 64 workers.

Each measurement runs in its own process and prints one line of JSON. The table comes last. The time of an iteration is
the fastest after the sixth, with three sweeps. Runs are interleaved, and the median counts. Data are generated once, in
benchmarks/.cache: 6 GB for `disk`.
"""

import itertools
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

TERMS, TOPICS = 50_000, 100
# Draws per document; they give some 60 distinct terms.
LENGTH = 50
# Share of labelled documents.
RATE = 0.01
GIGABYTE = 1 << 30


def once(task, threads=1, **arguments):
    """Run one task in a new process."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    command = [sys.executable, __file__, "--task", task, json.dumps(arguments)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **limits})
    if run.returncode:
        sys.exit(f"{task} {arguments} failed")
    answer = {"task": task, "threads": threads, **arguments, **json.loads(run.stdout.splitlines()[-1])}
    print(json.dumps({k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in answer.items()}), flush=True)
    return answer


# --- tasks, one process each ---


def fit(X, labels, topics=TOPICS, iterations=12, threads=None, **further):
    """Return the model, with seconds per iteration and until the end of the first iteration."""
    from topicsteer import TSNMF

    times, began = [], time.perf_counter()
    model = TSNMF(topics, max_iter=iterations, tol=0, random_state=0, threads=threads)
    model.fit(X, labels, callback=lambda *_: times.append(time.perf_counter() - began), **further)
    steps = [b - a for a, b in itertools.pairwise(times[5:])]
    return model, {"iteration": min(steps), "median": statistics.median(steps), "first": times[0]}


def problem(n, t=TERMS, topics=TOPICS, rate=RATE):
    import data

    return data.synthetic(n, t, LENGTH, topics), data.synthetic_labels(n, t, LENGTH, topics, rate)


@contextmanager
def workers(number, **further):
    import distributed

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": 0}
    with (
        distributed.LocalCluster(n_workers=number, **options, **further) as here,
        distributed.Client(here, direct_to_workers=True) as client,
    ):
        yield client


def in_memory(n, t=TERMS, topics=TOPICS, iterations=12):
    X, labels = problem(n, t, topics)
    return fit(X, labels, topics, iterations)[1]


def on_cluster(n, number, blocks, t=TERMS, topics=TOPICS, iterations=12):
    """Measure a fit on a cluster, with the blocks, W and the state of the fit in a folder.

    `start` is the time to start the cluster. As many threads as workers update H while the workers wait.
    """
    from topicsteer import backends
    from topicsteer.backends.block_folder import in_blocks, write_blocks

    X, labels = problem(n, t, topics)
    with tempfile.TemporaryDirectory() as place:
        folder, entries = write_blocks(place + "/X", in_blocks(X, -(-n // blocks))), X.nnz
        del X
        began = time.perf_counter()
        with workers(number) as client:
            start = time.perf_counter() - began
            spread = backends.on_cluster(folder, client)
            found = fit(spread, labels, topics, iterations, number, folder=place + "/fit")[1]
            return {"start": start, "entries": entries, "tasks": -(-blocks // spread.run), **found}


def a_task(number):
    """Measure the seconds of an empty task."""
    with workers(number) as client:
        client.gather(client.map(abs, range(100)))
        began = time.perf_counter()
        client.gather(client.map(abs, range(-3000, 0)))
        return {"seconds": (time.perf_counter() - began) / 3000}


def on_disk(n, limit):
    """Measure a fit from a folder under a limit on data memory, with the file cache of the system kept empty."""
    import data

    X, labels = data.synthetic_blocks(n, TERMS, LENGTH, TOPICS), data.synthetic_labels(n, TERMS, LENGTH, TOPICS, RATE)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with tempfile.TemporaryDirectory(dir=data.CACHE) as place, no_cache(X.path, Path(place)):
        found = fit(X, labels, iterations=10, folder=place)[1]
    return {"read GB": status("io", "read_bytes") / 1e9, "memory GB": status("status", "VmHWM") * 1024 / 1e9, **found}


@contextmanager
def no_cache(*folders):
    """Drop the cached pages of the files in folders repeatedly, except mapped pages."""
    stop = threading.Event()

    def forget():
        while not stop.wait(0.5):
            for path in itertools.chain(*(folder.rglob(name) for folder in folders for name in ("*.npy", "*.weights"))):
                try:
                    file = os.open(path, os.O_RDONLY)
                except FileNotFoundError:
                    continue
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def status(file, field):
    lines = Path("/proc/self", file).read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def killed(n, times, seed):
    """Kill one worker at a random moment of each fit, then both in three fits; the nannies restart them."""
    import dask
    import numpy as np

    from topicsteer import backends
    from topicsteer.backends.block_folder import in_blocks, write_blocks

    X, labels = problem(n, 5_000, 20)
    rng, kills, both, worst = np.random.default_rng(seed), [], 0, 0.0

    def kill(pids):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            kills.append(pid)

    # Without these settings a worker that is killed twice in short order would not be restarted.
    patient = {"distributed.scheduler.allowed-failures": 100, "distributed.deploy.lost-worker-timeout": "1h"}
    with tempfile.TemporaryDirectory() as place, dask.config.set(patient), workers(2) as client:
        spread = backends.on_cluster(write_blocks(place + "/X", in_blocks(X, n // 8)), client)
        for _ in range(2):  # the first fit loads the kernels
            began = time.perf_counter()
            whole = fit(spread, labels, 20)[0]
            seconds = time.perf_counter() - began
        for turn in range(times + 3):
            pids = living(client, 2, kills)
            chosen = pids if turn >= times else [pids[rng.integers(len(pids))]]
            timer = threading.Timer(rng.uniform(0.1, 0.9) * seconds, kill, [chosen])
            timer.start()
            model = fit(spread, labels, 20)[0]
            timer.cancel()  # a fit that ended early kills nothing
            both += turn >= times and kills[-len(pids) :] == pids
            worst = max(worst, float(np.abs(model.components_ - whole.components_).max()))
    return {"fits": times + 3, "kills": len(kills), "both": both, "largest difference": worst}


def living(client, number, dead):
    """Wait for this number of living workers and return their process ids."""
    for _ in range(600):
        try:
            pids = list(client.run(os.getpid).values())
            if len(pids) == number and not set(pids) & set(dead):
                return pids
        except OSError:  # the scheduler does not know yet that a worker is dead
            pass
        time.sleep(0.1)
    sys.exit("The workers were not restarted.")


def same(n, precision):
    """Return the relative differences of H from the fit in memory, by Frobenius norm."""
    import numpy as np

    from topicsteer import backends
    from topicsteer.backends.block_folder import in_blocks, write_blocks

    X, labels = problem(n, 10_000, 50)
    X = X.astype(precision)
    H = fit(X, labels, 50)[0].components_
    with tempfile.TemporaryDirectory() as place:
        folder = write_blocks(place + "/X", in_blocks(X, -(-n // 8)))
        found = {"disk": fit(folder, labels, 50)[0].components_}
        for number in (1, 2, 4):
            with workers(number) as client:
                found[f"{number} workers"] = fit(backends.on_cluster(folder, client), labels, 50)[0].components_
    return {name: float(np.linalg.norm(other - H) / np.linalg.norm(H)) for name, other in found.items()}


def rival(name, n):
    """Return the seconds of a rival, and the error of its H with the best W."""
    import numpy as np

    X, _ = problem(n)
    began = time.perf_counter()
    if name == "MiniBatchNMF":
        from sklearn.decomposition import MiniBatchNMF

        H = MiniBatchNMF(TOPICS, batch_size=4096, max_iter=1, init="random", random_state=0).fit(X).components_
    else:
        from gensim.matutils import Sparse2Corpus
        from gensim.models.nmf import Nmf

        corpus = Sparse2Corpus(X.tocsc(), documents_columns=False)
        words = dict(enumerate(map(str, range(TERMS))))
        model = Nmf(corpus, TOPICS, id2word=words, chunksize=4096, random_state=0, eval_every=None)
        H = model.get_topics()
    return {"seconds": time.perf_counter() - began, "error": error(X, np.asarray(H, dtype=X.dtype))}


def ours(n, goal):
    """Time a fit that stops at the error of the rival."""
    from topicsteer import TSNMF

    X, _ = problem(n)
    TSNMF(3, random_state=0, max_iter=2).fit(X[:50])
    began = time.perf_counter()
    model = TSNMF(TOPICS, random_state=0, tol=0).fit(X, callback=lambda i, objective, s: objective <= goal)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "iterations": model.n_iter_, "error": error(X, model.components_)}


def error(X, H):
    """Return ‖X - WH‖² with the best W for H."""
    import numpy as np

    from topicsteer.nmf import kernels
    from topicsteer.nmf import loop as solvers
    from topicsteer.nmf.blocks import Block, Penalties
    from topicsteer.nmf.loop import row_errors
    from topicsteer.nmf.solvers import Regularisation

    n, d = X.shape[0], len(H)
    HT, W = np.ascontiguousarray(H.T), np.zeros((n, d), X.dtype)
    parts = X.indptr.astype(np.int64), X.indices, X.data, W, np.ones(n, X.dtype), np.zeros(n, np.int32)
    block = Block(*parts, Penalties.none(n, X.dtype))
    kernels.prepare(X.dtype)
    solvers.transform(block, HT, np.ones((1, d), bool), Regularisation(), None)
    return float(row_errors(block, HT, HT.T @ HT).sum(dtype=np.float64))


def guided(n, labels):
    """Time learning a guide, computing its penalties, and the fit with them."""
    from topicsteer import TSNMF
    from topicsteer.backends import as_rows
    from topicsteer.guidance.apply import apply_guide
    from topicsteer.guidance.features import Sample
    from topicsteer.guidance.train import learn_guide
    from topicsteer.labels.forms import supervise

    X, y = problem(n, rate=1.1 * labels / n)
    y = dict(list(y.items())[:labels])
    began = time.perf_counter()
    supervision = supervise(y, n)
    rows = as_rows(X)
    guide = learn_guide(Sample(rows, supervision), world="closed")
    topics = [(k,) for k in range(guide.n_known)]
    penalties = apply_guide(rows, guide, supervision, topics, TOPICS, folder=Path()).penalties
    model = TSNMF(TOPICS, label_weight=None, random_state=0).fit(X, y, penalties=penalties)
    seconds = time.perf_counter() - began
    return {
        "labels": len(y),
        "seconds": seconds,
        "iterations": model.n_iter_,
        "memory GB": status("status", "VmHWM") * 1024 / 1e9,
    }


TASKS = {f.__name__: f for f in (in_memory, on_cluster, a_task, on_disk, killed, same, rival, ours, guided)}


# --- comparisons ---


def bench_disk(n=5_000_000, base=500_000):
    memory, disk = once("in_memory", 2, n=base, iterations=10), once("on_disk", 2, n=n, limit=4 * GIGABYTE)
    a, b = memory["iteration"] / base * 1e6, disk["iteration"] / n * 1e6
    yield f"from disk {b:.2f} µs per document and iteration, in memory {a:.2f} µs", f"{b / a:.2f}×", "≤ 1.5×"
    yield "memory, including pages of mapped files", f"{disk['memory GB']:.1f} GB", ""


def bench_dask(n=300_000, blocks=8, rounds=5):
    cases = {
        "one thread": ("in_memory", 1, {}),
        "two threads": ("in_memory", 2, {}),
        "one worker": ("on_cluster", 1, {"number": 1, "blocks": blocks}),
        "two workers": ("on_cluster", 1, {"number": 2, "blocks": blocks}),
    }
    rows = {name: [] for name in cases}
    for _ in range(rounds):  # interleaved, because the speed of a machine varies
        for name, (task, threads, further) in cases.items():
            rows[name].append(once(task, threads, n=n, iterations=9, **further))
    middle = {name: statistics.median(row["iteration"] for row in found) for name, found in rows.items()}
    yield "one worker against memory, one thread", f"{middle['one worker'] / middle['one thread']:.2f}×", "≤ 1.2×"
    yield "two workers against one", f"{middle['one worker'] / middle['two workers']:.2f}×", "≥ 1.6×"
    yield "two threads in memory against one", f"{middle['one thread'] / middle['two threads']:.2f}×", ""
    first = {name: min(row.get("start", 0) + row["first"] for row in found) for name, found in rows.items()}
    yield "start-up of two workers, more than in memory", f"{first['two workers'] - first['one thread']:.1f} s", ""


def bench_kill():
    found = once("killed", n=30_000, times=10, seed=0)
    fits = f"{found['kills']} workers killed in {found['fits']} fits, all at once in {found['both']} of them"
    yield f"{fits}: largest difference of H", f"{found['largest difference']:g}", "0"


def bench_equal():
    for precision, limit in (("float32", 1e-5), ("float64", 1e-9)):
        found = once("same", 2, n=30_000, precision=precision)
        worst = max(value for key, value in found.items() if key == "disk" or key.endswith("workers"))
        yield f"largest relative difference of H, {precision}", f"{worst:.1e}", f"≤ {limit:g}"


def bench_rivals():
    for name, n in (("MiniBatchNMF", 300_000), ("gensim", 30_000)):  # gensim is slow
        if name == "gensim" and find_spec("gensim") is None:
            yield "gensim is not installed", "", ""
            continue
        theirs = min((once("rival", threads, name=name, n=n) for threads in (1, 2)), key=lambda row: row["seconds"])
        mine = once("ours", 2, n=n, goal=theirs["error"])
        both = f"{name} {theirs['seconds']:.1f} s, ours {mine['seconds']:.1f} s ({mine['iterations']} iterations)"
        yield f"{n:,} documents: {both}", f"{theirs['seconds'] / mine['seconds']:.1f}×", ""


def bench_guided(n=300_000, labels=5_000):
    found = once("guided", 2, n=n, labels=labels)
    yield f"guide and fit, {found['labels']:,} labels", f"{found['seconds']:.0f} s", "≤ 600 s"
    yield "peak memory", f"{found['memory GB']:.1f} GB", "≤ 6 GB"


def bench_model():
    from costmodel import Size, fitted, simulate

    runs = []
    for n, t, d, number in itertools.product((40_000, 120_000), (10_000, 30_000), (50, 100), (1, 2)):
        row = once("on_cluster", 1, n=n, number=number, blocks=8, t=t, topics=d, iterations=11)
        runs.append((Size(n, row["entries"], t, d, number, number, row["tasks"]), row["iteration"]))
    costs = fitted(*map(list, zip(*runs, strict=True)), once("a_task", number=2)["seconds"])
    print(json.dumps({name: float(f"{value:.3g}") for name, value in vars(costs).items()}))
    off = {"formula": [], "simulation": []}
    print("| documents | terms | topics | workers | measured | formula | simulation |\n" + "|---" * 7 + "|")
    for size, seconds in runs:
        found = costs.seconds(size), simulate(costs, size)
        for name, value in zip(off, found, strict=True):
            off[name].append(abs(value / seconds - 1))
        print(f"| {size.n:,} | {size.t:,} | {size.d} | {size.P} | {seconds:.3f} | {found[0]:.3f} | {found[1]:.3f} |")
    for name, values in off.items():
        yield f"{name}: median and largest error", f"{statistics.median(values):.0%}, {max(values):.0%}", ""
    for P in (1, 8, 64, 512):
        size = Size(100_000_000, 61 * 100_000_000, TERMS, TOPICS, P, 2, 4 * P)
        parts = ", ".join(f"{name} {value:.2f}" for name, value in costs.parts(size).items())
        shown = f"{costs.seconds(size):.1f} s, simulated {simulate(costs, size):.1f} s"
        yield f"100 million documents, {P} workers ({parts}; {costs.moved(size) / 1e9:.1f} GB moved)", shown, ""


BENCHES = {name.removeprefix("bench_"): f for name, f in list(globals().items()) if name.startswith("bench_")}


def main(names):
    rows = [row for name in names for row in BENCHES[name]()]
    print(f"| comparison | measured | must |\n{'|---' * 3}|")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        warnings.simplefilter("ignore")
        print(json.dumps(TASKS[sys.argv[2]](**json.loads(sys.argv[3]))))
    elif sys.argv[1:] and all(name in BENCHES for name in sys.argv[1:]):
        main(sys.argv[1:])
    else:
        sys.exit(__doc__)
