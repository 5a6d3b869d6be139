"""Update a fitted model with new documents, late labels and new topics.

An update approximates a fit to all documents. It works on the retained documents: all labelled ones and a sample of the
others. For the rest, the model keeps sufficient statistics (`topicsteer.nmf.protocols`) and their last memberships.
Three steps: classify the input, run the pipeline of a fit on the retained documents, merge the two states.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.backends import as_rows
from topicsteer.corpora import Documents
from topicsteer.guidance.apply import apply_labels
from topicsteer.guidance.guide import Guide
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.spelling import near_miss
from topicsteer.labels.supervision import Origin, Supervision
from topicsteer.model.pipeline import COLD, Cold, Continue, Corpus, Outcome, Reservoir, run, stage_progress, surplus
from topicsteer.model.predictor import Predictor, embed_new
from topicsteer.model.settings import Settings
from topicsteer.model.state import FittedState, digests, fingerprint
from topicsteer.nmf.blocks import canonical
from topicsteer.nmf.protocols import History, insert, widened
from topicsteer.nmf.solvers import RULES
from topicsteer.system.failures import warn_user
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import check_ids
from topicsteer.text.meaning import Embeddings, encoder_of, term_vectors
from topicsteer.text.vectorizer import TextVectorizer

# The latent semantics are computed again once there are this many times as many retained documents.
GROWN = 1.1


@dataclass(frozen=True)
class Update:
    """Summary of an update.

    Parameters
    ----------
    new, labelled, replaced, unchanged : int
        Numbers of new documents, and of known documents with other labels, with another text, and without a change.
    topics : tuple of str
        New topics.
    similar : mapping of str to str
        New topics that may be misspelt, each with the known topic that it resembles.
    terms : int
        Number of new terms.
    out_of_reach : tuple
        Ids of labelled documents without a text that are not retained. Nothing is learnt from their labels.

    Examples
    --------
    >>> print(Update(new=12, labelled=1, topics=("milk", "tee"), similar={"tee": "tea"}))
    12 new documents, 1 with new labels; new topics: milk, tee (similar to tea)
    """

    new: int = 0
    labelled: int = 0
    replaced: int = 0
    unchanged: int = 0
    topics: tuple[str, ...] = ()
    similar: Mapping[str, str] = field(default_factory=dict)
    terms: int = 0
    out_of_reach: tuple[object, ...] = ()

    def __str__(self) -> str:
        counts = (self.labelled, self.replaced, self.unchanged)
        kinds = zip(counts, ("with new labels", "with another text", "as before"), strict=True)
        parts = [
            f"{f'{self.new:,}' if self.new else 'no'} new document{'s' * (self.new != 1)}",
            *(f"{n:,} {kind}" for n, kind in kinds if n),
        ]
        text = ", ".join(parts) + (f"; {self.terms:,} new term{'s' * (self.terms != 1)}" if self.terms else "")
        named = (f"{name} (similar to {self.similar[name]})" if name in self.similar else name for name in self.topics)
        return text + (f"; new topics: {', '.join(named)}" if self.topics else "")


@dataclass(frozen=True, eq=False)
class News:
    """The documents of an update, classified.

    Parameters
    ----------
    documents : Documents
    digests : array of int (n,)
        Hashes of the documents.
    rows : array of int (n,)
        Rows of the model; new documents come after the last row.
    total : int
        Number of documents after the update.
    old, blank, same : array of bool (n,)
        Whether a document is known; has no text; has no new text.
    read : array of int
        Documents with a text to vectorise.
    supervision : Supervision
        Labels of all documents, old and new.
    changed : array of bool (n,)
        Known documents with other labels.
    new_topics : int
        Number of new topics.
    out_of_reach : tuple
        As in :class:`Update`.
    """

    documents: Documents
    digests: NDArray[np.uint64]
    rows: NDArray[np.int64]
    total: int
    old: NDArray[np.bool_]
    blank: NDArray[np.bool_]
    same: NDArray[np.bool_]
    read: NDArray[np.intp]
    supervision: Supervision
    changed: NDArray[np.bool_]
    new_topics: int
    out_of_reach: tuple[object, ...]

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether the vocabulary already counts each document of ``read``."""
        return self.same[self.read]

    @property
    def account(self) -> Update:
        """Summary for the user."""
        names, known = tuple(map(str, self.supervision.topics)), len(self.supervision.topics) - self.new_topics
        return Update(
            new=int((~self.old).sum()),
            labelled=int(self.changed.sum()),
            replaced=int((self.old & ~self.same).sum()),
            unchanged=int((self.same & ~self.changed).sum()),
            topics=names[known:],
            similar={name: near for name in names[known:] if (near := near_miss(name, names[:known])) is not None},
            out_of_reach=self.out_of_reach,
        )


def classify(state: FittedState, reservoir: Reservoir, documents: Documents, given: Supervision) -> News:
    """Compare documents with the documents of the model; nothing is changed.

    Parameters
    ----------
    state : FittedState
    reservoir : Reservoir
        The retained documents.
    documents : Documents
        New and known documents, identified by their ids.
    given : Supervision
        Their labels; new topics come after the known ones.
    """
    n = len(state.ids)
    check_ids(documents.ids)
    row_of = {str(key): row for row, key in enumerate(state.ids)}
    rows = np.array([row_of.get(str(key), -1) for key in documents.ids], dtype=np.int64)
    hashes = digests(documents)
    # A text without an id is a new document, even if it is empty. With an id, an empty text brings late labels.
    blank = np.array([not text and not documents.numbered for text in documents.texts], dtype=np.bool_)
    if (blank & (rows < 0)).any():
        missing = [name for name, bad in zip(documents.ids, blank & (rows < 0), strict=True) if bad]
        raise ValueError(f"the model has no document with the id {missing[0]!r}: give its text too.")
    old, labelled = rows >= 0, given.labelled
    same = old & (blank | (state.digests[rows] == hashes))
    retained = old & (reservoir.positions(rows) >= 0)
    arrives = ~same | (labelled & ~blank & ~retained)
    total = n + int((~old).sum())
    rows[~old] = np.arange(n, total)
    supervision = state.supervision.among(given.topics, bool(state.parameters["complete"]), given.forest)
    supervision = supervision.relabel(rows[labelled], given.patterns[given.pattern[labelled]], total)
    before = np.append(state.pattern, np.zeros(total - n, dtype=np.int32))
    return News(
        documents=documents,
        digests=hashes,
        rows=rows,
        total=total,
        old=old,
        blank=blank,
        same=same,
        read=np.flatnonzero(arrives),
        supervision=supervision,
        changed=old & labelled & (supervision.pattern[rows] != before[rows]),
        new_topics=len(given.topics) - len(state.codebook),
        out_of_reach=tuple(documents.ids[int(i)] for i in np.flatnonzero(labelled & old & ~retained & ~arrives)),
    )


def update(
    state: FittedState,
    settings: Settings,
    documents: Documents,
    given: Supervision,
    *,
    embeddings: Embeddings | None = None,
    lemmatizer: Callable[[str], str] | None = None,
    progress: Progress | None = None,
) -> tuple[FittedState, Update]:
    """Return the state after an update, and its summary.

    Parameters
    ----------
    state : FittedState
        The model; it is not changed.
    settings : Settings
    documents : Documents
        New and known documents, identified by their ids. A known document with another text is replaced. With the same
        text, or without a text, only its labels can change.
    given : Supervision
        Their labels; new topics come after the known ones.
    embeddings : array, encoder or callable, optional
        Embeddings of the documents, for a model that was fitted with embeddings.
    lemmatizer : callable, optional
        The lemmatizer of the fit, if there was one.
    progress : callable, optional
        As in ``TopicModel.fit``.

    Returns
    -------
    FittedState, Update
    """
    kept = Reservoir.of(state)
    if kept is None:
        raise ValueError(
            "This model was saved without the data for updates: save it with updatable=True, or fit it again."
        )
    news = classify(state, kept, documents, given)
    account = news.account
    if not (news.read.size or news.changed.any() or news.new_topics):
        return state, account
    if news.out_of_reach:
        warn_user(
            f"{len(news.out_of_reach)} documents with late labels are no longer kept, such as "
            f"{news.out_of_reach[0]!r}. Their labels are stored, but nothing is learnt from them: pass their texts too."
        )
    E = None if kept.embeddings is None else kept.embeddings[:0]
    if E is not None and news.read.size:
        E = embed_new(embeddings, documents.texts, E.shape[1], state.encoder)[news.read]
    vectorizer = Predictor(state, lemmatizer).vectorizer
    X = _vectorise(vectorizer, news, progress)
    ratio = np.asarray(vectorizer.idf_[: len(state.idf)] / state.idf)  # of the weights of earlier terms, new to old
    reservoir = _retained(state, kept, news, vectorizer, ratio, X, E)
    history = _history_without(state, news, reservoir, ratio)
    named = settings.name_topics(news.supervision.topics, state.codebook)
    corpus = Corpus(
        as_rows(canonical(reservoir.X)),
        replace(news.supervision, pattern=news.supervision.pattern[reservoir.rows]),
        Codebook((*state.codebook, *named.topics[len(state.codebook) :])),
        vectorizer,
        reservoir.embeddings,
        None if reservoir.embeddings is None else encoder_of(embeddings),
        origin=_origin(state, news).take(reservoir.rows),
    )
    before = Predictor(state).guide
    if before is None or not before.open:  # an update keeps the decision of the fit
        settings = replace(settings, world="closed")
    start = Continue(
        state,
        _topics_before(state, ratio, X.shape[1] - len(ratio)),
        history.widen(len(state.codebook), news.new_topics, 0),
        _reuse(state, reservoir, before, ratio, vectorizer),
    )
    found = run(corpus, settings, start, folder=Path(), progress=progress)
    if account.topics and news.total > len(reservoir.rows):
        warn_user(
            f"{news.total - len(reservoir.rows):,} earlier documents are no longer kept, so their membership in the "
            "new topics stays 0: pass their texts to memberships(source) to compute it."
        )
    now = _merge(state, news, corpus, found, reservoir, start.history)
    return now, replace(account, terms=X.shape[1] - len(state.idf))


# --- input of the pipeline ---


def _vectorise(vectorizer: TextVectorizer, news: News, progress: Progress | None) -> sp.csr_array:
    """Vectorise the new texts; texts that the vocabulary already counts do not change it."""
    report = stage_progress("terms", progress)
    texts, counted = [news.documents.texts[int(i)] for i in news.read], news.counted
    if not counted.all():
        new = [text for text, old in zip(texts, counted, strict=True) if not old]
        X = vectorizer.grow(new, progress=report)
        if not counted.any():
            return sp.csr_array(X)
    return sp.csr_array(vectorizer.transform(texts, progress=report))


def _retained(
    state: FittedState,
    kept: Reservoir,
    news: News,
    vectorizer: TextVectorizer,
    ratio: Array,
    X: sp.csr_array,
    embeddings: Array | None,
) -> Reservoir:
    """Retained documents under the new vocabulary: earlier ones, and the documents of this update."""
    rows = news.rows[news.read]
    keys = np.random.default_rng([int(state.parameters["random_state"]), news.total]).exponential(size=len(rows))  # type: ignore[arg-type]
    if X.shape[1] > len(state.idf) and state.texts is not None:  # new terms may be in old documents too
        X_kept = sp.csr_array(vectorizer.transform([state.texts[int(row)] for row in kept.rows]))
    else:
        X_kept = _reweighed(kept.X, ratio, X.shape[1])
    stays = ~np.isin(kept.rows, rows)
    earlier = replace(kept, X=X_kept).select(stays)
    order = np.argsort(rows, kind="stable")
    return earlier.join(Reservoir(rows, X, keys, embeddings).select(order))


def _history_without(state: FittedState, news: News, reservoir: Reservoir, ratio: Array) -> History:
    """Statistics of earlier documents under the new vocabulary, without documents that are retained again."""
    more = reservoir.X.shape[1] - len(ratio)
    history = History(**(state.history or {})).widen(0, 0, more)
    history = replace(history, cross=history.cross * np.pad(ratio, (0, more))[:, None].astype(history.cross.dtype))
    back = news.rows[news.read[news.counted]]
    if back.size:
        W = np.asarray(state.document_topics)
        history = history - History.of(reservoir.X[reservoir.positions(back)], W[back], np.ones(len(back)))
    return replace(history, scale=np.ones(len(history.penalty)))


def _reweighed(X: sp.csr_array, ratio: Array, n_terms: int) -> sp.csr_array:
    """Rows with new term weights, scaled to unit length."""
    X = widened(X, n_terms)
    if (ratio == 1).all():
        return X
    X = sp.csr_array((X.data * ratio.astype(X.dtype)[X.indices], X.indices, X.indptr), shape=X.shape)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(X.indptr)).astype(X.dtype)
    return X


def _reuse(
    state: FittedState, reservoir: Reservoir, before: Guide | None, ratio: Array, vectorizer: TextVectorizer
) -> Cold:
    """The features of the last guide, which are reused until the retained documents grow by a tenth, and its groups."""
    if before is None:
        return COLD
    before = before.renumbered(before.rows, reservoir.X.shape[1])
    old = len(ratio)
    vectors = before.features.vectors.copy()
    vectors[:old] /= ratio[:, None]  # the vectors of counts, under the new term weights
    terms = vectorizer.get_feature_names_out()[old:].tolist()
    if vectors.shape[1] and terms:
        vectors[old:] = before.features.reduced(term_vectors(terms)) / vectorizer.idf_[old:, None]
    before = replace(before, features=replace(before.features, vectors=vectors))
    features = None if _is_fresh(state, reservoir) else before.features
    return Cold(features=features, before=before if before.open else None)


def _is_fresh(state: FittedState, reservoir: Reservoir) -> bool:
    """Whether the latent semantics are computed again."""
    return len(reservoir.rows) > GROWN * state.learnt_from


def _topics_before(state: FittedState, ratio: Array, more: int) -> Array:
    """H of the state under the new term weights; new terms come last."""
    H = state.components * ratio.astype(state.components.dtype)
    multiplicative = RULES[str(state.estimator["solver"])].multiplicative
    start = 0.01 * H.mean() if multiplicative else 0.0  # a zero would stay a zero
    return np.pad(H, ((0, 0), (0, more)), constant_values=start)


# --- merged state ---


def _merge(
    state: FittedState,
    news: News,
    corpus: Corpus,
    found: Outcome,
    reservoir: Reservoir,
    history: History,
) -> FittedState:
    """The state of all documents: new results for retained documents, earlier results for the others.

    ``history`` are the statistics of the others before the run.
    """
    n, total, known, more = len(state.ids), news.total, len(corpus.codebook), news.new_topics
    rows = news.rows
    if found.result.history is None:
        raise ValueError("this factorisation has no history of earlier documents")
    scale = found.result.history.scale  # W is multiplied by it, because H was divided by it

    def every(earlier: Array, now: Array, factor: Array | float = 1) -> Array:
        wide = insert(earlier, known - more, more, 1) * factor
        wide = np.vstack([wide, np.zeros((total - n, wide.shape[1]), dtype=wide.dtype)])
        wide[reservoir.rows] = now
        return wide

    W = np.asarray(state.document_topics)
    W = every(W, found.W, scale.astype(W.dtype))
    memberships = every(state.memberships, found.memberships)
    late = rows[news.changed]
    own = replace(news.supervision, pattern=news.supervision.pattern[late])
    memberships[late] = apply_labels(memberships[late], own)
    history = history.times(scale.astype(W.dtype))
    learnt_from = len(reservoir.rows) if _is_fresh(state, reservoir) else state.learnt_from
    if found.guide is not None:
        found = replace(found, guide=found.guide.renumbered(reservoir.rows[found.guide.rows]))
    leave = surplus(reservoir.keys, corpus.supervision.labelled)
    if leave.any():
        gone = reservoir.rows[leave]
        history += found.summarise(reservoir.X[leave], W[gone], leave)
        reservoir = reservoir.select(~leave)
    history = replace(history, scale=np.ones(len(history.penalty)))
    everyone = np.pad(state.digests, (0, total - n))
    everyone[rows[~news.blank]] = news.digests[~news.blank]
    return replace(
        state,
        free_names=tuple(_free_names(state, corpus.codebook)),
        **found.fields(corpus, reservoir, history, W, memberships),
        fingerprint=fingerprint(everyone),
        ids=[*state.ids, *itertools.compress(news.documents.ids, ~news.old)],
        texts=_texts(state, news),
        learnt_from=learnt_from,
        pattern=news.supervision.pattern,
        patterns=news.supervision.patterns,
        digests=everyone,
        origin=_origin(state, news).arrays(),
    )


def _origin(state: FittedState, news: News) -> Origin:
    """How the labelled documents were chosen, with the new ones."""
    before = np.pad(state.supervision.labelled, (0, news.total - len(state.ids)))
    first = news.supervision.labelled[news.rows] & ~before[news.rows]
    origin = Origin.unknown(len(state.ids)) if state.origin is None else state.label_origin
    return origin.extend(news.documents.columns, news.rows, news.total, first)


def _texts(state: FittedState, news: News) -> list[str] | None:
    """Texts of all documents, with the new ones in place; None if the model stores no texts."""
    if state.texts is None:
        return None
    texts = [*state.texts, *([""] * (news.total - len(state.ids)))]
    for i in np.flatnonzero(~news.blank):
        texts[news.rows[i]] = news.documents.texts[int(i)]
    return texts


def _free_names(state: FittedState, codebook: Codebook) -> Sequence[str]:
    """Names of the free topics; a name that a known topic now has gets the suffix "(free)"."""
    known = set(map(str, codebook.names))
    return [name if name not in known else f"{name} (free)" for name in state.free_names]
