"""Predictions of a fitted state: its vectoriser, estimator and guide, built from the state when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.explain import Explanation, explain
from topicsteer.analysis.suggest import Doubt, audit
from topicsteer.analysis.topics import Topics, all_memberships, proportions
from topicsteer.guidance.apply import (
    accepted,
    covered_topics,
    own_columns,
    topic_classes,
    topic_probabilities,
    with_none,
)
from topicsteer.guidance.embeddings import Embeddings, embed
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.penalties import topic_penalties
from topicsteer.labels.codebook import Codebook
from topicsteer.model.encoders import missing_embeddings
from topicsteer.model.state import FittedState
from topicsteer.system.types import JSON, Array

if TYPE_CHECKING:
    from topicsteer.estimator import TSNMF
    from topicsteer.model.reservoir import Reservoir
    from topicsteer.nmf.statistics import History
    from topicsteer.text import TextVectorizer

# Arrays of a `History`.
HISTORY = ("cross", "gram", "penalty", "totals", "scale")
# Arrays of a sparse matrix.
CSR_ARRAYS = ("data", "indices", "indptr")


def vectorizer_of(state: FittedState, lemmatizer: Callable[[str], str] | None = None) -> TextVectorizer:
    """The fitted vectoriser."""
    from topicsteer.text import TextVectorizer

    return TextVectorizer.from_state(state.vectorizer, state.vocabulary, state.idf, lemmatizer=lemmatizer)


def estimator_of(state: FittedState) -> TSNMF:
    """The fitted estimator, with its history if the state has one."""
    from topicsteer.estimator import TSNMF
    from topicsteer.nmf.checks import check_settings
    from topicsteer.nmf.statistics import History

    given: dict[str, Any] = dict(state.estimator)
    ended = {name: given.pop(name) for name in ("n_iter", "ended", "error") if name in given}
    estimator = TSNMF(**{name: value for name, value in given.items() if name in TSNMF().get_params()})
    check_settings(estimator.get_params())
    estimator.components_, estimator.document_topics_ = state.components, state.document_topics
    estimator.objective_history_, estimator.n_features_in_ = state.objectives, state.components.shape[1]
    estimator.topic_names_ = np.array([*state.codebook.names, *state.free_names], dtype=object)
    estimator.n_known_ = len(state.codebook)
    estimator.n_iter_, estimator.ended_ = ended["n_iter"], ended["ended"]
    if "error" in ended:
        estimator.reconstruction_err_ = ended["error"]
    if state.history is not None:
        estimator.history_ = History(**state.history)
    return estimator


def history_of(estimator: TSNMF) -> History:
    """Sufficient statistics of earlier documents."""
    if estimator.history_ is None:
        raise ValueError("this estimator has no history of earlier documents")
    return estimator.history_


def guide_of(state: FittedState) -> Guide | None:
    """The guide; None without labels or guidance."""
    if state.guide is None:
        return None
    return Guide.from_arrays(state.guide, sum(map(len, state.groups)), state.outside, state.levels)


def reservoir_of(state: FittedState) -> Reservoir | None:
    """The retained documents; None if the state has none."""
    from topicsteer.model.reservoir import Reservoir

    kept = state.reservoir
    if kept is None:
        return None
    X = sp.csr_array(tuple(kept[name] for name in CSR_ARRAYS), shape=(len(kept["rows"]), state.components.shape[1]))
    return Reservoir(kept["rows"], X, kept["keys"], kept.get("embeddings"))


def embed_new(source: Embeddings | None, texts: Sequence[str], width: int, encoder: Mapping[str, Any]) -> Array:
    """The embeddings of new texts, with as many columns as in the fit, whose encoder an error names."""
    if source is None:
        raise ValueError(missing_embeddings(encoder, width))
    found = embed(source, texts)
    if found.shape[1] != width:
        raise ValueError(f"embeddings have {found.shape[1]} columns, and {width} in the fit: use the same encoder.")
    return found


def fitted_estimator(estimator: TSNMF) -> dict[str, Any]:
    """Fields of a state that come from the estimator."""
    plain: dict[str, JSON] = {"n_iter": estimator.n_iter_, "ended": estimator.ended_}
    if hasattr(estimator, "reconstruction_err_"):
        plain["error"] = estimator.reconstruction_err_
    history = estimator.history_
    return {
        "estimator": _plain_parameters(estimator) | plain,
        "components": estimator.components_,
        "document_topics": estimator.document_topics_,
        "objectives": estimator.objective_history_,
        "history": None if history is None else {name: getattr(history, name) for name in HISTORY},
    }


def fitted_vectorizer(vectorizer: TextVectorizer) -> dict[str, Any]:
    """Fields of a state that come from the vectoriser."""
    options, terms, idf = vectorizer.get_state()
    lemmatized = vectorizer.lemmatizer is not None
    return {"vectorizer": options, "vocabulary": terms, "idf": idf, "lemmatized": lemmatized}


def kept_documents(reservoir: Reservoir) -> dict[str, Any]:
    """Arrays of the retained documents."""
    found = {name: getattr(reservoir.X, name) for name in CSR_ARRAYS} | {"rows": reservoir.rows, "keys": reservoir.keys}
    return found if reservoir.embeddings is None else found | {"embeddings": reservoir.embeddings}


class Predictor:
    """A fitted state with its vectoriser, estimator and guide, each built on first use.

    Parameters
    ----------
    state : FittedState
    lemmatizer : callable, optional
        The lemmatizer of the fit, if there was one.
    threads : int, optional
    """

    def __init__(
        self, state: FittedState, lemmatizer: Callable[[str], str] | None = None, threads: int | None = None
    ) -> None:
        self.state, self.lemmatizer, self.threads = state, lemmatizer, threads

    @property
    def result(self) -> Topics:
        """Names, terms and documents of the topics."""
        return self.state.topics

    @cached_property
    def vectorizer(self) -> TextVectorizer:
        """The vectoriser of texts."""
        return vectorizer_of(self.state, self.lemmatizer)

    @cached_property
    def estimator(self) -> TSNMF:
        """The factorisation."""
        return estimator_of(self.state)

    @cached_property
    def guide(self) -> Guide | None:
        """The guide; None without labels or guidance."""
        return guide_of(self.state)

    def belongs(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """Memberships of documents, with the columns of the state's memberships; labels are ignored."""
        known, forest = len(self.state.groups), self.state.codebook.forest
        if self.guide is None:
            shares = self._shares(X)[:, :known]
            return shares if forest is None else forest.summed(shares)
        found = topic_probabilities(self._probabilities(self.guide, X, embeddings), self._classes, forest)
        return with_none(found, known, forest) if self.guide.open else found

    def all_memberships(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """Memberships of documents in all topics and in none; labels are ignored."""
        found, known = self.belongs(X, embeddings), len(self.state.groups)
        if found.shape[1] == len(self.state.names) + 1:
            return found
        inside = np.zeros(X.shape[0], dtype=np.bool_)
        return all_memberships(found, proportions(self.weights(X, embeddings), self.state.components), known, inside)

    def weights(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """Topic weights of documents; labels are ignored. With a guide, the same penalties apply as in the fit."""
        if self.guide is None or not X.shape[0]:
            return self._transform(X)
        covered = covered_topics(self.guide, self._classes)
        penalties = topic_penalties(
            own_columns(self.belongs(X, embeddings)[:, : len(covered)], self.state.codebook.forest),
            covered,
            len(self.state.components),
            open_world=self.guide.open,
        )
        return self._solve(X, penalties)

    def decide(self, belongs: Array, threshold: float | None = None, *, ancestors: bool = False) -> list[list[str]]:
        """Known topics at or above their thresholds, or one for all; strongest first, of a tree the deepest or all."""
        own = self.state.thresholds
        names, has = self.state.names, accepted(belongs, own if threshold is None else np.full(len(own), threshold))
        forest = self.state.codebook.forest
        if forest is not None:
            has = forest.with_ancestors(has) if ancestors else forest.deepest(has)
        order = np.argsort(-belongs[:, : has.shape[1]], axis=1, kind="stable")
        return [[names[k] for k in ranks if row[k]] for row, ranks in zip(has, order, strict=True)]

    def explain(self, text: str, x: sp.csr_array, w: Array) -> Explanation:
        """Contribution of each word of a text to each topic, given the topic weights."""
        H, names, terms = self.state.components, self.state.names, self.result.vocabulary
        return explain(text, x, w, H, names, terms, self.vectorizer.locate(text))

    def doubts(self, n: int | None = None) -> list[Doubt]:
        """Labels that look wrong or missing, most doubtful first, each document predicted without its own labels."""
        learnt = self.guide
        if learnt is None:
            raise ValueError("an audit needs labels and guidance: label some documents, and fit with guidance.")
        found = topic_probabilities(learnt.left_out_probabilities(), self.state.groups, self.state.codebook.forest)
        return audit(found, learnt.rows, self.state.supervision)[:n]

    def positions(self, X: sp.csr_array) -> Array:
        """Positions of documents in the latent space; topic shares without guidance or in a tiny corpus."""
        if self.guide is not None and self.guide.seen.size:
            return self.guide.positions(X, self.threads)
        return self._shares(X)

    @property
    def seen(self) -> Array:
        """ZᵀZ of the labelled documents' positions."""
        if self.guide is not None and self.guide.seen.size:
            return self.guide.seen
        Z = self.result.proportions[self.state.supervision.labelled]
        return np.asarray(Z.T @ Z)

    def _shares(self, X: sp.csr_array) -> Array:
        return proportions(self._transform(X), self.state.components)

    def _transform(self, X: sp.csr_array) -> Array:
        """Topic weights of documents without penalties; an estimator of scikit-learn refuses a matrix without rows."""
        H = self.state.components
        return self._solve(X, None) if X.shape[0] else np.zeros((0, len(H)), dtype=H.dtype)

    def _solve(self, X: sp.csr_array, penalties: sp.csr_array | None) -> Array:
        return self.estimator.transform(X, penalties=penalties)

    def _probabilities(self, guide: Guide, X: sp.csr_array, embeddings: Array | None) -> Array:
        return guide.probabilities(X, self.threads, embeddings=embeddings)

    @property
    def _classes(self) -> list[tuple[int, ...]]:
        """Classes of the guide that make up each topic."""
        n_known = 0 if self.guide is None else self.guide.n_known
        return topic_classes(self.state.groups, self.state.free_groups, n_known)


# --- arguments of a TopicModel ---


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, JSON]:
    """Arguments of a `TopicModel` as JSON values, without functions and start matrices."""
    plain = dict(parameters)
    if isinstance(free := plain["free_topics"], Mapping):
        inside = {str(name): number for name, number in free.items() if name is not None}
        plain["free_topics"] = {"inside": inside, "top": free.get(None)}
    if plain["parents"] is not None:
        plain["parents"] = {str(topic): str(parent) for topic, parent in plain["parents"].items()}
    for name in ("keywords", "banned", "descriptions"):
        if plain[name] is not None:
            words = plain[name].items()
            plain[name] = {str(topic): value if isinstance(value, str) else list(value) for topic, value in words}
    topics, vectorizer, estimator = plain["topics"], plain["vectorizer"], plain["estimator"]
    if topics is not None:
        plain["topics"] = {"codebook": topics.to_json()} if isinstance(topics, Codebook) else _names(topics)
    if vectorizer is not None:
        options = vectorizer.get_params() | {"ngram_range": list(vectorizer.ngram_range)}
        if not isinstance(vectorizer.stop_words, str | None):
            options["stop_words"] = sorted(vectorizer.stop_words)
        plain["vectorizer"] = {name: value for name, value in options.items() if name != "lemmatizer"}
    plain["estimator"] = None if estimator is None else _plain_parameters(estimator)
    return plain


def parameters_of(plain: Mapping[str, Any], lemmatizer: Callable[[str], str] | None = None) -> dict[str, Any]:
    """Arguments of a `TopicModel` from the values of :func:`plain_parameters`."""
    from topicsteer.estimator import TSNMF
    from topicsteer.text import TextVectorizer

    given = dict(plain)
    if isinstance(free := given.get("free_topics"), dict):
        given["free_topics"] = {**free["inside"], None: free.get("top")}
    if isinstance(given.get("topics"), dict):
        given["topics"] = Codebook.from_json(given["topics"]["codebook"])
    if given.get("vectorizer") is not None:
        options = given["vectorizer"] | {"ngram_range": tuple(given["vectorizer"]["ngram_range"])}
        given["vectorizer"] = TextVectorizer(**options, lemmatizer=lemmatizer)
    if given.get("estimator") is not None:
        given["estimator"] = TSNMF(**given["estimator"])
    return given


def _plain_parameters(estimator: TSNMF) -> dict[str, JSON]:
    return {k: v for k, v in estimator.get_params().items() if isinstance(v, str | int | float | None)}


def _names(topics: Any) -> list[JSON]:
    return [name.item() if isinstance(name, np.generic) else name for name in topics]
