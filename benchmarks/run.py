"""Speed and memory as ratios against other tools: `make bench`, or `python benchmarks/run.py NAME ...` for some.

Each measurement runs in its own process and takes the best of several runs. Each side uses the better of one and two
threads. The output is a Markdown table.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

THREADS = (1, 2)


def best(task: str, *arguments: object, **environment: str) -> dict:
    """Run one task in a new process for each number of threads, and return the quicker result."""
    answers = []
    for threads in THREADS:
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        answers.append(once(task, *arguments, **{**limits, **environment}))
    return min(answers, key=lambda answer: answer["seconds"])


def once(task: str, *arguments: object, **environment: str) -> dict:
    command = [sys.executable, __file__, "--task", task, *(json.dumps(a) for a in arguments)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if run.returncode:
        sys.exit(f"{task} failed:\n{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


# --- tasks, one process each ---


def reuters_problem(rate=0.2):
    import data

    X, labels, name = data.news()
    topics = sorted({label for names in labels for label in names})
    return X, data.label_some(labels, rate), topics, name


def paper_start(X, d, seed=0):
    import numpy as np

    from topicsteer.backends import as_rows
    from topicsteer.nmf.factorisation import random_acol

    rng = np.random.RandomState(seed)
    return rng.uniform(size=(X.shape[0], d)).astype(X.dtype), random_acol(as_rows(X), d, rng)


def scikit_start(X, d, seed=0):
    import numpy as np

    rng = np.random.default_rng(seed)
    scale = np.sqrt(X.sum() / X.shape[0] / X.shape[1] / d)
    W, H = (np.abs(rng.standard_normal(shape)) * scale for shape in ((X.shape[0], d), (d, X.shape[1])))
    return W.astype(X.dtype), H.astype(X.dtype)


def error(X, W, H, e=None):
    """Return Σ e (X - WH)² in double precision, without a dense product."""
    import numpy as np

    X, W, H = X.astype(np.float64), W.astype(np.float64), H.astype(np.float64)
    e = np.ones(X.shape[0]) if e is None else e
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() @ e
    return float(squares - 2 * ((X @ H.T) * W * e[:, None]).sum() + ((W.T @ (W * e[:, None])) * (H @ H.T)).sum())


def authors():
    """Run the weighted rules of the paper's appendix on dense matrices, for 30 iterations."""
    import numpy as np

    from topicsteer.labels.forms import supervise

    X, y, topics, _ = reuters_problem()
    supervision = supervise(y, X.shape[0], topics=topics)
    L = supervision.permitted(len(topics), free_in_labelled=True)[supervision.pattern].astype(float)
    e = np.where(supervision.labelled, len(y) / supervision.labelled.sum(), 1.0)
    W, H = (part.astype(float) for part in paper_start(X, len(topics)))
    V = X.toarray().astype(float)
    E = np.repeat(e[:, None], V.shape[1], axis=1)
    began = time.perf_counter()
    tiny = 1e-12
    W *= L
    for _ in range(30):
        H *= (W.T @ (V * E)) / (W.T @ ((W @ H) * E) + tiny)
        W *= (((V * E) @ H.T) * L) / (((((W @ H) * E) @ H.T) * L) + tiny)
    return {"seconds": time.perf_counter() - began, "objective": error(X, W, H, e)}


def scikit(which, iterations):
    import numpy as np
    from sklearn.decomposition import non_negative_factorization

    X, d = matrix(which)
    W, H = scikit_start(X, d)
    began = time.perf_counter()
    W, H, _ = non_negative_factorization(X, W, H, n_components=d, init="custom", max_iter=iterations, tol=0)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "objective": error(X, W, H), "dtype": str(np.asarray(W).dtype)}


def ours(which, goal, start):
    """Time a whole call of fit that stops at the goal; the kernels are compiled and loaded before."""
    from topicsteer import TSNMF

    y, topics = None, None
    if which == "labelled":
        X, y, topics, _ = reuters_problem()
        d = len(topics)
    else:
        X, d = matrix(which)
    init = {"labels": "labels", "paper": None, "scikit": None}[start]
    if start == "paper":
        init = paper_start(X, d)
    elif start == "scikit":
        init = scikit_start(X, d)
    model = TSNMF(d, topics=topics, init=init, tol=0, random_state=0)
    TSNMF(3, random_state=0, max_iter=2).fit(X[:50])
    seconds, last = [], []
    for _ in range(3 if which != "large" else 1):
        began = time.perf_counter()
        model.fit(X, y, callback=lambda i, objective, s: last.append((i, objective)) or objective <= goal)
        seconds.append(time.perf_counter() - began)
    if last[-1][1] > goal:
        sys.exit(f"goal {goal} not reached: {last[-1]}")
    return {"seconds": min(seconds), "iterations": last[-1][0], "objective": last[-1][1]}


def matrix(which):
    import data

    if which == "large":
        return data.synthetic(75_000, 20_000, 54, 150), 150
    X, _, topics, _ = reuters_problem()
    return X, len(topics)


def growth(n):
    """Measure seconds per iteration once W is sparse, and peak memory beyond X and W."""
    import data

    from topicsteer import TSNMF

    X = data.synthetic(n, 20_000, 60, 100)
    TSNMF(3, random_state=0, max_iter=2).fit(X[:50])
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak memory
    before = memory("VmRSS")
    times = []
    model = TSNMF(100, random_state=0, max_iter=12, tol=0, label_weight=None)
    model.fit(X, {i: i for i in range(100)}, callback=lambda i, o, s: times.append(s) and None)
    beyond = memory("VmHWM") - before - model.document_topics_.nbytes
    steps = sorted(b - a for a, b in itertools.pairwise(times[5:]))
    return {"seconds": steps[len(steps) // 2], "beyond": beyond / size, "terms": X.nnz / n}


def memory(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


def refit():
    """Time a warm refit with one more label, to the objective of a cold fit plus a thousandth.

    The cold fit goes to its minimum: by default it stops after two or three iterations.
    """
    from topicsteer import TSNMF

    X, y, topics, _ = reuters_problem()
    i = next(i for i, labels in enumerate(y) if not labels)
    TSNMF(3, random_state=0, max_iter=2).fit(X[:50])
    cold_times, warm_times = [], []
    for _ in range(3):
        model = TSNMF(len(topics), topics=topics, random_state=0, tol=1e-4).fit(X, y)
        new = [*y[:i], [topics[0]], *y[i + 1 :]]
        began = time.perf_counter()
        cold = TSNMF(len(topics), topics=topics, random_state=0, tol=1e-4).fit(X, new)
        cold_times.append(time.perf_counter() - began)
        goal = 1.001 * cold.objective_history_[-1]
        began = time.perf_counter()
        model.set_params(init=(model.document_topics_, model.components_))
        model.fit(X, new, callback=lambda i, objective, s, goal=goal: objective <= goal)
        warm_times.append(time.perf_counter() - began)
        assert model.objective_history_[-1] <= goal
    answer = {"cold iterations": cold.n_iter_, "warm iterations": model.n_iter_}
    return {"seconds": min(warm_times), "cold": min(cold_times), **answer}


def first_fit():
    import topicsteer  # noqa: F401
    from topicsteer import TSNMF

    TSNMF(random_state=0).fit([[1.0, 0, 1], [0, 1, 0], [1, 1, 1]], ["a", "b", None])
    return {"seconds": 0.0}


TASKS = {f.__name__: f for f in (authors, scikit, ours, growth, refit, first_fit)}


# --- the table ---


def bench_authors():
    theirs = best("authors")
    labels, same = (best("ours", "labelled", theirs["objective"], start) for start in ("labels", "paper"))
    ratio, ratio_same = theirs["seconds"] / labels["seconds"], theirs["seconds"] / same["seconds"]
    note = (
        f"{theirs['seconds']:.1f} s; ours {labels['seconds'] * 1000:.0f} ms from the labels, "
        f"{same['seconds'] * 1000:.0f} ms ({ratio_same:.0f}×) from the paper's start"
    )
    yield "the authors' dense rules, 30 iterations", f"{ratio:.0f}×", "100×", "200×", note


def bench_scikit():
    theirs = best("scikit", "reuters", 50)
    mine = best("ours", "reuters", theirs["objective"], "scikit")
    note = f"{theirs['seconds']:.2f} s; ours {mine['seconds']:.3f} s, {mine['iterations']} iterations"
    yield "scikit-learn cd, 50 iterations", f"{theirs['seconds'] / mine['seconds']:.1f}×", "5×", "8×", note


def bench_large():
    theirs = best("scikit", "large", 10)
    mine = best("ours", "large", theirs["objective"], "scikit")
    note = f"{theirs['seconds']:.1f} s; ours {mine['seconds']:.2f} s, {mine['iterations']} iterations"
    name = "the same, 75,000 × 20,000, 150 topics, 10 iterations"
    yield name, f"{theirs['seconds'] / mine['seconds']:.1f}×", "4×", "8×", note


def bench_growth():
    rows = {n: best("growth", n) for n in (10_000, 100_000, 1_000_000)}
    base = rows[10_000]["seconds"] / 10_000
    ratio = rows[1_000_000]["seconds"] / 1_000_000 / base
    note = "; ".join(f"{n:,}: {row['seconds'] / n * 1e6:.2f} µs per document" for n, row in rows.items())
    yield "time per iteration, 10,000 to 1,000,000 documents", f"{ratio:.2f} × linear", "1.15 ×", "1.05 ×", note
    note = f"{rows[1_000_000]['terms']:.0f} terms per document, 20,000 terms, 100 topics"
    name = "memory beyond X and W, 1,000,000 documents"
    yield name, f"{rows[1_000_000]['beyond']:.2f} × X", "1.2 ×", "0.5 ×", note


def bench_refit():
    row = best("refit")
    note = (
        f"cold {row['cold']:.2f} s ({row['cold iterations']} iterations), "
        f"warm {row['seconds']:.3f} s ({row['warm iterations']})"
    )
    yield "refit after one new label", f"1/{row['cold'] / row['seconds']:.0f}", "1/5", "1/20", note


def bench_first():
    def seconds(**environment):
        began = time.perf_counter()
        once("first_fit", **environment)
        return time.perf_counter() - began

    seconds()
    warm = min(seconds() for _ in range(3))
    with tempfile.TemporaryDirectory() as empty:
        cold = seconds(NUMBA_CACHE_DIR=empty)
    yield "import and first small fit, kernel cache warm", f"{warm:.1f} s", "2.5 s", "1 s", ""
    yield "the same, first use after install", f"{cold:.1f} s", "20 s", "8 s", ""


BENCHES = {
    "authors": bench_authors,
    "scikit": bench_scikit,
    "large": bench_large,
    "growth": bench_growth,
    "refit": bench_refit,
    "first": bench_first,
}


def main(names):
    print(f"| against | measured | must | aim | detail |\n{'|---' * 5}|", flush=True)
    for name in names or BENCHES:
        for row in BENCHES[name]():
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        warnings.simplefilter("ignore")
        print(json.dumps(TASKS[sys.argv[2]](*(json.loads(a) for a in sys.argv[3:]))))
    else:
        main(sys.argv[1:])
