"""Words that a topic must have, and words that it must not have.

After each update of H, a pinned word is lifted to the weight of the topic's tenth term, if it is below: so it stands
among the terms that a person reads, and the topic stays what the documents make of it. A banned word is masked in the
topic's row of H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from topicsteer.nmf.blocks import Penalties
from topicsteer.system.types import Array

RANK = 10  # a pinned word weighs at least as much as the topic's term of this rank


@dataclass(frozen=True, eq=False)
class TermConstraints:
    """Pinned and banned words of topics.

    Parameters
    ----------
    pinned : CSR (n_topics, n_terms)
        1 where a topic must have a term.
    banned : CSC (n_topics, n_terms)
        1 where it must not.
    """

    pinned: sp.csr_array
    banned: sp.csc_array

    @classmethod
    def read(cls, term_constraints: object, d: int, t: int) -> TermConstraints | None:
        """From a matrix with a row a topic: above zero the term is pinned, below it is banned; None if all is zero."""
        if term_constraints is None:
            return None
        given = sp.coo_array(term_constraints)
        if given.ndim != 2 or given.shape[0] > d or given.shape[1] != t:
            raise ValueError(f"words has shape {given.shape}; expected a row a topic, a column a term, {(d, t)}.")
        if not np.isfinite(given.data).all():
            raise ValueError("words has NaN or infinite entries; give 1 for pinned, -1 for banned, 0 for the rest.")
        kinds = []
        for chosen in (given.data > 0, given.data < 0):
            where = (given.row[chosen], given.col[chosen])
            kinds.append(sp.csr_array((np.ones(chosen.sum()), where), shape=(d, t)))
        return cls(kinds[0], sp.csc_array(kinds[1])) if kinds[0].nnz + kinds[1].nnz else None

    def mask(self, dtype: DTypeLike) -> Penalties | None:
        """The banned words as a mask of the rows of Hᵀ; None if there is none."""
        if not self.banned.nnz:
            return None
        d, t = self.banned.shape
        permitted = np.ones((d, t), dtype=np.bool_)
        permitted[self.banned.tocoo().coords] = False
        permitted[:, np.diff(self.banned.indptr) == 0] = False  # a term that is banned nowhere stores nothing
        terms, topics = np.nonzero(permitted.T)
        return Penalties.of(sp.csr_array((np.zeros(len(terms)), (terms, topics)), shape=(t, d)), dtype)

    def seed(self, HT: Array, labelled: NDArray[np.bool_]) -> None:
        """Put pinned words into a start of H, alone where a topic has no labels, and take banned ones out."""
        for k in np.flatnonzero(np.diff(self.pinned.indptr)):
            if not labelled[k]:
                HT[:, k] = self.pinned[[k]].toarray()[0] * (HT[:, k].max() or 1)
        topics, terms = self.banned.tocoo().coords
        HT[terms, topics] = 0
        self.lift(HT)

    def lift(self, HT: Array) -> None:
        """Raise pinned words that weigh too little."""
        for k in np.flatnonzero(np.diff(self.pinned.indptr)):
            terms = self.pinned.indices[self.pinned.indptr[k] : self.pinned.indptr[k + 1]]
            others = np.delete(HT[:, k], terms)
            others = others[others > 0]
            rank = min(RANK, len(others))
            if rank:
                HT[terms, k] = np.maximum(HT[terms, k], np.partition(others, -rank)[-rank])
