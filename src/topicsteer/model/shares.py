"""Shares of topics from a fitted model and its documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topicsteer.analysis.coders import predictor_of
from topicsteer.analysis.design import Sample, label_values, same_texts
from topicsteer.analysis.estimates import Predictions
from topicsteer.analysis.groups import Groups, column_groups
from topicsteer.analysis.prevalence import Prevalence, prevalence
from topicsteer.analysis.tree_shares import TreeColumns
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.coder import Coder
from topicsteer.labels.forms import near_miss
from topicsteer.labels.origin import Origin
from topicsteer.labels.supervision import Supervision
from topicsteer.model.coders import coders_of
from topicsteer.model.crossfit import cross_fit
from topicsteer.model.fitted_model import FittedModel
from topicsteer.model.learning import Task
from topicsteer.model.settings import Settings
from topicsteer.model.state import FittedState
from topicsteer.system.files import Scratch
from topicsteer.system.lock import one_at_a_time
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import NONE, is_missing

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
    settings: Settings,
    task: Task,
    origin: Origin,
    clusters: NDArray[np.int64] | None = None,
    *,
    folder: Path,
    progress: Progress | None = None,
) -> Evidence:
    """Predict labelled documents without their labels; this takes most of the time.

    Parameters
    ----------
    settings : Settings
        Settings of the fit, with the world decided.
    task : Task
        The documents of the fit with their labels, and the latent directions of its guide.
    origin : Origin
        How the labelled documents were chosen.
    clusters : array of int (n_documents,), optional
        Documents with the same number are not independent. Near duplicates never are.
    folder : Path
        Folder for predictions on disk.
    progress : callable, optional
    """
    rows = np.flatnonzero(task.supervision.labelled)
    labels = label_values(task.supervision, rows)
    near = same_texts(task.rows.take(rows), None if clusters is None else clusters[rows])
    sample = Sample(rows, labels, origin.take(rows), near)
    found = None
    if settings.guidance is not None and len(rows):
        found = cross_fit(settings, task, sample, folder=folder, progress=progress)
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
        state.topics.all_memberships(outsiders),
        groups,
        weights,
        level,
        none=bool(state.believes_open or outsiders.any()),
        tree=tree_columns(state.supervision, state.codebook),
    )
    return replace(found, sentences=(*found.sentences, *evidence.notes))


def tree_columns(supervision: Supervision, codebook: Codebook) -> TreeColumns | None:
    """The tree of the known topics, with the free topics inside others."""
    forest = supervision.forest
    if forest is None:
        return None
    return TreeColumns(forest, frozenset(k for k, topic in enumerate(codebook) if topic.found))


class ModelShares(FittedModel):
    """Shares of the topics of a fitted `TopicModel`, which inherits them."""

    _settings: Callable[[], Settings]
    _attach: Callable[[object, str | None, str | None], None]

    @one_at_a_time
    def prevalence(
        self,
        by: str | Sequence[str] | Groups | None = None,
        source: object = None,
        *,
        weight: str | ArrayLike | None = None,
        cluster: str | Sequence[Any] | None = None,
        coders: Mapping[str, Any] | None = None,
        text: str | None = None,
        id: str | None = None,
        missing: bool = True,
        level: float = 0.95,
        progress: Progress | None = None,
    ) -> Prevalence:
        """Shares of the topics in the training documents and in groups of them, with honest intervals.

        Labelled documents correct the predictions for all others. Each is predicted without its own labels, which takes
        five further guides. They are kept, so another grouping of the same model is quick.

        Parameters
        ----------
        by : column name or names, sequence of one value per document, or Groups, optional
            Groups of documents. A column of dates is grouped by a period that fits its range; ``"date:month"`` chooses
            it. Several columns are crossed.
        source : Documents, DataFrame or path, optional
            The training documents with their columns. Default: the documents of the fit, or of :meth:`attach`.
        weight : column name or array (n_documents,), optional
            Survey weights.
        cluster : column name or sequence, optional
            Documents with the same value, such as an author, are not independent. Near duplicates never are.
        coders : mapping of str to answers, optional
            Answers of coders as further predictions, as in :meth:`coders`. They are never labels. The labels decide on
            the weight of each, so that a bad coder does no harm.
        text, id : str, optional
            Column names of a table.
        missing : bool, default=True
            Whether documents without a value are a group of their own; otherwise they belong to no group.
        level : float, default=0.95
            Confidence level of the intervals.
        progress : callable, optional
            As in :meth:`fit`, with the stage "shares".

        Returns
        -------
        Prevalence
            ``table()``, ``differences()``, ``trend()``, ``needed_labels(precision)`` and ``sentences``.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 25
        >>> model = TopicModel(free_topics=0).fit(texts, {row: ["tea", "coffee"][row % 2] for row in range(20)})
        >>> found = model.prevalence()
        >>> found.table()["topic"], found.documents.tolist(), found.labels[0].tolist()
        (['coffee', 'tea'], [100], [20, 20])
        """
        if source is not None:
            self._attach(source, text, id)
        columns, n = self.documents_.columns if self.documents_ is not None else {}, len(self.state_.ids)
        groups = groups_of(by, columns, n, missing)
        weights, clusters = weights_of(weight, columns, n), clusters_of(cluster, columns, n)
        found = [] if coders is None else coders_of(self, coders)
        return shares(self.state_, self._evidence(clusters, progress).joined(found), groups, weights, level)

    def _task(self) -> Task:
        """The task of learning from the training documents again, with the same latent semantics."""
        X = self.training_rows
        E = self._training_embeddings()
        encode = None if E is None else self.encoder_
        task = Task(X, self.supervision_, self.codebook, self.vectorizer_, np.ones(X.shape[0]), E, encode)
        if self.guide_ is None:
            return task
        guide = self.guide_
        return replace(task, directions=guide.directions, earlier=(guide, self.state_.groups), choice=guide.choice)

    def _evidence(self, clusters: NDArray[np.int64] | None, progress: Progress | None = None) -> Evidence:
        """Labelled documents and their predictions, kept until the model or the clusters change.

        The texts of the same documents may be read again: :meth:`attach` changes nothing else.
        """
        key = None if clusters is None else clusters.tobytes()
        kept = self.__dict__.get("_gathered")
        if kept is None or not same_but_texts(kept[0], self.state_) or kept[1] != key:
            work = Scratch()
            # The folds share the decision of the fit.
            settings = replace(self._settings(), world="open" if self.state_.believes_open else "closed")
            origin = self.state_.label_origin
            found = gather(settings, self._task(), origin, clusters, folder=work.path, progress=progress)
            kept = self._gathered = (self.state_, key, found, work)  # the folder lives as long as the model
        evidence: Evidence = kept[2]
        return evidence


def same_but_texts(a: FittedState, b: FittedState) -> bool:
    """Whether two states share everything but the texts of their documents."""
    names = {one.name for one in fields(FittedState)} - {"texts"}
    return all(getattr(a, name) is getattr(b, name) for name in names)


# --- columns ---


def groups_of(by: str | Sequence[str] | Groups | None, columns: Columns, n: int, missing: bool) -> Groups | None:
    """The groups by one or several columns, or by one value per document."""
    if by is None or isinstance(by, Groups):
        found = by
    elif not isinstance(by, str) and len(by) == n > len(columns):
        found = Groups.of(list(by), str(getattr(by, "name", None) or "group"), missing=missing)
    else:
        found = column_groups(columns, by, missing=missing)
    if found is not None and len(found.codes) != n:
        raise ValueError(f"there are {len(found.codes):,} groups for {n:,} documents: pass one per document.")
    return found


def weights_of(weight: str | ArrayLike | None, columns: Columns, n: int) -> Array | None:
    """Survey weights from a column or an array."""
    if weight is None:
        return None
    values = _column(weight, columns, "weights") if isinstance(weight, str) else weight
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
    values = _column(cluster, columns, "clusters") if isinstance(cluster, str) else cluster
    if len(values) != n:
        raise ValueError(f"there are {len(values):,} clusters for {n:,} documents: pass one per document.")
    number: dict[str, int] = {}
    found = [
        -1 - row if is_missing(value) else number.setdefault(str(value), len(number))
        for row, value in enumerate(values)
    ]
    return np.array(found, dtype=np.int64)


def _column(name: str, columns: Columns, role: str) -> Sequence[Any]:
    if name not in columns:
        near = near_miss(name, list(columns))
        hint = f" Did you mean {near!r}?" if near else ""
        raise ValueError(
            f"there is no column {name!r} of {role}; the further columns are: {', '.join(columns) or 'none'}.{hint}"
        )
    return columns[name]
