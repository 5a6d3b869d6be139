"""What the guide says of all documents, as the factorisation and the user take it: memberships, cuts and prices.

Of documents in blocks, on disk or on a cluster, whoever holds a block works out its own part and writes it to a folder.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from topicsteer.backends.block_folder import BlockWriter
from topicsteer.backends.weight_folder import StoredWeights, WeightFolder
from topicsteer.guidance.guide import Guide, best_cuts, obey
from topicsteer.guidance.penalties import soft_mask
from topicsteer.labels.supervision import Supervision
from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import Matrix
from topicsteer.system.types import Array

CUT_DOCUMENTS = 200_000  # documents that the cuts are found from, at most


def steer(
    X: Matrix,
    learnt: Guide,
    supervision: Supervision,
    n_components: int,
    *,
    embeddings: Array | None = None,
    threads: int | None = None,
    folder: Path | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[Array, Array, Any]:
    """Memberships, which obey the labels, the cut of each known topic, and the prices of topics in documents.

    Parameters
    ----------
    X : CSR or blocks
        The documents.
    learnt : Guide
    supervision : Supervision
        Their labels.
    n_components : int
        Number of topics, known and free.
    embeddings : array, optional
        Of the documents, if the guide was learnt with them.
    threads : int, optional
    folder : Path, optional
        Where memberships and prices of blocks go; all machines of a cluster must see it.
    progress : callable, optional
        Called with the number of blocks done, and of all.
    """
    step = -(-X.shape[0] // CUT_DOCUMENTS)
    if isinstance(X, sp.csr_array):
        belongs = learnt.probabilities(X, threads, embeddings=embeddings)
        memberships = obey(belongs, supervision)
        prices = soft_mask(memberships, learnt.covers, n_components, supervision.permits)
        return memberships, best_cuts(belongs[::step]), prices
    if folder is None:
        raise ValueError("blocks need a folder for their memberships")
    stored = WeightFolder.make(folder / "memberships", X.starts, learnt.n_known, np.float32)
    prices = BlockWriter(folder / "prices", n_components, X.dtype)
    parts = [
        _Part(number, slice(a, b), replace(supervision, pattern=supervision.pattern[a:b]), -a % step)
        for number, (a, b) in enumerate(itertools.pairwise(X.starts.tolist()))
    ]
    own = [None if embeddings is None else embeddings[part.rows] for part in parts]
    ask = partial(_steer_block, learnt=learnt, stored=stored, prices=prices, step=step, threads=threads)
    sample = []
    for done, found in enumerate(X.each(ask, list(zip(parts, own, strict=True))), 1):
        sample.append(found)
        if progress is not None:
            progress(done, len(parts))
    memberships = StoredWeights(stored, 1).mapped(folder / "memberships.npy")
    stored.keep_only(set())
    return memberships, best_cuts(np.concatenate(sample)), prices.close()


@dataclass(frozen=True)
class _Part:
    number: int
    rows: slice
    supervision: Supervision
    offset: int


def _steer_block(
    X: sp.csr_array,
    given: tuple[_Part, Array | None],
    *,
    learnt: Guide,
    stored: WeightFolder,
    prices: BlockWriter,
    step: int,
    threads: int | None,
) -> Array:
    """Write memberships and prices of a block; every ``step``-th of its documents comes back, for the cuts."""
    part, embeddings = given
    _kernels.prepare(X.dtype)
    belongs = learnt.probabilities(X, threads, embeddings=embeddings)
    memberships = obey(belongs, part.supervision)
    stored.write(part.number, 1, memberships)
    permits = part.supervision.permits
    prices.put(part.number, soft_mask(memberships, learnt.covers, prices.n_terms, permits))
    return belongs[part.offset :: step]
