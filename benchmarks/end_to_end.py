"""From texts to topics, `python benchmarks/end_to_end.py NAME`: time and memory of whole pipelines on real text.

    pipelines   20 Newsgroups and PubMed, 5 % labelled; with --path, any table that topicsteer reads;
    latent      latent semantics against randomized_svd(n_iter=3), q = 400;
    words       words to matrix against TfidfVectorizer, 20 Newsgroups with headers;
    commands    commands on a model against the import of numpy and scipy.sparse;
    threads     two threads against one, whole fit;
    large       resampled abstracts (--texts 300000): time and memory.

Every ratio compares runs that take turns, and takes the best of several. The corpora are found through TOPICSTEER_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

# Share of the documents that are labelled.
LABELLED = 0.05
# Topics of the rivals that do not read labels.
COMPONENTS = 30
# Runs of each side.
REPEATS = 3


def corpus(name: str) -> tuple[list[str], list[list[str]]]:
    """Texts and labels of a corpus by its name, or of a table by its path."""
    if name == "newsgroups":
        from corpora import load_newsgroups

        found = load_newsgroups()
    elif name == "pubmed":
        from corpora import load_medline

        found = load_medline(check_tags=False, min_documents=100)
    else:
        from topicsteer.corpora import ReadOptions, read_documents

        found = read_documents(Path(name), ReadOptions())
    return list(found.texts), [list(own or ()) for own in found.labels or [()] * len(found)]


def some_labels(labels: list[list[str]]) -> list[list[str] | None]:
    """The labels of a random share of the documents."""
    kept = np.random.default_rng(0).random(len(labels)) < LABELLED
    return [own if keep and own else None for own, keep in zip(labels, kept, strict=True)]


# --- pipelines: each takes texts and labels ---


def ours(texts: list[str], given: list[list[str] | None], threads: int | None = None) -> None:
    """The default model."""
    from topicsteer import TopicModel

    TopicModel(threads=threads).fit(texts, given)


def tfidf(texts: list[str]) -> Any:
    """TF-IDF of scikit-learn, with settings like ours."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    options = {"max_features": 10_000, "min_df": 2, "max_df": 0.5, "sublinear_tf": True, "stop_words": "english"}
    return TfidfVectorizer(**options, dtype=np.float32).fit_transform(texts)


def nmf(texts: list[str], given: list[list[str] | None]) -> None:
    """TfidfVectorizer and NMF with its defaults."""
    from sklearn.decomposition import NMF

    NMF(COMPONENTS, random_state=0).fit_transform(tfidf(texts))


def regression(texts: list[str], given: list[list[str] | None], reduce: bool = False) -> None:
    """TfidfVectorizer and one logistic regression per topic, for all documents."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MultiLabelBinarizer

    X = tfidf(texts)
    if reduce:
        X = TruncatedSVD(400, random_state=0).fit_transform(X)
    rows = [i for i, own in enumerate(given) if own]
    Y = MultiLabelBinarizer().fit_transform([given[i] for i in rows])
    OneVsRestClassifier(LogisticRegression()).fit(X[rows], Y).predict_proba(X)


def clusters(texts: list[str], given: list[list[str] | None]) -> None:
    """BERTopic's default pipeline on latent semantics in place of embeddings."""
    from bertopic import BERTopic
    from sklearn.decomposition import TruncatedSVD

    E = TruncatedSVD(100, random_state=0).fit_transform(tfidf(texts))
    BERTopic().fit_transform(texts, embeddings=E)


PIPELINES: dict[str, Callable[..., None]] = {
    "topicsteer": ours,
    "TfidfVectorizer + NMF": nmf,
    "TfidfVectorizer + logistic regression": regression,
    "TfidfVectorizer + TruncatedSVD(400) + logistic regression": lambda *given: regression(*given, reduce=True),
    "BERTopic without embedding": clusters,
}


def one_run(name: str, source: str, threads: int | None) -> None:
    """Run one pipeline in this process, and print its seconds and the memory beyond the texts as JSON.

    Processor time, of all threads and of the main thread, is less noisy than seconds while other programs run.
    """
    from topicsteer.nmf import kernels

    texts, labels = corpus(source)
    given = some_labels(labels)
    if name == "topicsteer":  # its kernels are compiled once after installation
        kernels.prepare(np.float32)
        ours(texts[:200], some_labels(labels[:200]))
    before, start, processor, main_thread = peak(), time.perf_counter(), time.process_time(), time.thread_time()
    warnings.simplefilter("ignore")
    if name == "topicsteer":
        ours(texts, given, threads)
    else:
        PIPELINES[name](texts, given)
    found = {"seconds": time.perf_counter() - start, "megabytes": peak() - before}
    found |= {"processor": time.process_time() - processor, "main_thread": time.thread_time() - main_thread}
    print(json.dumps(found))


def peak() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


class Anonymous:
    """The most anonymous memory within a block of code beyond that at its start, in MB; needs Linux.

    The system can write the pages of files to disk and drop them, so they do not count.
    """

    def __enter__(self) -> Anonymous:
        self._first, self._done, self.most = self._now(), threading.Event(), 0.0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, self._now() - self._first)

    @staticmethod
    def _now() -> float:
        lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return int(lines["RssAnon"].split()[0]) / 1e3


def in_process(name: str, source: str, threads: int) -> dict[str, float] | None:
    """The result of a pipeline in its own process with a number of threads; None if a package is missing."""
    environment = os.environ | {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    command = [sys.executable, __file__, "run", "--name", name, "--path", source, "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        print(f"{name}: {done.stderr.splitlines()[-1]}")
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def pipelines(sources: Iterable[str], repeats: int) -> None:
    """Print the table of pipelines; each one has the better of one and two threads."""
    for source in sources:
        best: dict[str, dict[str, float]] = {}
        for _ in range(repeats):
            for name in PIPELINES:
                for threads in (1, 2):
                    found = in_process(name, source, threads)
                    if found and found["seconds"] < best.get(name, {"seconds": np.inf})["seconds"]:
                        best[name] = found | {"threads": threads}
        print(f"| {source} | seconds | against ours | threads | MB beyond the texts |\n|---|---|---|---|---|")
        for name, found in best.items():
            ratio = found["seconds"] / best["topicsteer"]["seconds"]
            print(
                f"| {name} | {found['seconds']:.2f} | {ratio:.1f}× | {found['threads']} | {found['megabytes']:,.0f} |"
            )


# --- parts ---


def take_turns(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The fewest seconds of each side; the sides take turns."""
    best = dict.fromkeys(sides, np.inf)
    for _ in range(repeats):
        for name, work in sides.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def latent(repeats: int) -> None:
    """Latent semantics against `randomized_svd`."""
    import scipy.sparse as sp
    from sklearn.utils.extmath import randomized_svd

    from topicsteer.nmf.latent import leading_directions
    from topicsteer.text import TextVectorizer

    for source in ("newsgroups", "pubmed"):
        X = sp.csr_array(TextVectorizer().fit_transform(corpus(source)[0]))
        leading_directions(X[:500], 20)  # compile
        sides = {
            "randomized_svd": partial(randomized_svd, X, 400, n_iter=3, random_state=0),
            "ours": partial(leading_directions, X, 400),
            "ours, one thread": partial(leading_directions, X, 400, threads=1),
        }
        best = take_turns(sides, repeats)
        theirs, own = sides["randomized_svd"]()[2].T, sides["ours"]()
        energy = np.linalg.norm(X @ own) ** 2 / np.linalg.norm(X @ theirs) ** 2
        print(f"{source} {X.shape}: {describe(best, 'randomized_svd')}; energy {energy:.4f}")


def words(repeats: int) -> None:
    """Words to matrix against TfidfVectorizer."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from topicsteer.text import TextVectorizer, stop_words

    texts = corpus("newsgroups")[0]
    same = {"min_df": 5, "max_df": 0.5, "max_features": None, "sublinear_tf": True}
    pattern = r"(?!\d+(?![^\W_]))[^\W_]{2,}"
    theirs = TfidfVectorizer(**same, stop_words=sorted(stop_words("en")), token_pattern=pattern, dtype=np.float32)
    own = {threads: TextVectorizer(**same, stop_words="en", threads=threads) for threads in (1, 2)}
    own[1].fit(texts[:100])  # compile
    sides: dict[str, Callable[[], object]] = {"TfidfVectorizer": lambda: theirs.fit_transform(texts)}
    sides |= {
        "ours, two threads": lambda: own[2].fit_transform(texts),
        "ours, one thread": lambda: own[1].fit_transform(texts),
    }
    print(describe(take_turns(sides, repeats), "TfidfVectorizer"))
    print(f"same terms: {own[1].vocabulary_ == theirs.vocabulary_}")


def commands(repeats: int) -> None:
    """Commands on a saved model against the import of numpy and scipy.sparse."""
    from topicsteer import TopicModel, corpora

    with tempfile.TemporaryDirectory() as folder:
        documents = corpora.load_docstrings().hide_labels(0.9, 0)
        TopicModel(3).fit(documents).save(f"{folder}/model")
        python, model = sys.executable, f"{folder}/model"
        start = [python, "-m", "topicsteer"]
        sides = {
            "import numpy, scipy.sparse": [python, "-c", "import numpy, scipy.sparse"],
            "topics": [*start, "topics", model],
            "explain": [*start, "explain", model, "the eigenvalues of a sparse matrix"],
            "--help": [*start, "--help"],
            "import and first fit of TSNMF": [python, "-c", FIRST_FIT],
        }
        subprocess.run(sides["import and first fit of TSNMF"], check=True, capture_output=True)  # compile
        runs = {
            name: lambda c=command: subprocess.run(c, check=True, capture_output=True)
            for name, command in sides.items()
        }
        best = take_turns(runs, repeats)
    base = best["import numpy, scipy.sparse"]
    for name, seconds in best.items():
        print(f"{name:<32} {seconds:6.2f} s  {seconds / base:4.1f}×")


FIRST_FIT = """
import numpy as np
from topicsteer import TSNMF
TSNMF(3, max_iter=5, tol=0).fit(np.random.default_rng(0).random((50, 20)), [0, 1, 2] * 10 + [None] * 20)
"""


def threads(repeats: int) -> None:
    """Two threads against one, whole fit of 20 Newsgroups."""
    texts, labels = corpus("newsgroups")
    given = some_labels(labels)
    ours(texts[:200], given[:200])  # compile
    warnings.simplefilter("ignore")
    best = take_turns({f"{n} threads": lambda n=n: ours(texts, given, n) for n in (1, 2)}, repeats)
    print(describe(best, "1 threads"))
    print(f"two independent loops on two threads: {ceiling(repeats):.2f}×")


def ceiling(repeats: int) -> float:
    """How much faster two threads are than one on two loops that share nothing: more is not to be had."""
    from topicsteer.system.machine_code import jit

    @jit(nogil=True)
    def loop(n: int) -> float:
        total = 0.0
        for i in range(n):
            total += (i % 7) / (1 + i % 3)
        return total

    loop(1)
    n = 100_000_000
    with ThreadPoolExecutor(2) as pool:
        sides = {"one": lambda: [loop(n), loop(n)], "two": lambda: list(pool.map(loop, [n, n]))}
        best = take_turns(sides, repeats)
    return best["one"] / best["two"]


def large(n: int) -> None:
    """Resampled abstracts: whole fit against TfidfVectorizer alone, and the memory beyond texts and X."""
    from topicsteer import TopicModel

    texts, given = resampled(n)
    TopicModel().fit(texts[:300], given[:300])
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    with Anonymous() as memory:
        model = TopicModel().fit(texts, given)
    seconds, beyond = time.perf_counter() - start, memory.most
    X = model.matrix_
    size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
    print(f"{n:,} texts, X {size:,.0f} MB, {len(model.codebook)} known topics: {seconds:.1f} s")
    print(f"memory beyond texts and X: {(beyond - size) / size:.2f} × X")
    print({name: round(value, 1) for name, value in model.state_.seconds.items()})
    del model
    start = time.perf_counter()
    tfidf(texts)
    print(f"TfidfVectorizer alone: {time.perf_counter() - start:.1f} s")


def resampled(n: int) -> tuple[list[str], list[list[str] | None]]:
    """Texts of sentences from abstracts with one heading, and the headings of 5,000 of them."""
    texts, labels = corpus("pubmed")
    draw, sentences = random.Random(0), {}
    for text, own in zip(texts, labels, strict=True):
        for heading in own:
            sentences.setdefault(heading, []).extend(text.split(". "))
    headings = sorted(sentences)
    chosen = [draw.choice(headings) for _ in range(n)]
    made = [". ".join(draw.choices(sentences[heading], k=8)) for heading in chosen]
    labelled = set(draw.sample(range(n), min(5_000, n)))
    return made, [[heading] if i in labelled else None for i, heading in enumerate(chosen)]


def describe(best: dict[str, float], base: str) -> str:
    """Seconds of each side, and its ratio to the base."""
    return ", ".join(f"{name} {seconds:.2f} s ({best[base] / seconds:.1f}×)" for name, seconds in best.items())


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["pipelines", "latent", "words", "commands", "threads", "large", "run"])
    parser.add_argument("--path", help="a table of texts with labels")
    parser.add_argument("--name", help="a pipeline, for run")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--texts", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args()
    if given.part == "pipelines":
        pipelines([given.path] if given.path else ["newsgroups", "pubmed"], given.repeats)
    elif given.part == "run":
        one_run(given.name, given.path, given.threads)
    elif given.part == "large":
        large(given.texts)
    else:
        {"latent": latent, "words": words, "commands": commands, "threads": threads}[given.part](given.repeats)


if __name__ == "__main__":
    main()
