"""A factorisation as it is posed: the documents, what is known of them, and where W and H start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.blocks import SoftMask
from topicsteer.nmf.protocols import Rows
from topicsteer.nmf.rules import Penalty
from topicsteer.nmf.start import FirstWeights
from topicsteer.nmf.statistics import Past
from topicsteer.nmf.term_constraints import Words
from topicsteer.system.types import Array


@dataclass(frozen=True)
class Known:
    """What is known of the documents of a block beside their terms."""

    weight: Array
    pattern: NDArray[np.int32]
    soft: SoftMask


@dataclass(frozen=True, eq=False)
class Problem:
    """What a factorisation is given.

    Parameters
    ----------
    rows : Rows
        The documents.
    supervision : Supervision
        Their labels.
    permitted : array of bool (n_patterns, n_topics)
        The topics that each pattern of labels permits.
    sample_weight, weight : array (n_documents,)
        Weights of the documents, before and after labels made some heavier.
    penalty : Penalty
        On W and H.
    past : Past, optional
        Sums over earlier documents.
    soft : callable, optional
        From the number of a block to the soft mask of its rows.
    words : Words, optional
        Terms that topics must have or must not have.
    E : array or CSR (n_documents, n_terms), optional
        The full error weight; only for rows in memory.
    HT : array (n_terms, n_topics)
        Where the transpose of H starts.
    first : callable, optional
        From a slice of rows to the W that they start with; None is zero.
    settings : mapping
        What else tells this problem from others.
    """

    rows: Rows
    supervision: Supervision
    permitted: NDArray[np.bool_]
    sample_weight: NDArray[np.float64]
    weight: NDArray[np.float64]
    penalty: Penalty
    past: Past | None = None
    soft: Callable[[int], SoftMask] | None = None
    words: Words | None = None
    E: sp.csr_array | Array | None = None
    HT: Array = field(default_factory=lambda: np.empty((0, 0)))
    first: FirstWeights | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def known(self, number: int) -> Known:
        """What is known of the documents of a block."""
        start, stop = self.rows.starts[number : number + 2].tolist()
        mask = SoftMask.silent(stop - start, self.rows.dtype) if self.soft is None else self.soft(number)
        return Known(self.weight[start:stop].astype(self.rows.dtype), self.supervision.pattern[start:stop], mask)

    @property
    def share(self) -> float:
        """Part of the weight of all documents that is not of earlier ones."""
        own = float(self.weight.sum())
        total = own if self.past is None else own + float(self.past.totals[1])
        return own / total if total else 1.0

    @property
    def totals(self) -> tuple[float, float, float]:
        """Weights as `topicsteer.nmf.statistics.Past` adds them up."""
        labelled = self.sample_weight[self.supervision.labelled]
        return float(self.weight.sum()), float(self.sample_weight.sum()), float(labelled.sum())
