"""Matrices for the benchmarks, generated once and kept in benchmarks/.cache."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from topicsteer.backends.block_folder import BlockFolder, BlockWriter

CACHE = Path(__file__).parent / ".cache"
# Rows that are generated at once.
PIECE = 20_000


def news() -> tuple[sp.csr_array, list[list[str]], str]:
    """Return matrix, labels and name of Reuters, prepared as in the paper; without it, of the built-in corpus."""
    from topicsteer.corpora import load_docstrings
    from topicsteer.text import TextVectorizer

    if os.environ.get("TOPICSTEER_DATA"):
        from corpora import load_reuters

        documents = load_reuters()
        documents = documents.select(i for i, text in enumerate(documents.texts) if len(text) > 250)
        name = "Reuters"
    else:
        documents = load_docstrings()
        name = "docstrings"
    path = CACHE / f"{name}-{len(documents)}.npz"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        if name == "Reuters":
            from shared.paper_words import letters_only, paper_vectorizer

            X = paper_vectorizer().fit_transform(letters_only(documents.texts))
        else:
            X = TextVectorizer(max_features=2000).fit_transform(documents.texts)
        sp.save_npz(path, sp.csr_array(X).astype(np.float32))
    return sp.csr_array(sp.load_npz(path)), [list(labels) for labels in documents.labels], name


def synthetic(
    n: int, t: int, terms: int, topics: int, seed: int = 0, piece: int = PIECE, cache: Path = CACHE
) -> sp.csr_array:
    """Return tf-idf rows of unit norm with Zipf terms.

    A third of the terms is common to all rows. The rest comes from one to three topics per row. The matrix is stored as
    .npy files, so that reading it back does not raise the peak memory.
    """
    folder = cache / f"synthetic-{n}-{t}-{terms}-{topics}-{seed}"
    if not folder.exists():
        making = folder.with_suffix(".part")
        making.mkdir(parents=True, exist_ok=True)
        blocks = list(_pieces(n, t, terms, topics, seed, piece, cache))
        indptr = np.concatenate([[0], *(np.diff(b.indptr) for b in blocks)]).cumsum().astype(np.int32)
        indices = np.concatenate([b.indices for b in blocks]).astype(np.int32)
        data = np.concatenate([b.data for b in blocks])
        del blocks
        _weigh(indptr, indices, data, _idf(n, np.bincount(indices, minlength=t)))
        for name, array in (("indptr", indptr), ("indices", indices), ("data", data)):
            np.save(making / f"{name}.npy", array)
        making.rename(folder)
    data, indices, indptr = (np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr"))
    return sp.csr_array((data, indices, indptr), shape=(n, t))


def synthetic_blocks(
    n: int,
    t: int,
    terms: int,
    topics: int,
    seed: int = 0,
    pieces: int = 3,
    piece: int = PIECE,
    cache: Path = CACHE,
) -> BlockFolder:
    """Return the rows of `synthetic` in blocks on disk, with `pieces` times `piece` rows per block.

    The matrix is never in memory as a whole. The idf needs all rows, so the counts are written first and weighted in
    place.
    """
    path = cache / f"blocks-{n}-{t}-{terms}-{topics}-{seed}-{pieces}"
    if not (path / "blocks.json").exists():
        frequency, waiting = np.zeros(t, dtype=np.int64), []
        with BlockWriter(path, t) as writer:
            drawn = _pieces(n, t, terms, topics, seed, piece, cache)
            for low, X in zip(range(0, n, piece), drawn, strict=True):
                frequency += np.bincount(X.indices, minlength=t)
                waiting.append(X)
                if len(waiting) == pieces or low + piece >= n:
                    writer.append(sp.vstack(waiting, format="csr"))
                    waiting.clear()
            idf = _idf(n, frequency)
            for path_of_data in sorted(path.glob("*-data.npy")):
                indptr, indices = (
                    np.load(str(path_of_data).replace("-data", part)) for part in ("-indptr", "-indices")
                )
                data = np.load(path_of_data)
                _weigh(indptr, indices, data, idf)
                np.save(path_of_data, data)
    return BlockFolder(path)


def synthetic_labels(
    n: int,
    t: int,
    terms: int,
    topics: int,
    rate: float,
    seed: int = 0,
    piece: int = PIECE,
    cache: Path = CACHE,
) -> dict[int, list[str]]:
    """Return the topics of a random share of the rows."""
    path = _topics_file(cache, n, t, terms, topics, seed)
    if not path.exists():
        for _ in _pieces(n, t, terms, topics, seed, piece, cache):
            pass
    of = np.load(path)
    chosen = np.flatnonzero(np.random.default_rng(seed).random(n) < rate)
    return {int(i): sorted({f"topic {k:03d}" for k in of[i] if k >= 0}) for i in chosen}


def _pieces(n, t, terms, topics, seed, piece, cache):
    """Yield damped term counts, `piece` rows at a time, then write the topics of all rows to a file."""
    rng = np.random.default_rng(seed)
    zipf = np.cumsum(1 / np.arange(1, t + 1))
    zipf /= zipf[-1]
    order = np.stack([rng.permutation(t) for _ in range(topics)]).astype(np.int32)
    topics_of = []
    for low in range(0, n, piece):
        X, of = _rows(rng, min(piece, n - low), t, terms, zipf, order)
        topics_of.append(of)
        yield X
    path = _topics_file(cache, n, t, terms, topics, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.concatenate(topics_of))


def _topics_file(cache, *numbers):
    return cache / f"topics-{'-'.join(map(str, numbers))}.npy"


def _rows(rng, n, t, terms, zipf, order):
    lengths = rng.poisson(1.3 * terms, n) + 3  # some terms are drawn twice
    row = np.repeat(np.arange(n), lengths)
    rank = np.searchsorted(zipf, rng.random(row.size)).clip(max=t - 1)
    of, draw, number = rng.integers(0, len(order), (n, 3)), rng.random(row.size), rng.integers(1, 4, n)
    topic = of[row, (draw * number[row]).astype(int)]
    column = np.where(rng.random(row.size) < 0.33, rank, order[topic, rank])
    X = sp.csr_array((np.ones(row.size, np.float32), (row, column)), shape=(n, t))
    X.sum_duplicates()
    X.data = 1 + np.log(X.data)
    return X, np.where(np.arange(3) < number[:, None], of, -1).astype(np.int16)


def _idf(n, frequency):
    return np.log((1 + n) / (1 + frequency)).astype(np.float32) + 1


def _weigh(indptr, indices, data, idf):
    """Multiply by idf and scale to unit norm, in place."""
    data *= idf[indices]
    norms = np.sqrt(np.add.reduceat(np.square(data, dtype=np.float64), indptr[:-1])).astype(np.float32)
    data /= np.repeat(norms, np.diff(indptr))


def label_some(labels: list[list[str]], rate: float, seed: int = 0) -> list[list[str]]:
    """Keep the labels of a random share of the documents."""
    keep = np.random.default_rng(seed).random(len(labels)) < rate
    return [names if kept else [] for names, kept in zip(labels, keep, strict=True)]
