"""Terms of a topic that rise or fall over time: the first third of the documents against the last third."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.nmf.protocols import Rows
from topicsteer.system.types import Array

# Strongest terms of a topic that are tested.
TESTED = 100
# Rising and falling terms per topic that are returned.
RETURNED = 20
# Expected number of documents with a term in each third, below which a term is not tested.
EXPECTED = 5.0
# Share of false discoveries among the returned terms of a topic.
LEVEL = 0.05


def term_trends(
    X: Rows,
    members: NDArray[np.bool_],
    periods: NDArray[np.int64],
    H: Array,
    vocabulary: Sequence[str] | NDArray[np.object_],
    names: Sequence[str],
) -> dict[str, list[Any]]:
    """Terms whose share of a topic's documents differs between the first and the last third of the time.

    Each of the strongest terms of a topic is tested for equal shares in both thirds, by the z-test of two proportions.
    The p-values of a topic are adjusted for their number by the method of Benjamini and Hochberg.

    Parameters
    ----------
    X : Rows
        Rows of the documents; a term occurs where the entry is not 0.
    members : array of bool (n_documents, n_topics)
        The documents of each topic.
    periods : array of int (n_documents,)
        Number of the period of each document, in the order of time; -1 = not dated.
    H : array (n_topics, n_terms)
        Weight of each term in each topic.
    vocabulary : sequence of str (n_terms,)
    names : sequence of str (n_topics,)

    Returns
    -------
    dict of str to list
        One row per topic and term, the largest changes of a topic first: ``topic``, ``term``, ``first`` and ``last``
        (shares of the topic's documents that have the term), ``change`` and ``p``.

    Examples
    --------
    >>> from topicsteer.backends import as_rows
    >>> X = sp.csr_array([[1.0, 1.0]] * 30 + [[1.0, 0.0]] * 30)
    >>> members, weights = np.ones((60, 1), dtype=bool), np.ones((1, 2))
    >>> found = term_trends(as_rows(X), members, np.arange(60), weights, ["cup", "fax"], ["tea"])
    >>> found["term"], found["first"], found["last"]
    (['fax'], [1.0], [0.0])
    """
    first, last = thirds(periods)
    chosen = sp.csr_array(np.hstack([members & first[:, None], members & last[:, None]]).astype(np.float32))
    blocks = [chosen[start:end] for start, end in zip(X.starts[:-1], X.starts[1:], strict=True)]
    counts = np.zeros((chosen.shape[1], X.shape[1]), dtype=np.float64)
    for part in X.each(_occurrences, blocks):
        counts += part
    sizes = np.asarray(chosen.sum(axis=0), dtype=np.float64).ravel()
    found: dict[str, list[Any]] = {name: [] for name in ("topic", "term", "first", "last", "change", "p")}
    for k, name in enumerate(names):
        terms = np.argsort(-H[k], kind="stable")[:TESTED]
        terms = terms[H[k, terms] > 0]
        pair = [(counts[row, terms], sizes[row]) for row in (k, len(names) + k)]
        for row in _changes(*pair[0], *pair[1]):
            values = (name, str(vocabulary[terms[row[0]]]), *row[1:])
            for column, value in zip(found.values(), values, strict=True):
                column.append(value)
    return found


def thirds(periods: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The first and the last third of the dated documents, by whole periods; nothing if there is only one period.

    Examples
    --------
    >>> first, last = thirds(np.array([0, 0, 1, 2, 2, -1]))
    >>> first.tolist(), last.tolist()
    ([True, True, False, False, False, False], [False, False, False, True, True, False])
    """
    dated = periods >= 0
    counts = np.bincount(periods[dated]) if dated.any() else np.zeros(1, dtype=np.int64)
    some = np.flatnonzero(counts)
    if len(some) < 2:
        return np.zeros_like(dated), np.zeros_like(dated)
    total = counts.sum()
    start = int(np.searchsorted(np.cumsum(counts), total / 3))
    end = len(counts) - 1 - int(np.searchsorted(np.cumsum(counts[::-1]), total / 3))
    if start >= end:  # one period has most of the documents
        start, end = (start, int(some[some > start][0])) if start < some[-1] else (int(some[some < end][-1]), end)
    return dated & (periods <= start), dated & (periods >= end)


def _occurrences(block: sp.csr_array, chosen: sp.csr_array) -> NDArray[np.float64]:
    """Number of chosen documents with each term, for each column of ``chosen``."""
    present = sp.csr_array((np.ones(block.nnz, dtype=np.float32), block.indices, block.indptr), shape=block.shape)
    return np.asarray((chosen.T @ present).todense(), dtype=np.float64)


def _changes(
    first: NDArray[np.float64], n_first: float, last: NDArray[np.float64], n_last: float
) -> list[tuple[int, float, float, float, float]]:
    """Terms with a significant change: position, both shares, change and adjusted p-value; largest changes first."""
    from scipy.stats import false_discovery_control, norm

    if not n_first or not n_last:
        return []
    both, n = first + last, n_first + n_last
    expected = np.minimum(both, n - both) * min(n_first, n_last) / n
    # A term of all documents cannot be tested; one that is rare in both thirds is not.
    tested = np.flatnonzero(expected >= EXPECTED)
    if not tested.size:
        return []
    before, after, pooled = first[tested] / n_first, last[tested] / n_last, both[tested] / n
    z = (after - before) / np.sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_last))
    p = false_discovery_control(2 * norm.sf(np.abs(z)))
    change = after - before
    order = [i for i in np.argsort(-np.abs(change), kind="stable") if p[i] <= LEVEL][:RETURNED]
    return [(int(tested[i]), float(before[i]), float(after[i]), float(change[i]), float(p[i])) for i in order]
