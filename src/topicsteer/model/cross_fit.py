"""Labels hidden in turn: the predictions behind shares of topics and evaluations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from topicsteer.analysis import evaluation
from topicsteer.analysis.agreement import predictor_of
from topicsteer.analysis.groups import Groups, column_groups, named_column
from topicsteer.analysis.prevalence import Predictions, Prevalence, TreeColumns, prevalence
from topicsteer.analysis.survey_design import Sample, label_values, same_texts
from topicsteer.backends import as_rows
from topicsteer.corpora import Documents
from topicsteer.guidance.apply import ROWS, Memberships, choose_thresholds
from topicsteer.guidance.features import background_rows
from topicsteer.guidance.guide import Guide, side_by_side
from topicsteer.labels.coder import Coder
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import Origin, Supervision
from topicsteer.model.pipeline import (
    COLD,
    GUIDE_SEED,
    Cold,
    Corpus,
    features_sample,
    learn,
)
from topicsteer.model.settings import Settings
from topicsteer.model.state import FittedState
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.protocols import DenseStore
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import NONE, is_missing

# Number of folds.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class _Block:
    """One block of documents: its number, its embeddings, and the labelled documents in it with their folds."""

    number: int
    embeddings: Array | None
    rows: NDArray[np.int64]
    folds: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hidden:
    """Hidden labels: predictions of documents by models that did not see some of the labels.

    Parameters
    ----------
    corpus : Corpus
        The documents with all their labels.
    settings : Settings
        Settings of the fit.
    reuse : Cold
        Parts of the fit that do not depend on the hidden labels.
    """

    corpus: Corpus
    settings: Settings
    reuse: Cold = COLD

    def guide(self, left: Supervision) -> Guide | None:
        """Learn a guide from the labels that are left."""
        return learn(replace(self.corpus, supervision=left), self.settings, self.reuse)

    def decisions(self, left: Supervision, rows: NDArray[np.integer]) -> tuple[Array, NDArray[np.bool_]]:
        """Scores of the known topics in some documents, and whether the documents have them."""
        guide = self.guide(left)
        known = len(left.topics)
        if guide is None:
            return np.zeros((len(rows), known)), np.zeros((len(rows), known), dtype=np.bool_)
        belongs = probabilities_of(guide, self.corpus, self.settings.threads)
        thresholds = choose_thresholds(belongs[~left.labelled], left.forest)
        return belongs[rows], Memberships(belongs[rows], thresholds).has_known


def probabilities_of(guide: Guide, corpus: Corpus, threads: int | None) -> Array:
    """Probabilities of the known topics in all documents of a corpus in memory."""
    X = corpus.rows.take(np.arange(corpus.rows.shape[0]))
    return guide.probabilities(X, threads, embeddings=corpus.embeddings)[:, : len(corpus.supervision.topics)]


def cross_fit(hidden: Hidden, sample: Sample, *, folder: Path, progress: Progress | None = None) -> Predictions | None:
    """Predict all documents by guides that did not see the labels of a fold; None if no guide can be learnt.

    Parameters
    ----------
    hidden : Hidden
        The documents with all their labels, and settings with the world decided.
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
    corpus, settings, reuse = hidden.corpus, hidden.settings, hidden.reuse
    X, fold_of = corpus.rows, sample.folds(FOLDS, settings.random_state)
    features = reuse.features or features_sample(corpus, settings, reuse).features
    # Guides learn from labelled and background documents, which are read once. All folds share their latent semantics
    # and the texts about topics: neither depends on labels.
    kept = np.union1d(sample.rows, background_rows(corpus.supervision, GUIDE_SEED))
    part = _some(corpus, kept)
    learnt = Hidden(part, settings, replace(reuse, features=features))
    places = np.searchsorted(kept, sample.rows)
    guides: list[Guide] = []
    n_folds = int(fold_of.max(initial=-1)) + 1
    for fold in range(n_folds):
        if progress is not None:
            progress("shares", fold, n_folds + 1, f"labels without fold {fold + 1}")
        guide = learnt.guide(without(part.supervision, places[fold_of == fold]))
        if guide is None:
            return None
        guides.append(guide)
    blocks = []
    for number, (a, b) in enumerate(itertools.pairwise(X.starts.tolist())):
        first, last = np.searchsorted(sample.rows, [a, b])
        own = slice(int(first), int(last))
        E = None if corpus.embeddings is None else corpus.embeddings[a:b]
        blocks.append(_Block(number, E, sample.rows[own] - a, fold_of[own]))
    known = len(corpus.supervision.topics)
    every = X.dense_store(folder, "cross_fitted", known + 1, np.float32)
    forest = corpus.supervision.forest
    function = partial(_predict, guides=guides, known=known, forest=forest, every=every, threads=settings.threads)
    labelled = []
    for done, found in enumerate(X.each(function, blocks), 1):
        labelled.append(found)
        if progress is not None:
            progress("shares", n_folds, n_folds + 1, f"block {done} of {len(blocks)}")
    return Predictions(every.close(), np.concatenate(labelled))


def _some(corpus: Corpus, rows: NDArray[np.integer]) -> Corpus:
    """Some documents of a corpus, in memory and without their texts."""
    return replace(
        corpus,
        rows=as_rows(corpus.rows.take(rows)),
        supervision=replace(corpus.supervision, pattern=corpus.supervision.pattern[rows]),
        embeddings=None if corpus.embeddings is None else corpus.embeddings[rows],
        origin=None if corpus.origin is None else corpus.origin.take(rows),
        documents=Documents([], []),
    )


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
    forest: Forest,
    every: DenseStore,
    threads: int | None,
) -> Array:
    """Write the mean predictions of a block; return the predictions of its labelled documents, each by its own fold."""
    mean = np.empty((X.shape[0], known + 1), dtype=np.float32)
    own = np.empty((len(block.rows), known + 1), dtype=np.float32)
    for rows in slices(X.shape[0], ROWS):
        E = None if block.embeddings is None else block.embeddings[rows]
        each = side_by_side(guides, X[rows], threads, embeddings=E)
        found = [known_and_none(guide, P, known, forest) for guide, P in zip(guides, each, strict=True)]
        mean[rows] = np.mean(found, axis=0)
        here = np.flatnonzero((block.rows >= rows.start) & (block.rows < rows.stop))
        for i in here:
            own[i] = found[block.folds[i]][block.rows[i] - rows.start]
    every.write(block.number, [mean])
    return own


def known_and_none(guide: Guide, P: Array, known: int, forest: Forest) -> Array:
    """Probabilities of the known topics, and of none of them."""
    own = forest.raised(P[:, :known])
    none = P[:, -1] if guide.open else np.prod(1 - forest.top(own), axis=1)
    return np.hstack([own, none[:, None]])


# Columns of a table, by their names.
Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The labelled documents of a model, and predictions that were made without their labels."""

    sample: Sample
    predictions: tuple[Predictions, ...]
    notes: tuple[str, ...] = ()

    def joined(self, coders: Sequence[Coder]) -> Evidence:
        """The evidence with the answers of coders as further predictions; notes name coders and assumptions."""
        found = [predictor_of(coder, self.sample) for coder in coders]
        more = tuple(predictions for predictions, _ in found if predictions is not None)
        return Evidence(self.sample, (*self.predictions, *more), tuple(note for _, note in found))


def gather(
    hidden: Hidden,
    origin: Origin,
    clusters: NDArray[np.int64] | None = None,
    *,
    folder: Path,
    progress: Progress | None = None,
) -> Evidence:
    """Predict labelled documents without their labels; this takes most of the time.

    Parameters
    ----------
    hidden : Hidden
        The documents of the fit with their labels, and settings with the world decided.
    origin : Origin
        How the labelled documents were chosen.
    clusters : array of int (n_documents,), optional
        Documents with the same number are not independent. Near duplicates never are.
    folder : Path
        Folder for predictions on disk.
    progress : callable, optional
    """
    corpus = hidden.corpus
    rows = np.flatnonzero(corpus.supervision.labelled)
    labels = label_values(corpus.supervision, rows)
    near = same_texts(corpus.rows.take(rows), None if clusters is None else clusters[rows])
    sample = Sample(rows, labels, origin.take(rows), near)
    found = None
    if len(rows):
        found = cross_fit(hidden, sample, folder=folder, progress=progress)
    return Evidence(sample, () if found is None else (found,))


def shares(
    state: FittedState,
    evidence: Evidence,
    groups: Groups | None,
    weights: Array | None,
    level: float,
) -> Prevalence:
    """Shares of the topics of a model."""
    outsiders = state.supervision.outsiders
    found = prevalence(
        (*state.names, NONE),
        len(state.codebook),
        evidence.sample,
        evidence.predictions,
        len(state.pattern),
        groups,
        weights,
        level,
        none=bool(state.open or outsiders.any()),
        tree=TreeColumns(state.supervision.forest),
    )
    return replace(found, sentences=(*found.sentences, *evidence.notes))


def same_but_texts(a: FittedState, b: FittedState) -> bool:
    """Whether two states share everything but the texts of their documents."""
    names = {one.name for one in fields(FittedState)} - {"texts"}
    return all(getattr(a, name) is getattr(b, name) for name in names)


# --- columns ---


def groups_of(by: str | Sequence[Any] | Groups | None, columns: Columns, n: int) -> Groups | None:
    """The groups by a column, or by one value per document."""
    if by is None or isinstance(by, Groups):
        found = by
    elif isinstance(by, str):
        found = column_groups(columns, by)
    else:
        found = Groups.of(list(by), str(getattr(by, "name", None) or "group"))
    if found is not None and len(found.codes) != n:
        raise ValueError(f"there are {len(found.codes):,} groups for {n:,} documents: pass one per document.")
    return found


def weights_of(weight: str | ArrayLike | None, columns: Columns, n: int) -> Array | None:
    """Survey weights from a column or an array."""
    if weight is None:
        return None
    values = named_column(columns, weight, "of weights") if isinstance(weight, str) else weight
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers, one per document: {error}") from error
    if found.shape != (n,) or not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise ValueError(f"weights must be one number per document, 0 or more, {n:,} in all.")
    return found


def clusters_of(cluster: str | Sequence[Any] | None, columns: Columns, n: int) -> NDArray[np.int64] | None:
    """Clusters from a column or a sequence; a document without a value is a cluster by itself."""
    if cluster is None:
        return None
    values = named_column(columns, cluster, "of clusters") if isinstance(cluster, str) else cluster
    if len(values) != n:
        raise ValueError(f"there are {len(values):,} clusters for {n:,} documents: pass one per document.")
    number: dict[str, int] = {}
    found = [
        -1 - row if is_missing(value) else number.setdefault(str(value), len(number))
        for row, value in enumerate(values)
    ]
    return np.array(found, dtype=np.int64)


def evaluate(
    hidden: Hidden, folds: int = 3, progress: Callable[[int, int | None], None] = lambda *_: None
) -> evaluation.Evaluation:
    """Hide labels and predict them with the settings of a fit; a corpus on disk is reduced to labels and a sample."""
    corpus = hidden.corpus
    if corpus.rows.matrix is None:
        labelled = np.flatnonzero(corpus.supervision.labelled)
        corpus = _some(corpus, np.sort(np.append(labelled, background_rows(corpus.supervision, GUIDE_SEED))))
    return evaluation.evaluate(
        corpus.rows.take(np.arange(corpus.rows.shape[0])),
        corpus.supervision,
        lambda _, left, rows: replace(hidden, corpus=corpus).decisions(left, rows),
        random=corpus.drawn,
        open_world=hidden.settings.world == "open",
        folds=folds,
        seed=hidden.settings.random_state,
        progress=progress,
    )
