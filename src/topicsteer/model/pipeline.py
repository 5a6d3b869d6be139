"""The pipeline from documents and labels to a fitted state, for fit and update alike.

`prepare` reads documents and labels and vectorises the texts. `run` trains the guide, applies it and factorises. `fit`
builds the state of all documents. Each step runs where the documents are: in memory, on disk or on a cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from topicsteer.analysis.topics import Topics, name_free_topics, proportions
from topicsteer.backends import as_rows, mapped
from topicsteer.corpora import Documents
from topicsteer.corpora.options import Names
from topicsteer.estimator import TSNMF
from topicsteer.guidance.apply import apply_guide, topic_classes
from topicsteer.guidance.embeddings import Encoder
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import term_constraints_of
from topicsteer.guidance.open_world import free_topics
from topicsteer.guidance.support import leave_empty, warn_of_unsupported
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.forms import forbid, supervise
from topicsteer.labels.origin import Origin
from topicsteer.labels.supervision import Supervision
from topicsteer.model.inside import named_children
from topicsteer.model.learning import Task, learn, stage_progress, with_free_inside
from topicsteer.model.predictor import Predictor, fitted_estimator, fitted_vectorizer, kept_documents
from topicsteer.model.reservoir import retain
from topicsteer.model.settings import Settings
from topicsteer.model.sources import documents_of, named_columns
from topicsteer.model.state import FittedState, digests, fingerprint
from topicsteer.nmf.protocols import Rows
from topicsteer.nmf.start import label_profiles
from topicsteer.system.memory import release_memory
from topicsteer.system.types import JSON, Array, Progress
from topicsteer.system.values import check_ids
from topicsteer.text import TextVectorizer
from topicsteer.text.scripts import join_pairs, paired

# Candidate thresholds for topic shares, for models without a guide.
THRESHOLDS = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents that are ready for a fit: texts as rows of a matrix, labels, known topics and vectoriser.

    ``origin`` describes how the labelled documents were chosen, if their table has a column for it. ``digests`` are
    hashes of the documents, if they are known.
    """

    documents: Documents
    rows: Rows
    supervision: Supervision
    codebook: Codebook
    vectorizer: TextVectorizer
    origin: Origin | None = None
    digests: NDArray[np.uint64] | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of one run of the pipeline."""

    estimator: TSNMF
    guide: Guide | None
    memberships: Array
    thresholds: Array
    penalties: sp.csr_array | Rows | None
    profiles: Array
    free_groups: tuple[tuple[int, ...], ...] = ()


def confidence_of(given: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Check the confidence in the labels of n documents."""
    if given is None:
        return None
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n,) or not (weights > 0).all() or not np.isfinite(weights).all():
        raise ValueError(f"confidence must be one number above 0 per document, {n} in all.")
    return weights


# --- prepare ---


def prepare(
    settings: Settings,
    source: object,
    labels: object = None,
    *,
    text: Names | None = None,
    id: str | None = None,
    like: Mapping[str, Any] | None = None,
    after: Predictor | None = None,
    rows: Rows | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Read documents and labels, and vectorise the texts.

    With ``after``, an earlier model of the same documents, its vocabulary and its rows in memory are reused.
    A spooled corpus (see `topicsteer.model.spool`) is vectorised already.
    """
    ready = getattr(source, "ready", None)
    documents = documents_of(source, labels, text, id, like=like) if ready is None else ready.documents
    if not len(documents):
        raise ValueError("there are no documents: a fit needs some texts.")
    if ready is None:  # the reader of a spooled corpus has checked them
        check_ids(documents.ids)
    topics = settings.topics.names if isinstance(settings.topics, Codebook) else settings.topics
    lineage = settings.lineage()
    if named_columns(source, labels) is not False:
        labels = documents.labels
        topics = topics or documents.topic_names
    supervision = supervise(labels, len(documents), topics=topics, complete=settings.complete, lineage=lineage)
    supervision = forbid(supervision, documents.forbidden, lineage)
    codebook = settings.codebook(supervision.topics, None if after is None else after.state.codebook)
    origin = Origin.of(documents.columns, len(documents))
    if after is not None:
        numbers = digests(documents)
        if fingerprint(numbers) != after.state.fingerprint:
            raise ValueError("after was fitted to other documents: pass a model of the same texts and ids.")
        rows = as_rows(after.vectorizer.transform(documents.texts)) if rows is None else rows
        return Corpus(documents, rows, supervision, codebook, after.vectorizer, origin, numbers)
    if ready is not None:
        return Corpus(documents, ready.rows, supervision, codebook, ready.vectorizer, origin)
    vectorizer = settings.new_vectorizer()
    rows = as_rows(vectorizer.fit_transform(documents.texts, progress=stage_progress("terms", progress)))
    release_memory()  # of the word ids
    return Corpus(documents, rows, supervision, codebook, vectorizer, origin)


# --- train the guide, apply it, factorise ---


def run(settings: Settings, task: Task, *, folder: Path, progress: Progress | None = None) -> Outcome:
    """Train the guide, apply it and factorise; large results go to the folder."""
    X, supervision, known = task.rows, task.supervision, len(task.codebook)
    learnt, latent, guided, free_groups = task.learnt, None, None, task.free_groups
    if settings.guidance is not None and learnt is None:
        learnt, latent = _learn(settings, task, progress)
    profiles = label_profiles(X, supervision, np.ones(X.shape[0]))
    estimator = task.begun if task.joins else None
    if estimator is None:
        if learnt is not None and task.learnt is None:
            free_groups = free_topics(learnt, settings.wanted_free, X.shape[0])
        free = len(free_groups) if learnt is not None and learnt.n_groups else None
        estimator = settings.new_estimator(X, profiles, guide=learnt, free=free)
    new = known - estimator.n_known_ if task.joins else 0
    if learnt is not None:
        stage_progress("guide", progress, "memberships")(0, None)
        guided = apply_guide(
            X,
            learnt,
            supervision,
            topic_classes(task.groups or [(k,) for k in range(known)], free_groups, learnt.n_known),
            len(estimator.components_) + new if task.joins else estimator.n_components or known,
            folder=folder,
            embeddings=task.embeddings,
            latent=latent,
            threads=settings.threads,
            progress=stage_progress("guide", progress),
        )
        latent = None  # and with it the features that the guide was learnt from
        inside = [k for k, topic in enumerate(task.codebook) if topic.found]
        if not task.joins and (free_groups or inside or not supervision.counts.any()):
            _start_from_members(estimator, X, guided.memberships, supervision, inside, len(free_groups))
        if task.joins and task.unguided and estimator.label_weight == "balanced":
            estimator.set_params(label_weight=None)  # the default of a guided fit

    def report(iteration: int, objective: float, seconds: float) -> None:
        if progress is not None:
            progress("fit", iteration, estimator.max_iter, f"objective {objective:.5g}")

    penalties = None if guided is None else guided.penalties
    if not task.joins and settings.guidance is not None:
        warn_of_unsupported(supervision, learnt)
        penalties = leave_empty(X, known, estimator.n_components or known) if learnt is None else penalties
    constraints = term_constraints_of(task.codebook, X.shape[1], task.vectorizer.transform)
    stage_progress("fit", progress)(0, estimator.max_iter)
    release_memory()  # of the blocks of memberships
    factorise = estimator.partial_fit if task.joins else partial(estimator.fit, folder=folder)
    factorise(
        X.matrix if task.joins else X,
        supervision,
        sample_weight=task.weight,
        penalties=penalties,
        term_constraints=constraints,
        callback=report,
    )
    if not task.joins:
        estimator.document_topics_ = mapped(estimator.document_topics_, folder / "document_topics.npy")
    estimator.set_params(warm_start=False)
    if guided is not None:
        return Outcome(estimator, learnt, guided.memberships, guided.thresholds, penalties, profiles, free_groups)
    shares = known_parts(estimator.document_topics_, estimator.components_, supervision)
    thresholds = np.full(known, choose_threshold(X, estimator, supervision))
    return Outcome(estimator, None, shares, thresholds, None, profiles)


def _learn(
    settings: Settings, task: Task, progress: Progress | None
) -> tuple[Guide | None, Callable[[slice], Array | None] | None]:
    """Train the guide; also return the latent semantics of the documents, if it was learnt from all of them."""
    stage_progress("guide", progress)(0, None)
    sample = task.new_sample(settings.threads)
    learnt = learn(
        settings, replace(task, sample=sample), lambda step: stage_progress("guide", progress, step)(0, None)
    )
    release_memory()  # of temporary features
    return learnt, None if task.rows.matrix is None or sample.places is None else sample.latent_of


def _start_from_members(
    estimator: TSNMF, X: Rows, memberships: Array, supervision: Supervision, inside: Sequence[int], free: int
) -> None:
    """Let each free topic start as the mean of its documents, by the warm start; without labels, known topics too."""
    known = len(supervision.topics)
    first = inside if supervision.counts.any() else range(known)
    named = [supervision.topics[k] for k in first]
    columns = [*first, *range(known, known + free)]
    weights = sp.vstack([_members(np.asarray(memberships[:, k])) for k in columns], format="csr")
    totals = np.asarray(weights.sum(axis=1)).ravel()
    estimator.set_params(warm_start=True)
    estimator.components_ = np.asarray(X.combine(weights).astype(X.dtype) / np.maximum(totals, 1e-30)[:, None])
    estimator.components_ = estimator.components_.astype(X.dtype)
    estimator.document_topics_, estimator.n_known_ = np.zeros((0, len(columns)), dtype=X.dtype), len(named)
    estimator.topic_names_ = np.array([*named, None], dtype=object)[:-1]  # names may be tuples


def _members(membership: Array) -> sp.csr_array:
    """Memberships of the members of a topic, as a row: at least 0.5, or half of the largest if that is less."""
    most = float(membership.max(initial=0))
    kept = membership >= (0.5 if most >= 0.5 or not most else most / 2)
    return sp.csr_array(np.where(kept, membership, 0).astype(np.float64)[None])


def known_parts(W: Array, H: Array, supervision: Supervision) -> Array:
    """The part of each document that each known topic makes up, in a tree with the topics below it."""
    parts = proportions(W, H)[:, : len(supervision.topics)]
    return parts if supervision.forest is None else supervision.forest.summed(parts)


def choose_threshold(X: Rows, estimator: TSNMF, supervision: Supervision) -> float:
    """The threshold on topic shares with the best mean Jaccard index on labelled documents, labels ignored."""
    truth = supervision.indicator()
    rows = np.flatnonzero(np.diff(truth.indptr))[:20_000]
    if not rows.size:
        return 0.3
    given = truth[rows].toarray() > 0
    shares = known_parts(estimator.transform(X.take(rows)), estimator.components_, supervision)
    scores = []
    for threshold in THRESHOLDS:
        found = shares >= threshold
        scores.append(((found & given).sum(axis=1) / np.maximum((found | given).sum(axis=1), 1)).mean())
    return float(THRESHOLDS[int(np.argmax(scores))])


# --- fit ---


def fit(
    settings: Settings,
    parameters: Mapping[str, JSON],
    corpus: Corpus,
    *,
    folder: Path,
    rows: Rows | None = None,
    embeddings: Array | None = None,
    encode: Encoder | None = None,
    confidence: Array | None = None,
    after: Predictor | None = None,
    progress: Progress | None = None,
) -> FittedState:
    """Fit all documents.

    Parameters
    ----------
    settings : Settings
    parameters : mapping
        The arguments of the `TopicModel`, as plain values.
    corpus : Corpus
    folder : Path
        Folder for large results.
    rows : Rows, optional
        The rows on a cluster, if a cluster does the work.
    embeddings : array (n_documents, any), optional
    encode : callable, optional
        Their encoder, for names and keywords.
    confidence : array (n_documents,), optional
    after : Predictor, optional
        An earlier model of the same documents under other labels, to start from.
    progress : callable, optional
        As in ``TopicModel.fit``.

    Returns
    -------
    FittedState
    """
    n = len(corpus.documents)
    weight = np.ones(n) if confidence is None else confidence
    X = corpus.rows if rows is None else rows
    task = Task(X, corpus.supervision, corpus.codebook, corpus.vectorizer, weight, embeddings, encode)
    task = task if after is None else _reuse(task, after)
    if settings.free_inside:
        task = with_free_inside(settings, task, progress)
        corpus = replace(corpus, supervision=task.supervision, codebook=task.codebook)
    found = run(settings, task, folder=folder, progress=progress)
    reservoir, history = retain(
        corpus.rows, found.estimator, corpus.supervision, weight, found.penalties, embeddings, settings.random_state
    )
    found.estimator.history_ = history
    numbers = digests(corpus.documents) if corpus.digests is None else corpus.digests
    state = FittedState(
        parameters=parameters,
        codebook=corpus.codebook,
        free_names=tuple(_free_names(found.estimator, corpus, [str(name) for name in corpus.codebook.names])),
        groups=tuple((k,) for k in range(len(corpus.codebook))),
        free_groups=found.free_groups,
        **fitted_vectorizer(corpus.vectorizer),
        **fitted_estimator(found.estimator),
        fingerprint=fingerprint(numbers),
        ids=list(corpus.documents.ids),
        texts=corpus.documents.texts,
        learnt_from=len(reservoir.rows),
        profiles=found.profiles,
        pattern=corpus.supervision.pattern,
        patterns=corpus.supervision.patterns,
        memberships=found.memberships,
        thresholds=found.thresholds,
        digests=numbers,
        weights=weight,
        guide=None if found.guide is None else found.guide.arrays(),
        outside=None if found.guide is None else found.guide.outside_arrays(),
        levels=None if found.guide is None or found.guide.levels is None else found.guide.levels.arrays(),
        reservoir=kept_documents(reservoir),
        origin=None if corpus.origin is None else corpus.origin.arrays(),
        reading={} if corpus.documents.reading is None else corpus.documents.reading.to_json(),
    )
    fresh = [k for k, topic in enumerate(corpus.codebook) if topic.found]
    return state if not fresh else named_children(state, fresh, settings.path_separator)


def regroup(
    settings: Settings,
    state: FittedState,
    corpus: Corpus,
    guide: Guide,
    free_groups: tuple[tuple[int, ...], ...],
    embeddings: Array | None,
    folder: Path,
) -> FittedState:
    """The state with other free topics, made up of the same groups of the same guide."""
    task = Task(
        corpus.rows,
        corpus.supervision,
        corpus.codebook,
        corpus.vectorizer,
        state.weights,
        embeddings,
        learnt=guide,
        free_groups=free_groups,
        groups=state.groups,
    )
    found = run(settings, task, folder=folder)
    reservoir, history = retain(
        corpus.rows,
        found.estimator,
        corpus.supervision,
        state.weights,
        found.penalties,
        embeddings,
        settings.random_state,
    )
    found.estimator.history_ = history
    return replace(
        state,
        free_names=tuple(_free_names(found.estimator, corpus, list(map(str, corpus.codebook.names)))),
        free_groups=free_groups,
        **fitted_estimator(found.estimator),
        memberships=found.memberships,
        reservoir=kept_documents(reservoir),
    )


def _reuse(task: Task, earlier: Predictor) -> Task:
    """The task with the latent directions of an earlier model of the same documents, which do not depend on labels.

    Nothing else is reused, so the result does not depend on the order in which labels came.
    """
    return task if earlier.guide is None else replace(task, directions=earlier.guide.directions)


def _free_names(estimator: TSNMF, corpus: Corpus, known: list[str]) -> list[str]:
    """Names for the free topics, from their terms; overlapping pairs of characters are joined, as in examples."""
    H, terms = estimator.components_, corpus.vectorizer.get_feature_names_out()
    blank = tuple(f"free {k + 1}" for k in range(len(H) - len(known)))
    unnamed = Topics((*known, *blank), len(known), terms, H, estimator.document_topics_, (), np.zeros(0, np.int64))
    ranked = [unnamed.top_terms(k, 10) for k in range(len(known), len(H))]
    for k, own in enumerate(ranked, len(known)):
        if any(map(paired, own)) and not (corpus.vectorizer.segmented or corpus.vectorizer.segmenter):
            ranked[k - len(known)] = join_pairs(own, [corpus.documents.texts[i] for i in unnamed.top_rows(k, 20)])
    return name_free_topics([own[:5] for own in ranked], known)
