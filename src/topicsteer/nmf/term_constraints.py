"""Pinned and banned terms of topics.

After each update of H, a pinned term is raised at least to the weight of the topic's tenth term. It then appears among
the terms that people read, and the documents still determine the topic. A banned term is masked in the topic's row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf.blocks import Penalties
from topicsteer.system.sparse import checked_csr
from topicsteer.system.types import Array

# A pinned term weighs at least as much as the topic's term of this rank.
RANK = 10


@dataclass(frozen=True, eq=False)
class TermConstraints:
    """Pinned and banned terms of topics.

    Parameters
    ----------
    pinned : CSR (n_topics, n_terms)
        1 where a term is pinned to a topic.
    banned : CSC (n_topics, n_terms)
        1 where a term is banned from a topic.
    """

    pinned: sp.csr_array
    banned: sp.csc_array

    @classmethod
    def read(cls, term_constraints: object, d: int, t: int) -> TermConstraints | None:
        """Read a matrix with one row per topic: positive entries pin a term, negative entries ban it.

        Return None if there is no such entry.
        """
        if term_constraints is None:
            return None
        sparse = sp.issparse(term_constraints)
        given = sp.coo_array(checked_csr(term_constraints, "term_constraints") if sparse else term_constraints)
        if given.ndim != 2 or given.shape[0] > d or given.shape[1] != t:
            raise ValueError(
                f"term_constraints has shape {given.shape}; expected one row per topic, one column per term, {(d, t)}."
            )
        if not np.isfinite(given.data).all():
            raise ValueError(
                "term_constraints has NaN or infinite entries; use 1 for pinned, -1 for banned, 0 for the rest."
            )
        kinds = []
        for chosen in (given.data > 0, given.data < 0):
            where = (given.row[chosen], given.col[chosen])
            kinds.append(sp.csr_array((np.ones(chosen.sum()), where), shape=(d, t)))
        return cls(kinds[0], sp.csc_array(kinds[1])) if kinds[0].nnz + kinds[1].nnz else None

    def mask(self, dtype: DTypeLike) -> Penalties | None:
        """The banned terms as a mask of the rows of Hᵀ; None if there are none."""
        if not self.banned.nnz:
            return None
        d, t = self.banned.shape
        permitted = np.ones((d, t), dtype=np.bool_)
        permitted[self.banned.tocoo().coords] = False
        permitted[:, np.diff(self.banned.indptr) == 0] = False  # an unrestricted term stores no entry
        terms, topics = np.nonzero(permitted.T)
        return Penalties.of(sp.csr_array((np.zeros(len(terms)), (terms, topics)), shape=(t, d)), dtype)

    def seed(self, HT: Array, labelled: NDArray[np.bool_]) -> None:
        """Apply the constraints to a start of H; a topic without labels starts from its pinned terms alone."""
        for k in np.flatnonzero(np.diff(self.pinned.indptr)):
            if not labelled[k]:
                HT[:, k] = self.pinned[[k]].toarray()[0] * (HT[:, k].max() or 1)
        topics, terms = self.banned.tocoo().coords
        HT[terms, topics] = 0
        self.lift(HT)

    def lift(self, HT: Array) -> None:
        """Raise pinned terms to the weight of the topic's tenth term, where they are below it."""
        for k in np.flatnonzero(np.diff(self.pinned.indptr)):
            terms = self.pinned.indices[self.pinned.indptr[k] : self.pinned.indptr[k + 1]]
            others = np.delete(HT[:, k], terms)
            others = others[others > 0]
            rank = min(RANK, len(others))
            if rank:
                HT[terms, k] = np.maximum(HT[terms, k], np.partition(others, -rank)[-rank])
