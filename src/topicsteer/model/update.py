"""A fitted model and news: new documents, late labels, new topics.

The answer is to be that of a fit to everything, as far as what is at hand allows. At hand are all labelled documents
and a sample of the others; of the rest there are sums (`topicsteer.nmf.statistics`), and what the model said of them
last.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.analysis.topics import proportions
from topicsteer.backends import as_rows
from topicsteer.corpora import Documents
from topicsteer.estimator import TSNMF
from topicsteer.guidance.embeddings import embed
from topicsteer.guidance.guide import COMPANY, RENEWED, Guide, best_cuts, guide, obey
from topicsteer.guidance.penalties import soft_mask
from topicsteer.labels.supervision import Supervision
from topicsteer.model.files import Parts, digests, fingerprint
from topicsteer.nmf.blocks import rows_of, slices
from topicsteer.nmf.start import label_profiles
from topicsteer.nmf.statistics import Hand, Past, insert, widened
from topicsteer.nmf.term_constraints import find_words, name_words
from topicsteer.system.types import Array, Progress
from topicsteer.text import TextVectorizer

CUTS = np.linspace(0.05, 0.95, 19)
ROWS = 1 << 16


@dataclass(frozen=True)
class Update:
    """What an update was about.

    Parameters
    ----------
    new, labelled, replaced, unchanged : int
        Documents that were new; known ones with other labels, with another text, with nothing new.
    topics : tuple of str
        Topics that were new.
    terms : int
        Terms that were new.
    out_of_reach : tuple
        Ids of documents that got labels, but neither a text nor a place in the sample: their labels teach nothing.

    Examples
    --------
    >>> print(Update(new=12, labelled=1, topics=("tea",)))
    12 new documents, 1 with other labels; new topics: tea
    """

    new: int = 0
    labelled: int = 0
    replaced: int = 0
    unchanged: int = 0
    topics: tuple[str, ...] = ()
    terms: int = 0
    out_of_reach: tuple[Any, ...] = ()

    def __str__(self) -> str:
        kinds = [
            (self.labelled, "with other labels"),
            (self.replaced, "with another text"),
            (self.unchanged, "as before"),
        ]
        parts = [f"{self.new:,} new document{'s' * (self.new != 1)}", *(f"{n:,} {kind}" for n, kind in kinds if n)]
        text = ", ".join(parts) + (f"; {self.terms:,} new terms" if self.terms else "")
        return text + (f"; new topics: {', '.join(self.topics)}" if self.topics else "")


def take_in_hand(
    X: Any,
    estimator: TSNMF,
    supervision: Supervision,
    weights: Array,
    penalties: sp.csr_array | None,
    embeddings: Array | None,
    seed: int,
) -> Hand:
    """What a later update needs of the documents of a fit; ``estimator.past_`` becomes the sums of the others."""
    n = X.shape[0]
    everyone = Hand(np.arange(n), X, np.random.default_rng([seed, 0]).exponential(size=n), embeddings)
    leave = everyone.surplus(supervision.labelled, COMPANY)
    estimator.past_ = Past.nothing(X.shape[1], len(estimator.components_), X.dtype)
    if not leave.any():
        return everyone if isinstance(X, sp.csr_array) else everyone.select(~leave)
    gone = np.flatnonzero(leave)
    for part in slices(len(gone), ROWS):
        estimator.past_ += _past(estimator, rows_of(X, gone[part]), gone[part], weights, penalties)
    return everyone.select(~leave)


def update(
    parts: Parts,
    documents: Documents,
    given: Supervision,
    *,
    embeddings: Any = None,
    confidence: Array | None = None,
    grow: bool = True,
    forget_factor: float = 1.0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Parts, Update]:
    """The model that knows the news as well.

    Parameters
    ----------
    parts : Parts
        The model; it stays as it is.
    documents : Documents
        New documents and known ones, told by their ids. A known one without a text, or with the same, brings at most
        labels; with another text it is replaced.
    given : Supervision
        Their labels, among the known topics and behind them the new ones.
    embeddings : array, encoder or callable, optional
        Of the documents, for a model that was fitted with embeddings.
    confidence : array (n_documents,), optional
        How far their labels can be trusted.
    grow : bool, default=True
        Whether the vocabulary takes in new terms and renews the weights of the old ones.
    forget_factor : float, default=1.0
        What earlier documents count beside the new ones.
    threads : int, optional
    progress : callable, optional
        As in ``TopicModel.fit``.

    Returns
    -------
    Parts, Update
    """
    if parts.hand is None:
        raise ValueError(
            "This model was saved without what an update needs: save it with updatable=True, or fit it to everything."
        )
    if not 0 < forget_factor <= 1:
        raise ValueError(f"forget_factor must be above 0 and at most 1; got {forget_factor!r}.")
    n, known = len(parts.ids), len(parts.supervision.topics)
    row_of = {name: row for row, name in enumerate(parts.ids)}
    rows = np.array([row_of.get(name, -1) for name in documents.ids], dtype=np.int64)
    hashes = digests(documents)
    blank = np.array([not text for text in documents.texts], dtype=np.bool_)
    if (blank & (rows < 0)).any():
        missing = [name for name, bad in zip(documents.ids, blank & (rows < 0), strict=True) if bad]
        raise ValueError(f"the model has no document with the id {missing[0]!r}: give its text too.")

    # What is new, and what of it has to be read.
    old, spoken = rows >= 0, given.labelled
    same = old & (blank | (parts.digests[rows] == hashes))
    at_hand = old & (parts.hand.places(rows) >= 0)
    arrives = ~same | (spoken & ~blank & ~at_hand)
    rows[~old] = np.arange(n, n + (~old).sum())
    total = n + int((~old).sum())
    supervision = parts.supervision.among(given.topics, bool(parts.settings["complete"]))
    supervision = supervision.relabel(rows[spoken], given.patterns[given.pattern[spoken]], total)
    before = np.append(parts.supervision.pattern, np.zeros(total - n, dtype=np.int32))
    changed = old & spoken & (supervision.pattern[rows] != before[rows])
    news = Update(
        new=int((~old).sum()),
        labelled=int(changed.sum()),
        replaced=int((old & ~same).sum()),
        unchanged=int((same & ~changed).sum()),
        topics=tuple(map(str, given.topics[known:])),
        out_of_reach=tuple(documents.ids[int(i)] for i in np.flatnonzero(spoken & old & ~at_hand & ~arrives)),
    )
    if not (arrives.any() or changed.any() or news.topics):
        return parts, news
    if news.out_of_reach:
        warnings.warn(
            f"{len(news.out_of_reach)} documents with late labels are no longer at hand, such as "
            f"{news.out_of_reach[0]!r}: their labels hold, but teach nothing. Give their texts too.",
            UserWarning,
            stacklevel=3,
        )

    # Terms, and the documents at hand in these terms.
    read = np.flatnonzero(arrives)
    texts = [documents.texts[int(i)] for i in read]
    vectorizer, X = _vectorise(parts.vectorizer, texts, same[read], grow, forget_factor, progress)
    ratio = vectorizer.idf_[: len(parts.vectorizer.idf_)] / parts.vectorizer.idf_
    n_terms = X.shape[1]
    news = replace(news, terms=n_terms - len(ratio))
    E = parts.hand.embeddings
    if E is not None:
        if embeddings is None:
            raise ValueError("This model was fitted with embeddings: give those of the new texts too, as embeddings=.")
        E = embed(embeddings, documents.texts)[read]
    weights = np.append(parts.weights * forget_factor, np.ones(total - n))
    weights[rows[read]] = 1.0
    if confidence is not None:
        weights[rows] = confidence
    keys = np.random.default_rng([parts.settings["random_state"], total]).exponential(size=len(read))
    if news.terms and parts.texts is not None:  # new terms may be in old documents too
        words = sp.csr_array(vectorizer.transform([parts.texts[int(row)] for row in parts.hand.rows]))
    else:
        words = _reweighed(parts.hand.X, ratio, n_terms)
    earlier = replace(parts.hand, X=words, keys=parts.hand.keys / forget_factor)
    earlier = earlier.select(~np.isin(earlier.rows, rows[read]))
    order = np.argsort(rows[read], kind="stable")
    hand = earlier.join(Hand(rows[read], X, keys, E).select(order))

    # What is gone: its sums, without those that are back.
    summed: Any = parts.estimator.past_
    past: Past = summed.widen(0, 0, n_terms - len(ratio))
    past = replace(past, cross=past.cross * np.pad(ratio, (0, n_terms - len(ratio)))[:, None].astype(past.cross.dtype))
    W = np.asarray(parts.estimator.document_topics_)
    back = read[same[read]]
    if back.size:
        at = hand.places(rows[back])
        past = past - Past.of(hand.X[at], W[rows[back]], parts.weights[rows[back]])
    past = replace(past, scale=np.ones(len(past.charge)))

    # As a fit does it, with the documents at hand.
    here = Supervision(supervision.topics, supervision.pattern[hand.rows], supervision.patterns)
    more, known = len(news.topics), known + len(news.topics)
    learnt, penalties = None, None
    memberships: Any
    cuts: Any
    fresh = len(hand.rows) > RENEWED * parts.learnt_from
    if parts.settings["guidance"] is not None:
        if progress is not None:
            progress("guide", 0, None, "")
        learnt = _guide(parts, vectorizer, hand, here, weights[hand.rows], fresh, threads)
    estimator = _continued(parts.estimator, ratio, past, forget_factor, threads)
    if learnt is not None:
        belongs = learnt.probabilities(hand.X, threads, embeddings=hand.embeddings)
        memberships, cuts = obey(belongs, here), best_cuts(belongs)
        penalties = soft_mask(memberships, learnt.covers, len(past.charge) + more, here.permits)
        if parts.guide is None and estimator.label_weight == "balanced":
            estimator.set_params(label_weight=None)  # as a fit with guidance has it

    def report(iteration: int, objective: float, seconds: float) -> None:
        if progress is not None:
            progress("fit", iteration, estimator.max_iter, f"objective {objective:.5g}")

    pins = find_words(parts.settings["pinned"], parts.settings["banned"], here.topics, n_terms, vectorizer.transform)
    trust = weights[hand.rows]
    estimator.partial_fit(hand.X, here, sample_weight=trust, penalties=penalties, words=pins, callback=report)
    if learnt is None:
        memberships = proportions(estimator.document_topics_, estimator.components_)[:, :known]
        cuts = np.full(known, choose_cut(hand.X, estimator, here))

    # Everything of all documents.
    summed = estimator.past_
    scale = summed.scale.astype(W.dtype)
    W = insert(W, known - more, more, 1) * scale
    W = np.vstack([W, np.zeros((total - n, W.shape[1]), dtype=W.dtype)])
    W[hand.rows] = estimator.document_topics_
    found = insert(parts.memberships, known - more, more, 1)
    found = np.vstack([found, np.zeros((total - n, known), dtype=found.dtype)])
    found[hand.rows] = memberships
    later = rows[changed]
    states = Supervision(supervision.topics, supervision.pattern[later], supervision.patterns)
    found[later] = obey(found[later], states)
    past = past.widen(known - more, more, 0).fade(forget_factor).times(scale)
    leave = hand.surplus(here.labelled, COMPANY)
    if leave.any():
        gone = hand.rows[leave]
        prices = None if penalties is None else penalties[leave]
        past += Past.of(hand.X[leave], W[gone], weights[gone], prices, _l1(estimator, n_terms))
    estimator.past_ = replace(past, scale=np.ones(len(past.charge)))
    estimator.document_topics_ = W
    estimator.set_params(forget_factor=parts.estimator.forget_factor)
    everyone = np.zeros(total, dtype=np.uint64)
    everyone[:n] = parts.digests
    everyone[rows[~blank]] = hashes[~blank]
    ids = [*parts.ids, *(name for name, known_before in zip(documents.ids, old, strict=True) if not known_before)]
    names = _names(parts, supervision.topics)
    estimator.topic_names_ = np.array(names, dtype=object)
    texts_now = None
    if parts.texts is not None:
        texts_now = [*parts.texts, *([""] * (total - n))]
        for i in np.flatnonzero(~blank):
            texts_now[rows[i]] = documents.texts[int(i)]
    _warn_of_gone(news, total - len(hand.rows))
    return (
        replace(
            parts,
            names=names,
            ids=ids,
            texts=texts_now,
            fingerprint=fingerprint(everyone),
            digests=everyone,
            vectorizer=vectorizer,
            estimator=estimator,
            supervision=supervision,
            guide=None if learnt is None else replace(learnt, rows=hand.rows[learnt.rows]),
            groups=[[k] for k in range(known)],
            profiles=label_profiles(as_rows(hand.X), here, np.ones(len(hand.rows))),
            memberships=found,
            cuts=cuts,
            hand=hand.select(~leave) if leave.any() else hand,
            weights=weights,
            learnt_from=len(hand.rows) if fresh else parts.learnt_from,
        ),
        news,
    )


def choose_cut(X: sp.csr_array, estimator: TSNMF, supervision: Supervision) -> float:
    """The share from which a topic counts as present: best mean Jaccard on labelled documents, read blind."""
    truth = supervision.indicator()
    rows = np.flatnonzero(np.diff(truth.indptr))[:20_000]
    if not rows.size:
        return 0.3
    given = truth[rows].toarray() > 0
    shares = proportions(estimator.transform(rows_of(X, rows)), estimator.components_)[:, : given.shape[1]]
    scores = []
    for cut in CUTS:
        found = shares >= cut
        scores.append(((found & given).sum(axis=1) / np.maximum((found | given).sum(axis=1), 1)).mean())
    return float(CUTS[int(np.argmax(scores))])


def _vectorise(
    before: TextVectorizer,
    texts: Sequence[str],
    counted: NDArray[np.bool_],
    grow: bool,
    forget_factor: float,
    progress: Progress | None,
) -> tuple[TextVectorizer, sp.csr_array]:
    """A vectoriser that knows the new texts, and their matrix; texts that were ``counted`` before are only read."""

    def words(done: int, total: int | None) -> None:
        if progress is not None:
            progress("words", done, total, "")

    vectorizer = TextVectorizer.from_state(*before.get_state(), lemmatizer=before.lemmatizer)
    if grow and not counted.all():
        new = [text for text, old in zip(texts, counted, strict=True) if not old]
        X = vectorizer.grow(new, forget_factor=forget_factor, progress=words)
        if not counted.any():
            return vectorizer, sp.csr_array(X)
    return vectorizer, sp.csr_array(vectorizer.transform(texts, progress=words))


def _reweighed(X: sp.csr_array, ratio: Array, n_terms: int) -> sp.csr_array:
    """Rows under other weights of the terms, of unit length again."""
    X = widened(X, n_terms)
    if (ratio == 1).all():
        return X
    X = sp.csr_array((X.data * ratio.astype(X.dtype)[X.indices], X.indices, X.indptr), shape=X.shape)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(X.indptr)).astype(X.dtype)
    return X


def _guide(
    parts: Parts,
    vectorizer: TextVectorizer,
    hand: Hand,
    here: Supervision,
    trust: Array,
    fresh: bool,
    threads: int | None,
) -> Guide | None:
    """The guide of the documents at hand; what took long to find is found anew when they are a tenth more."""
    before, settings = parts.guide, parts.settings
    names = name_words(here.topics, settings["descriptions"], settings["pinned"], vectorizer.transform)
    taken: dict[str, Any] = {}
    if before is not None and not fresh:
        basis = np.pad(before.basis, ((0, hand.X.shape[1] - len(before.basis)), (0, 0)))
        before = replace(before, basis=basis, rows=hand.places(before.rows))
        taken["directions"] = before.directions
        if here.topics == parts.supervision.topics and all(len(group) == 1 for group in parts.groups):
            taken["before"] = before
    return guide(
        hand.X,
        here,
        names=names,
        embeddings=hand.embeddings,
        confidence=None if (trust == 1).all() else trust,
        seed=settings["random_state"],
        threads=threads,
        **taken,
    )


def _continued(before: TSNMF, ratio: Array, past: Past, forget_factor: float, threads: int | None) -> TSNMF:
    """An estimator that goes on where another is, under the weights that terms have now."""
    changes = {"forget_factor": forget_factor, "threads": threads, "topics": None}
    estimator = TSNMF(**before.get_params() | changes)
    H = before.components_ * ratio.astype(before.components_.dtype)
    n_terms = len(past.cross)
    start = 0.01 * H.mean() if before.solver == "mu" else 0.0  # under the multiplicative rules a zero stays a zero
    estimator.components_ = np.pad(H, ((0, 0), (0, n_terms - H.shape[1])), constant_values=start)
    estimator.topic_names_, estimator.n_known_ = before.topic_names_, before.n_known_
    estimator.past_, estimator.n_features_in_ = past, n_terms
    return estimator


def _names(parts: Parts, known: Sequence[Any]) -> list[str]:
    """Known topics, then the free ones; a free one whose name is taken now says that it is free."""
    free = parts.names[len(parts.supervision.topics) :]
    return [*map(str, known), *(name if name not in known else f"{name} (free)" for name in free)]


def _past(
    estimator: TSNMF, X: sp.csr_array, rows: NDArray[np.int64], weights: Array, penalties: sp.csr_array | None
) -> Past:
    prices = None if penalties is None else rows_of(penalties, rows)
    return Past.of(X, estimator.document_topics_[rows], weights[rows], prices, _l1(estimator, X.shape[1]))


def _l1(estimator: TSNMF, n_terms: int) -> float:
    return float(estimator.alpha_W * n_terms * estimator.l1_ratio)


def _warn_of_gone(news: Update, gone: int) -> None:
    if news.topics and gone:
        warnings.warn(
            f"{gone:,} earlier documents are no longer at hand: their membership in the new topics is 0 until "
            "memberships(source) is asked for them, with their texts.",
            UserWarning,
            stacklevel=4,
        )
