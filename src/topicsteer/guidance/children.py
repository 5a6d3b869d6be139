"""Free topics inside a topic: groups of the documents of its rest.

The rest of a topic are the documents that have it, and none of the named topics below it. A mixture finds groups among
them, as at the top (`topicsteer.guidance.discover`), and a ridge regression on the features of documents smooths them.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.components import Components, learn_components
from topicsteer.guidance.discover import MixtureInput, find_groups
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.latent import dense_features
from topicsteer.guidance.open_world import latent_positions
from topicsteer.nmf.protocols import Rows
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

# Documents of the rest that groups are found in, at most.
DOCUMENTS = 10_000
# A document belongs to the rest from this probability on, or from this share of the largest if none reaches it.
MEMBER = 0.5
# Groups per wanted topic; similar groups merge.
GROUPS_PER_TOPIC = 3
# Documents per group, at least.
DOCUMENTS_PER_GROUP = 5
# Range of the number of topics if it is chosen automatically.
AUTO_RANGE = (2, 10)


def find_children(
    X: Rows,
    rest: Array,
    guide: Guide,
    wanted: int | str,
    *,
    typical: float,
    embeddings: Array | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Components | None:
    """Free topics inside a topic; None if its rest has too few documents.

    Parameters
    ----------
    X : Rows (n_documents, n_terms)
    rest : array (n_documents,)
        Probability of the rest of the topic in each document.
    guide : Guide
        The guide of the documents; its latent semantics are the features.
    wanted : int or "auto"
        Number of free topics, at most. "auto": as many as if they were as large as a typical topic.
    typical : float
        Expected number of documents of a typical topic without topics below it.
    embeddings : array (n_documents, any), optional
    seed : int, default=0
        Seed of the sample of documents.
    threads : int, optional
    """
    rows = members(rest, X.sizes > 0, seed)
    number = _number(wanted, float(rest[rows].sum()), typical)
    if number < 1 or len(rows) < max(2, number) * DOCUMENTS_PER_GROUP:
        return None
    E = None if embeddings is None else embeddings[rows]
    with workers(threads):
        terms = X.take(rows)
        D = dense_features(terms, guide.directions, E, guide.embedding)
        groups = _groups(terms, D, guide, rest[rows], number, threads)
        return None if groups is None else learn_components(D, groups)


def members(rest: Array, usable: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """Documents of the rest of a topic, or a sample of them."""
    most = float(np.max(rest[usable], initial=0))
    rows = np.flatnonzero(usable & (rest >= min(MEMBER, MEMBER * most)) & (rest > 0))
    if len(rows) > DOCUMENTS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, DOCUMENTS, replace=False))
    return rows


def _number(wanted: int | str, size: float, typical: float) -> int:
    if not isinstance(wanted, str):
        return wanted
    return int(np.clip(round(size / max(typical, 1)), *AUTO_RANGE))


def _groups(terms: sp.csr_array, D: Array, guide: Guide, rest: Array, number: int, threads: int | None) -> Array | None:
    """Memberships of documents of the rest in the free topics; documents may belong elsewhere, to one more class."""
    n = len(rest)
    n_groups = max(number, min(GROUPS_PER_TOPIC * number, n // DOCUMENTS_PER_GROUP))
    elsewhere, nobody = np.ones((n, 1), dtype=np.float32), np.zeros(n, dtype=np.bool_)
    corpus = MixtureInput(terms, latent_positions(D, guide), elsewhere, rest.astype(np.float32), nobody, threads)
    found, tree = find_groups(corpus, n_groups)
    topics = [list(topic) for topic in tree.cut(number) if found[:, list(topic)].sum() >= 1]
    return np.stack([found[:, topic].sum(axis=1) for topic in topics], axis=1) if topics else None
