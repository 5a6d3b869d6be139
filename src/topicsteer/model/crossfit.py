"""Predictions of labelled documents without their own labels, for shares of topics.

The labelled documents are split into five folds at random. For each fold the guide is learnt again, without the labels
of the fold. All five guides are applied to all documents side by side, in one pass over them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.analysis.design import Sample
from topicsteer.analysis.estimates import Predictions
from topicsteer.backends import as_rows
from topicsteer.guidance.apply import ROWS, with_none
from topicsteer.guidance.guide import Guide, side_by_side
from topicsteer.guidance.keywords import topic_texts
from topicsteer.guidance.latent import dense_features, latent_directions
from topicsteer.guidance.sample import background_rows
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import Supervision
from topicsteer.model.learning import GUIDE_SEED, Task, learn
from topicsteer.model.settings import Settings
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import DenseStore
from topicsteer.system.types import Array, Progress

# Number of folds.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class _Block:
    """One block of documents: its number, its embeddings, and the labelled documents in it with their folds."""

    number: int
    embeddings: Array | None
    rows: NDArray[np.int64]
    folds: NDArray[np.int64]


def cross_fit(
    settings: Settings, task: Task, sample: Sample, *, folder: Path, progress: Progress | None = None
) -> Predictions | None:
    """Predict all documents by guides that did not see the labels of a fold; None if no guide can be learnt.

    Parameters
    ----------
    settings : Settings
        Settings of the fit, with the world decided.
    task : Task
        The documents with all their labels.
    sample : Sample
        The labelled documents.
    folder : Path
        Folder for predictions on disk.
    progress : callable, optional
        As in ``TopicModel.fit``, with the stage "shares".

    Returns
    -------
    Predictions or None
        One column per known topic, and one for none of them.
    """
    X, fold_of = task.rows, sample.folds(FOLDS, settings.random_state)
    directions = latent_directions(X, GUIDE_SEED, settings.threads) if task.directions is None else task.directions
    small, places = _training_part(task, directions, sample, settings.threads)
    guides: list[Guide] = []
    n_folds = int(fold_of.max(initial=-1)) + 1
    for fold in range(n_folds):
        if progress is not None:
            progress("shares", fold, n_folds + 1, f"labels without fold {fold + 1}")
        left = without(small.supervision, places[fold_of == fold])
        guide = learn(settings, replace(small, supervision=left))
        if guide is None:
            return None
        guides.append(guide)
    starts = list(itertools.pairwise(X.starts.tolist()))
    blocks = []
    for number, (a, b) in enumerate(starts):
        first, last = np.searchsorted(sample.rows, [a, b])
        own = slice(int(first), int(last))
        E = None if task.embeddings is None else task.embeddings[a:b]
        blocks.append(_Block(number, E, sample.rows[own] - a, fold_of[own]))
    known = len(task.supervision.topics)
    every = X.dense_store(folder, "cross_fitted", known + 1, np.float32)
    forest = task.supervision.forest
    function = partial(_predict, guides=guides, known=known, forest=forest, every=every, threads=settings.threads)
    labelled = []
    for done, found in enumerate(X.each(function, blocks), 1):
        labelled.append(found)
        if progress is not None:
            progress("shares", n_folds, n_folds + 1, f"block {done} of {len(blocks)}")
    return Predictions(every.close(), np.concatenate(labelled))


def _training_part(
    task: Task, directions: Array, sample: Sample, threads: int | None
) -> tuple[Task, NDArray[np.int64]]:
    """The documents that guides learn from, in memory, and the positions of the labelled documents among them.

    These are labelled and background documents, which are read once for all folds. All folds share their latent
    semantics and the texts about topics: neither depends on labels.
    """
    kept = np.union1d(sample.rows, background_rows(task.supervision, GUIDE_SEED))
    X = task.rows.take(kept)
    part = replace(
        task,
        rows=as_rows(X),
        supervision=replace(task.supervision, pattern=task.supervision.pattern[kept]),
        weight=task.weight[kept],
        embeddings=None if task.embeddings is None else task.embeddings[kept],
        names=topic_texts(task.codebook, task.vectorizer.transform, task.encode),
        directions=directions,
        latent=dense_features(X, directions, threads),
    )
    return part, np.searchsorted(kept, sample.rows)


def without(supervision: Supervision, rows: NDArray[np.integer]) -> Supervision:
    """The labels, without the labels of some documents."""
    pattern = supervision.pattern.copy()
    pattern[rows] = 0
    return replace(supervision, pattern=pattern)


def _predict(
    X: sp.csr_array,
    block: _Block,
    *,
    guides: Sequence[Guide],
    known: int,
    forest: Forest | None,
    every: DenseStore,
    threads: int | None,
) -> Array:
    """Write the mean predictions of a block; return the predictions of its labelled documents, each by its own fold."""
    mean = np.empty((X.shape[0], known + 1), dtype=np.float32)
    own = np.empty((len(block.rows), known + 1), dtype=np.float32)
    for rows in slices(X.shape[0], ROWS):
        E = None if block.embeddings is None else block.embeddings[rows]
        each = side_by_side(guides, X[rows], threads, embeddings=E)
        raised = [P[:, :known] if forest is None else forest.raised(P[:, :known]) for P in each]
        found = [with_none(P, known, forest) for P in raised]
        mean[rows] = np.mean(found, axis=0)
        here = np.flatnonzero((block.rows >= rows.start) & (block.rows < rows.stop))
        for i in here:
            own[i] = found[block.folds[i]][block.rows[i] - rows.start]
    every.write(block.number, [mean])
    return own
