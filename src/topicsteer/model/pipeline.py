"""From documents and labels to a fitted model: words, guide, mask, factorisation, each done where the documents are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from topicsteer.analysis import evaluate as evaluation
from topicsteer.analysis.topics import Topics, name_free_topics, proportions
from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import BlockFolder, in_blocks, write_blocks
from topicsteer.backends.dask import ClusterBlocks
from topicsteer.corpora import Documents, read_table
from topicsteer.estimator import TSNMF
from topicsteer.guidance.apply import steer
from topicsteer.guidance.embeddings import embed
from topicsteer.guidance.guide import Guide, best_cuts, company_of, guide
from topicsteer.guidance.ridge import latent_directions
from topicsteer.labels.forms import forbid, supervise
from topicsteer.labels.supervision import Supervision
from topicsteer.model.files import SETTINGS, WORDS, Parts, digests, fingerprint
from topicsteer.model.spool import Spool
from topicsteer.model.update import choose_cut, take_in_hand
from topicsteer.nmf.blocks import Matrix, rows_of
from topicsteer.nmf.start import count_free, label_profiles
from topicsteer.nmf.term_constraints import find_words, name_words
from topicsteer.system.types import Array, Progress
from topicsteer.text import TextVectorizer


@dataclass(frozen=True)
class Settings:
    """How to fit: the arguments of a `TopicModel`, which explains them."""

    free_topics: int | str
    topics: Sequence[str] | None
    complete: bool
    guidance: str | None
    pinned: Mapping[str, Sequence[str]] | None
    banned: Mapping[str, Sequence[str]] | None
    descriptions: Mapping[str, str] | None
    vectorizer: TextVectorizer | None
    estimator: TSNMF | None
    random_state: int
    threads: int | None

    def new_vectorizer(self) -> TextVectorizer:
        """One that is not fitted."""
        return TextVectorizer(threads=self.threads) if self.vectorizer is None else clone(self.vectorizer)

    def new_estimator(self, X: Matrix, profiles: Array, *, guided: bool) -> TSNMF:
        """One that is not fitted, for as many topics as there are labels and free topics."""
        known, free = len(profiles), self.free_topics
        if not (free == "auto" or (isinstance(free, int) and free >= 0)):
            raise ValueError(f'free_topics must be a number from 0 up, or "auto"; got {free!r}.')
        if isinstance(free, str):
            free = count_free(as_rows(X), profiles, self.random_state)
        if known + free == 0:
            raise ValueError("There is neither a label nor a free topic: label some documents, or allow free topics.")
        weight = None if guided else "balanced"
        own = TSNMF(free_in_labelled=False, label_weight=weight, random_state=self.random_state, threads=self.threads)
        estimator: TSNMF = own if self.estimator is None else clone(self.estimator)
        return estimator.set_params(n_components=known + free)  # type: ignore[no-any-return]

    def learn(self, X: Matrix, supervision: Supervision, vectorizer: TextVectorizer, **given: Any) -> Guide | None:
        """The guide of documents under their labels; None without labels."""
        names = name_words(supervision.topics, self.descriptions, self.pinned, vectorizer.transform)
        return guide(X, supervision, names=names, seed=self.random_state, threads=self.threads, **given)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents that are ready for a fit: as rows of a matrix, with their labels and the vectoriser."""

    documents: Documents
    X: Matrix
    supervision: Supervision
    vectorizer: TextVectorizer


def documents_of(source: Any, labels: Any, text: str | None, id: str | None) -> Documents:
    """Documents as they are, or read from a list, a table or a file; in memory each row is a document, empty or not."""
    if isinstance(source, Documents):
        return source
    if isinstance(source, str) and "\n" in source:
        raise TypeError("expected a list of texts, a table or a path, got one long text: put it in a list, [text].")
    if isinstance(source, str) and " " in source and "://" not in source and not Path(source).exists():
        raise TypeError(f"there is no file {source!r}; if it is a text, put it in a list, [text].")
    column = labels if isinstance(labels, str) else None
    in_memory = not isinstance(source, str | Path)
    documents = read_table(source, text=text, labels=column, id=id, keep_empty=in_memory)
    if column is None and labels is not None and documents.report.bad_rows:
        raise ValueError(f"Labels by row need all rows, but some cannot be used:\n{documents.report}")
    return documents


def confidence_of(given: Any, n: int) -> NDArray[np.float64] | None:
    """How far the labels of n documents can be trusted, checked."""
    if given is None:
        return None
    trust = np.asarray(given, dtype=np.float64)
    if trust.shape != (n,) or not (trust > 0).all() or not np.isfinite(trust).all():
        raise ValueError(f"confidence must hold one number above 0 for each of the {n} documents.")
    return trust


def prepare(
    settings: Settings,
    source: Any,
    labels: Any = None,
    *,
    text: str | None = None,
    id: str | None = None,
    after: Parts | None = None,
    matrix: Matrix | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Read, supervise, vectorise; ``after`` an earlier model of the same documents, its words and ``matrix`` serve."""
    documents = source.documents if isinstance(source, Spool) else documents_of(source, labels, text, id)
    topics = settings.topics
    if labels is None or isinstance(labels, str):
        labels = documents.labels
        topics = topics or documents.topic_names
    supervision = supervise(labels, len(documents), topics=topics, complete=settings.complete)
    supervision = forbid(supervision, documents.forbidden)
    if after is not None:
        if fingerprint(digests(documents)) != after.fingerprint:
            raise ValueError("after is a model of other documents: give one of the same texts and ids.")
        X = sp.csr_array(after.vectorizer.transform(documents.texts)) if matrix is None else matrix
        return Corpus(documents, X, supervision, after.vectorizer)
    if isinstance(source, Spool):
        return Corpus(documents, source.matrix, supervision, source.vectorizer)
    vectorizer = settings.new_vectorizer()
    words = _told("words", progress)
    return Corpus(
        documents, sp.csr_array(vectorizer.fit_transform(documents.texts, progress=words)), supervision, vectorizer
    )


def fit(
    settings: Settings,
    corpus: Corpus,
    *,
    folder: Path,
    embeddings: Array | None = None,
    confidence: Array | None = None,
    after: Parts | None = None,
    client: Any = None,
    progress: Progress | None = None,
) -> tuple[Parts, Matrix]:
    """Learn from the labels, steer, factorise.

    Parameters
    ----------
    settings : Settings
    corpus : Corpus
    folder : Path
        For what is on disk.
    embeddings : array (n_documents, any), optional
    confidence : array (n_documents,), optional
    after : Parts, optional
        An earlier model of the same documents under other labels, to start from.
    client : distributed.Client, optional
        Of the cluster to work on.
    progress : callable, optional
        As in ``TopicModel.fit``.

    Returns
    -------
    Parts, Matrix
        The model, and the matrix where it is now: on disk if a cluster worked on it.
    """
    X, matrix, supervision, vectorizer = corpus.X, corpus.X, corpus.supervision, corpus.vectorizer
    if client is not None:
        matrix = X if isinstance(X, BlockFolder) else write_blocks(folder / "blocks", in_blocks(X))
        X = ClusterBlocks.of(matrix, client)
    n, known = len(corpus.documents), len(supervision.topics)
    learnt, penalties = None, None
    if settings.guidance is not None:
        if progress is not None:
            progress("guide", 0, None, "")
        earlier = {} if after is None else _taken_over(settings, supervision, after)
        learnt = settings.learn(X, supervision, vectorizer, embeddings=embeddings, confidence=confidence, **earlier)
    profiles = label_profiles(as_rows(X), supervision, np.ones(n))
    estimator = settings.new_estimator(X, profiles, guided=learnt is not None)
    memberships: Any
    cuts: Any
    if learnt is not None:
        memberships, cuts, penalties = steer(
            X,
            learnt,
            supervision,
            estimator.n_components or known,
            embeddings=embeddings,
            threads=settings.threads,
            folder=folder,
            progress=_told("guide", progress),
        )
    if after is not None:
        estimator.set_params(warm_start=True)
        for name in ("components_", "document_topics_", "topic_names_", "n_known_"):
            setattr(estimator, name, getattr(after.estimator, name))

    def report(iteration: int, objective: float, seconds: float) -> None:
        if progress is not None:
            progress("fit", iteration, estimator.max_iter, f"objective {objective:.5g}")

    words = find_words(settings.pinned, settings.banned, supervision.topics, X.shape[1], vectorizer.transform)
    given: dict[str, Any] = {"sample_weight": confidence, "penalties": penalties, "words": words, "callback": report}
    if isinstance(X, sp.csr_array):
        estimator.fit(X, supervision, **given)
    else:
        estimator.fit(X, supervision, **given, folder=folder)
        estimator.document_topics_ = estimator.document_topics_.mapped(folder / "document_topics.npy")
    estimator.set_params(warm_start=False)
    if learnt is None:
        memberships = proportions(estimator.document_topics_, estimator.components_)[:, :known]
        cuts = np.full(known, choose_cut(matrix, estimator, supervision))
    weights = np.ones(n) if confidence is None else confidence
    hand = take_in_hand(matrix, estimator, supervision, weights, penalties, embeddings, settings.random_state)
    numbers = digests(corpus.documents)
    parts = Parts(
        settings={name: getattr(settings, name) for name in (*SETTINGS, *WORDS)},
        names=_names(estimator, vectorizer, [str(name) for name in supervision.topics]),
        ids=list(corpus.documents.ids),
        texts=corpus.documents.texts,
        fingerprint=fingerprint(numbers),
        vectorizer=vectorizer,
        estimator=estimator,
        supervision=supervision,
        guide=learnt,
        groups=[[k] for k in range(known)],
        profiles=profiles,
        memberships=memberships,
        cuts=cuts,
        digests=numbers,
        weights=weights,
        hand=hand,
        learnt_from=len(hand.rows),
    )
    return parts, matrix


def evaluate(
    settings: Settings,
    corpus: Corpus,
    *,
    embeddings: Any = None,
    folds: int = 3,
    curve: bool = True,
    progress: Progress | None = None,
) -> evaluation.Evaluation:
    """Hide labels, find them again with these settings; of what is not in memory, a sample beside the labelled."""
    X, documents, supervision, vectorizer = corpus.X, corpus.documents, corpus.supervision, corpus.vectorizer
    if not isinstance(X, sp.csr_array):
        rows = np.sort(np.append(np.flatnonzero(supervision.labelled), company_of(supervision, settings.random_state)))
        X, supervision = rows_of(X, rows), replace(supervision, pattern=supervision.pattern[rows])
        documents = Documents([documents.ids[i] for i in rows], [documents.texts[i] for i in rows])
    known = len(supervision.topics)
    directions = latent_directions(X, settings.random_state) if settings.guidance is not None else None
    E = None if embeddings is None else embed(embeddings, documents.texts)
    estimator = settings.new_estimator(X, label_profiles(as_rows(X), supervision, np.ones(X.shape[0])), guided=False)

    def score(X: sp.csr_array, left: Supervision, rows: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
        if settings.guidance is not None:
            learnt = settings.learn(X, left, vectorizer, directions=directions, embeddings=E)
            if learnt is None:
                return np.zeros((len(rows), known)), np.zeros((len(rows), known), dtype=np.bool_)
            belongs = learnt.probabilities(X, settings.threads, embeddings=E)
            return belongs[rows], belongs[rows] >= best_cuts(belongs[~left.labelled])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a topic may have lost all its labels on purpose
            fitted = clone(estimator).fit(X, left)
        shares = proportions(fitted.document_topics_[rows], fitted.components_)[:, :known]
        return shares, shares >= choose_cut(X, fitted, left)

    return evaluation.evaluate(
        X,
        supervision,
        score,
        folds=folds,
        seed=settings.random_state,
        curve=curve,
        progress=_told("evaluate", progress),
    )


def _told(stage: str, progress: Progress | None) -> Callable[[int, int | None], None]:
    """Something to call with what is done of a stage and its total."""

    def tell(done: int, total: int | None) -> None:
        if progress is not None:
            progress(stage, done, total, "")

    return tell


def _taken_over(settings: Settings, supervision: Supervision, after: Parts) -> dict[str, Any]:
    """What the guide of an earlier model spares: its latent semantics, and its choices if the topics are the same."""
    if after.guide is None:
        return {}
    now = tuple(map(str, supervision.topics)), settings.descriptions or {}, settings.pinned or {}
    then = (
        tuple(map(str, after.supervision.topics)),
        after.settings["descriptions"] or {},
        after.settings["pinned"] or {},
    )
    same = now == then and all(len(group) == 1 for group in after.groups)
    return {"directions": after.guide.directions} | ({"before": after.guide} if same else {})


def _names(estimator: TSNMF, vectorizer: TextVectorizer, known: list[str]) -> list[str]:
    """The names of the known topics, and names for the free ones from their terms."""
    H, terms = estimator.components_, vectorizer.get_feature_names_out()
    blank = tuple(f"free {k + 1}" for k in range(len(H) - len(known)))
    unnamed = Topics((*known, *blank), len(known), terms, H, estimator.document_topics_, (), np.zeros(0, np.int64))
    return [*known, *name_free_topics([unnamed.top_terms(len(known) + k, 5) for k in range(len(blank))], known)]
