"""The pipeline from documents and labels to a fitted state, for fit and update alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.analysis.topics import Topics, name_free_topics, proportions
from topicsteer.backends import as_rows, block_penalties
from topicsteer.corpora import Documents
from topicsteer.corpora.documents import Names
from topicsteer.guidance.apply import PENALTY_ROWS, GuideOutput, apply_guide, topic_classes, topic_penalties
from topicsteer.guidance.features import BACKGROUND, Features, Sample, unit_rows
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import TopicTexts, described, term_constraints_of, topic_texts
from topicsteer.guidance.regression import Choice
from topicsteer.guidance.train import free_topics, learn_guide
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.forms import forbid, label_counts, supervise
from topicsteer.labels.supervision import CHOSEN, Kind, Origin, Supervision
from topicsteer.model.predictor import Predictor
from topicsteer.model.settings import WORDS, Settings
from topicsteer.model.spool import Spool, documents_of, named_columns
from topicsteer.model.state import FittedState, digests, fingerprint
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.factorisation import begin, go_on, label_profiles, solve
from topicsteer.nmf.factorisation import start as first_weights
from topicsteer.nmf.protocols import (
    History,
    Parameters,
    Problem,
    Result,
    Rows,
    TermConstraints,
    widened,
)
from topicsteer.system.failures import warn_user
from topicsteer.system.files import Scratch
from topicsteer.system.memory import release_memory
from topicsteer.system.types import JSON, Array, Progress, Report
from topicsteer.system.values import check_ids, listed
from topicsteer.text.meaning import Encoder, knows, term_vectors, text_vectors
from topicsteer.text.vectorizer import TextVectorizer
from topicsteer.text.words import is_weak, without_weak

# Seed of the guide. It does not follow ``random_state``, so that known and free topics come back with any seed.
GUIDE_SEED = 0


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents that are ready for a fit: texts as rows of a matrix, labels, known topics and vectoriser.

    Parameters
    ----------
    rows : Rows
        Terms of the documents.
    supervision : Supervision
        Their labels.
    codebook : Codebook
        The known topics.
    vectorizer : TextVectorizer
    embeddings : array (n_documents, any), optional
        Embeddings of the documents.
    encode : callable, optional
        The encoder of these embeddings, for names and keywords.
    documents : Documents, optional
        Ids and texts.
    origin : Origin, optional
        How the labelled documents were chosen, if their table has a column for it.
    """

    rows: Rows
    supervision: Supervision
    codebook: Codebook
    vectorizer: TextVectorizer
    embeddings: Array | None = None
    encode: Encoder | None = None
    documents: Documents = field(default_factory=lambda: Documents([], []))
    origin: Origin | None = None

    @property
    def drawn(self) -> NDArray[np.bool_]:
        """Documents that were drawn at random; all documents, if all are labelled."""
        labelled = self.supervision.labelled
        whole = np.full(len(labelled), labelled.all())
        return whole if self.origin is None else whole | (self.origin.kind == Kind.RANDOM)


@dataclass(frozen=True, eq=False)
class Cold:
    """Start of a fit from documents and labels, with parts of an earlier run that are not computed again.

    Parameters
    ----------
    features : Features, optional
        Features to use as they are.
    directions : array, optional
        Directions of the latent semantics, which do not depend on labels.
    names : TopicTexts, optional
        Texts about the topics.
    choice : Choice, optional
        Settings of features and regressions.
    before : Guide, optional
        An earlier guide of an open world, whose groups are kept.
    """

    features: Features | None = None
    directions: Array | None = None
    names: TopicTexts | None = None
    choice: Choice | None = None
    before: Guide | None = None


COLD = Cold()
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Continue:
    """Start from the topics of a fitted state, with the statistics of documents that are no longer there.

    Parameters
    ----------
    state : FittedState
    components : array (n_topics, n_terms)
        H of the state under the new term weights, without new topics.
    history : History
        Sufficient statistics of earlier documents, with new topics.
    reuse : Cold
    """

    state: FittedState
    components: Array
    history: History
    reuse: Cold = COLD


Start = Cold | Continue


def learn(
    corpus: Corpus,
    settings: Settings,
    reuse: Cold = COLD,
    *,
    sample: Sample | None = None,
    report: Report = str,
) -> Guide | None:
    """Train the guide, and decide whether the world is open; None without labels and words about topics.

    ``sample`` are the documents to learn from, if their features are to be shared with later steps.
    """
    sample = sample or features_sample(corpus, settings, reuse)
    encode = text_vectors if sample.features.vectors.shape[1] else corpus.encode
    return learn_guide(
        sample,
        reuse.names or topic_texts(corpus.codebook, corpus.vectorizer.transform, encode),
        choice=reuse.choice,
        world=settings.world,
        n_free=settings.wanted_free if isinstance(settings.wanted_free, int) else 0,
        asked=settings.wants_free,
        previous=reuse.before,
        report=report,
    )


def features_sample(corpus: Corpus, settings: Settings, reuse: Cold) -> Sample:
    """The documents that a guide is learnt from."""
    vectors = None
    if settings.embeddings == WORDS and corpus.embeddings is None and reuse.features is None:
        vectors = word_vectors(corpus.vectorizer)
    return Sample(
        corpus.rows,
        corpus.supervision,
        corpus.embeddings,
        vectors,
        reuse.features,
        reuse.directions,
        GUIDE_SEED,
        settings.threads,
        corpus.drawn,
    )


def word_vectors(vectorizer: TextVectorizer) -> Array | None:
    """Word vector of each term over its weight; None in a language that the vectors do not know."""
    terms = vectorizer.get_feature_names_out().tolist()
    if not knows(vectorizer.languages_, terms):
        return None
    return np.asarray(term_vectors(terms) / vectorizer.idf_[:, None], dtype=np.float32)


def stage_progress(stage: str, progress: Progress | None, detail: str = "") -> Callable[[int, int | None], None]:
    """A callback for one stage."""

    def report(done: int, total: int | None) -> None:
        if progress is not None:
            progress(stage, done, total, detail)

    return report


# Number of documents summarised at a time.
ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Retained documents: the labelled ones and a sample of the others (reservoir sampling).

    Parameters
    ----------
    rows : array of int (n_rows,)
        Rows of the model, ascending.
    X : CSR (n_rows, n_terms)
        Terms of the documents.
    keys : array (n_rows,)
        Random sort keys. The unlabelled documents with the smallest keys stay, so they are a random sample of all.
    embeddings : array (n_rows, any), optional
        Embeddings of the documents.
    """

    rows: NDArray[np.int64]
    X: sp.csr_array
    keys: NDArray[np.float64]
    embeddings: Array | None = None

    @classmethod
    def of(cls, state: FittedState) -> Reservoir | None:
        """The retained documents of a state; None if it has none."""
        kept = state.reservoir
        if kept is None:
            return None
        shape = len(kept["rows"]), state.components.shape[1]
        X = sp.csr_array((kept["data"], kept["indices"], kept["indptr"]), shape=shape)
        return cls(kept["rows"], X, kept["keys"], kept.get("embeddings"))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of a state."""
        X = self.X
        found = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "rows": self.rows, "keys": self.keys}
        return found if self.embeddings is None else found | {"embeddings": self.embeddings}

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position of each row of the model in the reservoir; -1 for a row that is not retained."""
        at = np.minimum(np.searchsorted(self.rows, rows), max(len(self.rows) - 1, 0))
        return np.where(self.rows[at] == rows, at, -1) if len(self.rows) else np.full(len(rows), -1)

    def select(self, chosen: NDArray[Any]) -> Reservoir:
        """A subset."""
        E = None if self.embeddings is None else self.embeddings[chosen]
        return Reservoir(self.rows[chosen], self.X[chosen], self.keys[chosen], E)

    def join(self, other: Reservoir) -> Reservoir:
        """Both reservoirs as one, in the order of the rows."""
        n_terms = max(self.X.shape[1], other.X.shape[1])
        X = sp.vstack([widened(self.X, n_terms), widened(other.X, n_terms)], format="csr")
        E = None
        if self.embeddings is not None and other.embeddings is not None:
            E = np.vstack([self.embeddings, other.embeddings])
        both = Reservoir(np.append(self.rows, other.rows), sp.csr_array(X), np.append(self.keys, other.keys), E)
        return both.select(np.argsort(both.rows, kind="stable"))


def surplus(keys: NDArray[np.float64], labelled: NDArray[np.bool_], most: int = BACKGROUND) -> NDArray[np.bool_]:
    """Mark unlabelled documents that exceed the number of background documents of a guide."""
    others = np.flatnonzero(~labelled)
    leave = np.zeros(len(keys), dtype=np.bool_)
    leave[others[np.argsort(keys[others], kind="stable")[most:]]] = True
    return leave


def retain(corpus: Corpus, found: Outcome, seed: int) -> tuple[Reservoir, History]:
    """Choose the documents to retain, and summarise the others."""
    rows = corpus.rows
    keys = np.random.default_rng([seed, 0]).exponential(size=rows.shape[0])
    leave = surplus(keys, corpus.supervision.labelled)
    history = History.empty(rows.shape[1], found.W.shape[1], rows.dtype)
    gone, stay = np.flatnonzero(leave), np.flatnonzero(~leave)
    for part in slices(len(gone), ROWS):
        some = gone[part]
        history += found.summarise(rows.take(some), found.W[some], some)
    if not gone.size and rows.matrix is not None:
        return Reservoir(stay, rows.matrix, keys[stay], corpus.embeddings), history
    E = None if corpus.embeddings is None else corpus.embeddings[stay]
    return Reservoir(stay, rows.take(stay), keys[stay], E), history


# Threshold of topics that nothing is learnt about.
THRESHOLD = 0.3


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of one run of the pipeline; ``W`` are the topic weights, in memory or in a file."""

    parameters: Parameters
    result: Result
    W: Array
    guide: Guide | None
    memberships: Array
    thresholds: Array
    penalties: sp.csr_array | Rows | None
    profiles: Array
    free_groups: Groups = ()
    missed: tuple[int, ...] = ()

    def summarise(self, X: sp.csr_array, W: Array, rows: NDArray[Any]) -> History:
        """Sufficient statistics of some rows of this run, with topic weights W."""
        penalties = None if self.penalties is None else as_rows(self.penalties).take(rows)
        l1 = float(self.parameters.alpha_W * X.shape[1] * self.parameters.l1_ratio)
        return History.of(X, W, np.ones(len(W)), penalties, l1)

    def fields(
        self, corpus: Corpus, reservoir: Reservoir, history: History, W: Array, memberships: Array
    ) -> dict[str, Any]:
        """Fields of a state, with topic weights and memberships of all documents."""
        plain = {k: v for k, v in sorted(vars(self.parameters).items()) if isinstance(v, str | int | float | None)}
        options, terms, idf = corpus.vectorizer.get_state()
        guide = self.guide
        return {
            "codebook": corpus.codebook,
            "groups": tuple((k,) for k in range(len(corpus.codebook))),
            "vectorizer": options,
            "vocabulary": terms,
            "idf": idf,
            "lemmatized": corpus.vectorizer.lemmatizer is not None,
            "estimator": plain | self.result.plain,
            "components": self.result.components,
            "document_topics": W,
            "objectives": np.array(self.result.objectives),
            "profiles": self.profiles,
            "memberships": memberships,
            "missed": list(self.missed),
            "thresholds": self.thresholds,
            "guide": None if guide is None else guide.arrays(),
            "outside": None if guide is None else guide.outside_arrays(),
            "reservoir": reservoir.arrays(),
            "history": vars(history),
        }


# --- prepare ---


def prepare(
    settings: Settings,
    source: object,
    labels: object = None,
    *,
    text: Names | None = None,
    id: str | None = None,
    chosen: str | Sequence[Any] | None = None,
    like: Mapping[str, Any] | None = None,
    after: Predictor | None = None,
    rows: Rows | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Read documents and labels, and vectorise the texts.

    With ``after``, an earlier model of the same documents, its vocabulary and its rows in memory are reused.
    A spooled corpus (see `topicsteer.model.spool`) is vectorised already.
    """
    documents = documents_of(source, labels, text, id, like=like)
    if not len(documents):
        raise ValueError("there are no documents: a fit needs some texts.")
    if not isinstance(source, Spool):  # the reader of a spooled corpus has checked them
        check_ids(documents.ids)
    topics = settings.topics.names if isinstance(settings.topics, Codebook) else settings.topics
    lineage = settings.lineage()
    if named_columns(source, labels) is not False:
        labels = documents.labels
        topics = topics or documents.topic_names
    lineage = lineage.spelled(label_counts(labels) + label_counts(documents.forbidden))
    supervision = supervise(labels, len(documents), topics=topics, complete=settings.complete, lineage=lineage)
    supervision = forbid(supervision, documents.forbidden, lineage)
    codebook = settings.codebook(supervision.topics, None if after is None else after.state.codebook)
    if after is not None:
        if not after.state.accepts(documents):
            raise ValueError("after was fitted to other documents: pass a model of the same texts and ids.")
        vectorizer = after.vectorizer
        rows = as_rows(vectorizer.transform(documents.texts)) if rows is None else rows
    elif isinstance(source, Spool):
        vectorizer, rows = source.vectorizer, source.matrix
        source.matrix.check()
    else:
        vectorizer = settings.new_vectorizer()
        rows = as_rows(vectorizer.fit_transform(documents.texts, progress=stage_progress("terms", progress)))
        release_memory()  # of the word ids
    return Corpus(
        rows,
        supervision,
        codebook,
        vectorizer,
        documents=documents,
        origin=_origin(documents.columns, supervision, chosen),
    )


def _origin(columns: Mapping[str, Any], supervision: Supervision, chosen: str | Sequence[Any] | None) -> Origin | None:
    """How the labelled documents were chosen; ``chosen`` replaces the column of the table."""
    if chosen is None:
        return Origin.of(columns, len(supervision.labelled))
    labelled = supervision.labelled.tolist()
    each = [chosen if own else None for own in labelled] if isinstance(chosen, str) else chosen
    found = Origin.of({**columns, CHOSEN: each}, len(labelled))
    if found is None:
        raise ValueError(f'chosen is {chosen!r}: expected "random", or one of "random" and "suggested" per document.')
    return found


# --- train the guide, apply it, factorise ---


def run(
    corpus: Corpus, settings: Settings, start: Start = COLD, *, folder: Path, progress: Progress | None = None
) -> Outcome:
    """Train the guide, apply it and factorise; large results go to the folder."""
    X, supervision, known = corpus.rows, corpus.supervision, len(corpus.codebook)
    guide = _guide(corpus, settings, start, progress)
    profiles = label_profiles(X, supervision, np.ones(X.shape[0]))
    parameters, free_groups, free = _plan(corpus, settings, start, guide, profiles)
    n_topics = known + len(free)
    penalties = guided = None
    if guide is not None:
        groups = [(k,) for k in range(known)]
        stage_progress("guide", progress, "memberships")(0, None)
        guided = apply_guide(
            X,
            guide,
            supervision,
            topic_classes(groups, free_groups, guide.n_known),
            n_topics,
            folder=folder,
            embeddings=corpus.embeddings,
            threads=settings.threads,
            progress=stage_progress("guide", progress),
        )
        penalties = guided.penalties
    if not isinstance(start, Continue) and guide is None:
        penalties = leave_empty(X, known, n_topics)
    idf = corpus.vectorizer.idf_
    words_of = lambda texts: without_weak(corpus.vectorizer.transform(texts), idf)  # noqa: E731
    constraints = term_constraints_of(corpus.codebook, X.shape[1], words_of)
    stage_progress("fit", progress)(0, parameters.max_iter)
    release_memory()  # of the blocks of memberships
    problem = Problem(
        X,
        supervision,
        free,
        parameters,
        np.ones(X.shape[0]),
        penalties=block_penalties(penalties, X, n_topics),
        term_constraints=TermConstraints.read(constraints, n_topics, X.shape[1]),
    )
    scratch = None
    if isinstance(start, Continue):
        problem = go_on(replace(problem, history=start.history, old=len(start.state.codebook)), start.components)
    else:
        first, H = first_weights(problem)
        if guided is not None and (free_groups or not supervision.counts.any()):
            _start_from_members(H, X, guided.memberships, supervision, len(free_groups))
        problem = begin(problem, first, H)
        scratch = Scratch(folder)

    def report(iteration: int, objective: float, seconds: float) -> None:
        stage_progress("fit", progress, f"objective {objective:.5g}")(iteration, parameters.max_iter)

    result = solve(problem, scratch, report)
    result.components[:, is_weak(idf)] = 0
    W = result.weights
    if guided is not None:
        memberships, thresholds = guided.memberships, guided.thresholds
    else:
        memberships = supervision.forest.summed(proportions(W, result.components)[:, :known])
        thresholds = np.full(known, THRESHOLD)
        penalties = None
    outcome = Outcome(parameters, result, W, guide, memberships, thresholds, penalties, profiles, free_groups)
    missed = missed_topics(outcome, corpus)
    if not isinstance(start, Continue):
        warn_of_unsupported(supervision, guide, guided, missed)
    return replace(outcome, missed=tuple(corpus.codebook.keys[k] for k in missed))


def _guide(corpus: Corpus, settings: Settings, start: Start, progress: Progress | None) -> Guide | None:
    """Train the guide."""
    stage_progress("guide", progress)(0, None)
    reuse = start.reuse if isinstance(start, Continue) else start
    report = lambda step: stage_progress("guide", progress, step)(0, None)  # noqa: E731
    guide = learn(corpus, settings, reuse, report=report)
    release_memory()  # of temporary features
    return guide


def _plan(
    corpus: Corpus, settings: Settings, start: Start, guide: Guide | None, profiles: Array
) -> tuple[Parameters, Groups, Sequence[str]]:
    """Parameters of the factorisation, groups of the guide that make up each free topic, and names of free topics."""
    if isinstance(start, Continue):
        before, named = start.state, {field.name for field in fields(Parameters)}
        given: dict[str, Any] = {name: value for name, value in before.estimator.items() if name in named}
        parameters = Parameters(**given | {"threads": settings.threads})
        if guide is not None and before.guide is None and parameters.label_weight == "balanced":
            parameters = replace(parameters, label_weight=None)  # the default of a guided fit
        return parameters, before.free_groups if before.open else (), before.free_names
    free_groups: Groups = ()
    if guide is not None:
        free_groups = free_topics(guide, settings.wanted_free, corpus.rows.shape[0])
    free = len(free_groups) if guide is not None and guide.n_groups else None
    parameters = settings.new_parameters(corpus.rows, profiles, guide=guide, free=free)
    number = (parameters.n_components or 0) - len(corpus.codebook)
    return parameters, free_groups, [f"free {k + 1}" for k in range(number)]


def _start_from_members(H: Array, X: Rows, memberships: Array, supervision: Supervision, free: int) -> None:
    """Let each free topic start as the mean of its documents; without labels, known topics too."""
    known = len(supervision.topics)
    first = range(0 if supervision.counts.any() else known)
    columns = [*first, *range(known, known + free)]
    weights = sp.vstack([_members(np.asarray(memberships[:, k])) for k in columns], format="csr")
    totals = np.asarray(weights.sum(axis=1)).ravel()
    H[columns] = np.asarray(X.combine(weights).astype(X.dtype) / np.maximum(totals, 1e-30)[:, None]).astype(X.dtype)


def _members(membership: Array) -> sp.csr_array:
    """Memberships of the members of a topic, as a row: at least 0.5, or half of the largest if that is less."""
    most = float(membership.max(initial=0))
    kept = membership >= (0.5 if most >= 0.5 or not most else most / 2)
    return sp.csr_array(np.where(kept, membership, 0).astype(np.float64)[None])


# --- fit ---


def fit(
    corpus: Corpus,
    settings: Settings,
    *,
    start: Start = COLD,
    arguments: Mapping[str, JSON],
    folder: Path,
    cluster: Rows | None = None,
    progress: Progress | None = None,
) -> FittedState:
    """Fit all documents.

    Parameters
    ----------
    corpus : Corpus
    settings : Settings
    start : Cold
        ``COLD``, or with parts of an earlier model of the same documents.
    arguments : mapping
        The arguments of the `TopicModel`, as plain values.
    folder : Path
        Folder for large results.
    cluster : Rows, optional
        The rows on a cluster, if a cluster does the work.
    progress : callable, optional
        As in ``TopicModel.fit``.

    Returns
    -------
    FittedState
    """
    at_work = corpus if cluster is None else replace(corpus, rows=cluster)
    found = run(at_work, settings, start, folder=folder, progress=progress)
    reservoir, history = retain(corpus, found, settings.random_state)
    documents = corpus.documents
    numbers = digests(documents)
    return FittedState(
        parameters=arguments,
        free_names=_free_names(found, corpus),
        free_groups=found.free_groups,
        **found.fields(corpus, reservoir, history, found.W, found.memberships),
        fingerprint=fingerprint(numbers),
        ids=list(documents.ids),
        texts=documents.texts,
        learnt_from=len(reservoir.rows),
        pattern=corpus.supervision.pattern,
        patterns=corpus.supervision.patterns,
        digests=numbers,
        origin=None if corpus.origin is None else corpus.origin.arrays(),
        reading={} if documents.reading is None else documents.reading.to_json(),
    )


def reuse_of(earlier: Predictor | None, *, choice: bool = False) -> Cold:
    """The latent semantics of an earlier model of the same documents, which do not depend on labels.

    With ``choice``, all features and the settings of features and regressions, for models of parts of the same labels.
    Without it, the result does not depend on the order in which labels came.
    """
    if earlier is None or earlier.guide is None:
        return COLD
    guide = earlier.guide
    if choice:
        return Cold(features=guide.features, choice=guide.choice)
    return Cold(directions=guide.features.directions)


def _free_names(found: Outcome, corpus: Corpus) -> tuple[str, ...]:
    """Names for the free topics, from their terms."""
    known = [str(name) for name in corpus.codebook.names]
    unnamed = _unnamed(found, corpus)
    return tuple(name_free_topics([unnamed.top_terms(k, 5) for k in range(len(known), len(unnamed))], known))


def _unnamed(found: Outcome, corpus: Corpus) -> Topics:
    """The topics by their numbers."""
    H, known = found.result.components, len(corpus.codebook)
    names = tuple(map(str, range(len(H))))
    terms = corpus.vectorizer.get_feature_names_out()
    return Topics(names, known, terms, H, found.W, (), np.zeros(0, np.int64))


# --- topics without documents ---

# A name is found if more than this many of its nearest documents have a word of it.
FEW, NEAREST = 2, 20
# It is also found from this cosine between the word vectors of name and top terms. In names-only fits of 20 Newsgroups,
# Reuters and PubMed, real names that were found without such documents had .27 or more, most planted ones below .12.
NEAR = 0.15


def missed_topics(found: Outcome, corpus: Corpus) -> list[int]:
    """Topics without a label whose top terms and nearest documents do not mean their name, description or keywords.

    Hardly any of these documents has such a word, no top term is one, and the terms of another topic are nearer.
    """
    vectorizer, counts = corpus.vectorizer, corpus.supervision.counts
    vocabulary, children = vectorizer.get_feature_names_out(), corpus.supervision.forest.children
    alone = [k for k, count in enumerate(counts) if not count and not any(children[k : k + 1])]
    meaning = bool(alone) and knows(vectorizer.languages_, vocabulary.tolist())
    if not alone or (corpus.embeddings is not None and not meaning):  # other vectors decided
        return []
    texts = [" ".join([described(topic), *topic.keywords]) for topic in corpus.codebook]
    words, topics, missed = without_weak(vectorizer.transform(texts), vectorizer.idf_), _unnamed(found, corpus), []
    top = [topics.top_terms(k, 10) for k in range(len(topics))]
    near = np.zeros((len(texts), len(top)))
    if meaning:
        near = unit_rows(text_vectors(texts)) @ unit_rows(np.array([term_vectors(own).sum(axis=0) for own in top])).T
    for k in alone:
        own = words[[k]].indices
        nearest = np.argsort(-np.asarray(found.memberships[:, k]), kind="stable")[:NEAREST]
        with_word = corpus.rows.take(np.sort(nearest))[:, np.sort(own)].sum(axis=1) > 0
        means = near[k, k] >= NEAR or (meaning and near[k].argmax() == k)
        if not (means or set(vocabulary[own]) & set(top[k]) or with_word.sum() > FEW):
            missed.append(k)
    return missed


def unsupported_topics(supervision: Supervision, guide: Guide | None) -> list[str]:
    """Quoted topics that nothing ties to a document; none after an edit that changed the number of known topics."""
    names, counts = supervision.topics, supervision.counts
    covered = np.zeros(len(names), dtype=np.bool_) if guide is None else guide.covers[: guide.n_known]
    if len(covered) != len(names):
        return []
    return [repr(str(name)) for name, tied in zip(names, covered | (counts > 0), strict=True) if not tied]


def warn_of_unsupported(
    supervision: Supervision, guide: Guide | None, guided: GuideOutput | None = None, missed: Sequence[int] = ()
) -> None:
    """Warn about topics that were not found, or have no document: neither a label nor a large membership."""
    unsupported = unsupported_topics(supervision, guide)
    if unsupported:
        warn_user(
            f"Nothing ties these topics to a document, so they are empty: {listed(unsupported)}. None of their words "
            "occurs in the corpus, and they have no label. Label a document, or add keywords that occur."
        )
    names = [repr(str(name)) for name in supervision.topics]
    lost = [names[k] for k in missed if names[k] not in unsupported]
    if lost:
        warn_user(
            f"Not found: {listed(lost)}. Neither the top terms nor the nearest documents of these topics mean their "
            "names. Add keywords that occur, or label a document."
        )
    if guided is None:
        return
    found = supervision.counts > 0
    for rows in slices(len(guided.memberships), PENALTY_ROWS):
        found |= (guided.memberships[rows, : len(found)] >= guided.thresholds).any(axis=0)
    if absent := [name for name, has in zip(names, found, strict=True) if not has and name not in unsupported + lost]:
        warn_user(f"No document seems to be about {listed(absent)}: add keywords, or label a document.")


def leave_empty(X: Rows, known: int, n_components: int) -> sp.csr_array | None:
    """Penalties that leave all known topics empty, for a fit without a guide; None without known topics."""
    if not known:
        return None
    return topic_penalties(np.zeros((X.shape[0], known)), np.zeros(known, dtype=np.bool_), n_components)
