"""Small seeded problems for all tests."""

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.topics import Topics


def make_problem(seed=0, n=60, t=40, known=4, free=2, labelled=0.4, density=0.25, dtype=np.float64):
    """Random sparse X with planted topics and labels: (X csr, y list of lists, L dense mask)."""
    rng = np.random.default_rng(seed)
    d = known + free
    W = rng.gamma(0.4, size=(n, d)) * (rng.random((n, d)) < 0.4)
    H = rng.gamma(0.5, size=(d, t)) * (rng.random((d, t)) < 0.5)
    X = (W @ H + 0.05 * rng.random((n, t))) * (rng.random((n, t)) < 2 * density)
    y = []
    L = np.ones((n, d))
    for i in range(n):
        names = [k for k in range(known) if W[i, k] > 0]
        if rng.random() < labelled and names:
            y.append(names)
            L[i, :known] = 0
            L[i, names] = 1
        else:
            y.append([])
    for k in range(known):  # each topic labelled at least once
        i = int(np.argmax(W[:, k]))
        if k not in y[i]:
            y[i] = sorted({*y[i], k})
            L[i, :known] = 0
            L[i, y[i]] = 1
    return sp.csr_array(X.astype(dtype)), y, L


def make_topics(seed=0, n=40, known=3, free=2, t=30, names=None):
    """Topics with random weights, some of them zero."""
    rng = np.random.default_rng(seed)
    d = known + free
    W = rng.gamma(0.5, size=(n, d)) * (rng.random((n, d)) < 0.6)
    H = rng.gamma(0.3, size=(d, t)) * (rng.random((d, t)) < 0.7)
    return Topics(
        names or tuple(f"topic {k}" for k in range(d)),
        known,
        np.array([f"term{j}" for j in range(t)]),
        H,
        W,
        [f"doc{i}" for i in range(n)],
        rng.integers(1, 9, known),
    )


def planted_texts(n_topics, size=40, words=12, seed=0, own=12, shared=6):
    """Texts of topics with words of their own and some in common, topic by topic; ``size`` may be one per topic."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array([f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "bdfgklmnprst"])
    rng.shuffle(vocabulary)
    common = vocabulary[-30:]
    texts = []
    for k, many in enumerate(np.broadcast_to(size, n_topics)):
        mine = vocabulary[k * words : (k + 1) * words]
        texts += [" ".join([*rng.choice(mine, own), *rng.choice(common, shared)]) for _ in range(many)]
    return texts


def make_open_corpus(n=80, labelled=8, seed=0):
    """Texts about five subjects, n each; two have labels, and three have none: (texts, labels)."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for subject in ("tea", "coffee", "chess", "boat", "violin"):
        words = [f"{subject}{chr(97 + j // 26)}{chr(97 + j % 26)}" for j in range(60)]
        for i in range(n):
            texts.append(
                " ".join([*rng.choice(words[:20], 6), *rng.choice(words, 6), *rng.choice(["very", "some"], 1)])
            )
            labels.append(subject if subject in ("tea", "coffee") and i < labelled else None)
    return texts, labels


def make_shares(topics, groups, column="region", period=None, seed=0, **more):
    """Random shares of topics in groups, with intervals; the last group has none."""
    from topicsteer.report.breakdown import Breakdown

    rng = np.random.default_rng(seed)
    names = ("topic", "group", "share", "low", "high", "documents", "labels")
    table = {name: [] for name in names}
    for topic in topics:
        for group in groups:
            share, width = 0.05 + 0.3 * rng.random(), 0.05 * rng.random()
            ends = (share - width, share + width) if group != groups[-1] or len(groups) == 1 else (np.nan, np.nan)
            row = (topic, group, share, *ends, int(rng.integers(10, 5000)), int(rng.integers(0, 90)))
            for column_values, value in zip(table.values(), row, strict=True):
                column_values.append(value)
    return Breakdown(column, groups, period, table, **more)


def planted_rows(n_topics, size=30, own=8, noise=0.3, seed=0):
    """Unit rows of documents in random order, each with some terms of its topic and some others: (X, topic of each)."""
    rng = np.random.default_rng(seed)
    which = rng.permutation(np.repeat(np.arange(n_topics), size))
    t = n_topics * own
    X = rng.random((len(which), t)) * noise * (rng.random((len(which), t)) < 0.4)
    X += rng.random(X.shape) * (rng.random(X.shape) < 0.5) * (which[:, None] == np.arange(t) // own)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return sp.csr_array(X.astype(np.float32)), which


def vector_of(mix):
    """All numbers of a mix of scores."""
    return np.array([*mix.weights, mix.coupling, mix.intercept])
