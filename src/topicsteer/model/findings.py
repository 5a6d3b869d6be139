"""Findings of a fitted model: shares, coders, the paper trail, reports and maps."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from topicsteer import __version__
from topicsteer.analysis import map_layout as maps
from topicsteer.analysis.agreement import comparison_table, disagreements, label_weights, people_of
from topicsteer.analysis.column_formats import Column
from topicsteer.analysis.evaluation import Evaluation
from topicsteer.analysis.groups import Groups, likely_groups
from topicsteer.analysis.map_layout import Layout
from topicsteer.analysis.prevalence import WARNING, Prevalence
from topicsteer.analysis.survey_design import Sample, label_values
from topicsteer.corpora import Documents, ReadOptions, ReadReport
from topicsteer.corpora.label_files import read_predictions
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.coder import Coder, check_coder_name, coder_of
from topicsteer.labels.forms import NO_PARENTS
from topicsteer.labels.supervision import CHOSEN as ORIGIN
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Kind
from topicsteer.model.cross_fit import (
    Evidence,
    Hidden,
    clusters_of,
    gather,
    groups_of,
    same_but_texts,
    shares,
    weights_of,
)
from topicsteer.model.labelling import training_corpus
from topicsteer.model.pipeline import reuse_of
from topicsteer.report.breakdown import Breakdown
from topicsteer.report.map_page import MappedDocuments
from topicsteer.report.methods_page import Section, markdown
from topicsteer.report.page import Example, ReportData
from topicsteer.report.table_files import check_suffix
from topicsteer.system.failures import warn_user
from topicsteer.system.files import Scratch, one_at_a_time, write_text
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import NONE

if TYPE_CHECKING:
    from topicsteer.model.predictor import Frame
    from topicsteer.model.topic_model import TopicModel


# Answers of coders, by name: a file or DataFrame with ids, or answers to the training documents in any form of labels.
Coders = Mapping[str, Any]


def coders_of(
    model: TopicModel,
    coders: Coders,
    *,
    report: Callable[[ReadReport], object] | None = None,
) -> list[Coder]:
    """Coders in any accepted form, over the training documents and known topics of a model.

    Parameters
    ----------
    model : TopicModel
    coders : mapping of str to answers
    report : callable, optional
        Called with the report on each file: one line per row that was not used as it is.
    """
    if not isinstance(coders, Mapping):
        raise TypeError(f'coders is a {type(coders).__name__}: expected a dict of names, such as {{"gpt": "gpt.csv"}}.')
    state, topics, lineage = model.state_, model.state_.supervision.topics, NO_PARENTS
    if not model.codebook.forest.flat:  # without parents, no answer is a path
        separator = state.parameters.get("path_separator")
        lineage = Lineage.of(model.codebook, None, separator if isinstance(separator, str) else None)
    n = len(state.ids)
    texts = [""] * n if model.documents_ is None else model.documents_.texts
    documents = Documents(state.ids, texts, reading=ReadOptions.from_json(state.reading))
    found: dict[str, Coder] = {}
    for given_name, given in coders.items():
        name = check_coder_name(given_name)
        if name in found:
            raise ValueError(f"two coders have the name {name!r}: choose another.")
        if isinstance(given, Coder):
            if given.answers.topics != topics or len(given.answers.pattern) != n:
                raise ValueError(f"coder {name}: the documents or topics are not the ones in the model.")
            found[name] = replace(given, name=given_name)
        elif isinstance(given, str | os.PathLike) or hasattr(given, "columns"):
            answers, rows = read_predictions(given, documents)
            found[name] = coder_of(given_name, answers, n, topics, lineage=lineage)
            if report is not None:
                report(rows)
        else:
            found[name] = coder_of(given_name, given, n, topics, lineage=lineage)
    return list(found.values())


def coder_table(model: TopicModel, coders: Sequence[Coder]) -> dict[str, list[Any]]:
    """Columns of the comparisons; labels drawn with known probabilities count for the documents they stand for."""
    rows = np.flatnonzero(model.state_.supervision.labelled)
    sample = Sample(rows, label_values(model.state_.supervision, rows), model.state_.label_origin.take(rows), rows)
    weight = label_weights(sample, len(model.state_.ids))
    return comparison_table(coders, people_of(model.state_.supervision), weight=weight, seed=model.random_state)


# Packages whose versions can change numbers.
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")
NOT_RECORDED = "not recorded"
# How documents were chosen, in words.
CHOSEN = {
    Kind.RANDOM: "at random",
    Kind.DOUBT: "by doubt with known probabilities",
    Kind.SUGGESTED: "by a suggestion or a person",
    Kind.UNKNOWN: "in a way that was not recorded",
}


@dataclass(frozen=True, eq=False)
class Measured:
    """A model, and measurements beyond its fit: the sections of its methods page.

    Parameters
    ----------
    model : TopicModel
    evaluation : Evaluation, optional
        On hidden labels.
    shares : Prevalence, optional
    people : mapping of str to int
        Labelled documents per person, or per other source of labels.
    """

    model: TopicModel
    evaluation: Evaluation | None
    shares: Prevalence | None
    people: Mapping[str, int]

    def sections(self) -> list[Section]:
        """The sections; a note names each measurement that is missing."""
        first = [self.corpus(), self.labels(), self.settings(), self.evaluated()]
        return [*first, self.estimated(), self.assumptions(), self.versions()]

    @cached_property
    def share_table(self) -> Mapping[str, Sequence[Any]]:
        """Table of the shares."""
        return {} if self.shares is None else self.shares.table()

    @property
    def origin(self) -> str:
        """How the labelled documents were chosen, in words."""
        kinds = self.model.state_.label_origin.kind[self.model.state_.supervision.labelled]
        counts = {words: int((kinds == kind).sum()) for kind, words in CHOSEN.items()}
        if counts[CHOSEN[Kind.UNKNOWN]] == len(kinds):
            return NOT_RECORDED
        return ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)

    @property
    def labelled(self) -> str:
        """Number and part of the labelled documents."""
        labelled, documents = int(self.model.state_.supervision.labelled.sum()), len(self.model.state_.ids)
        return f"{labelled:,} of {documents:,} ({labelled / max(documents, 1):.1%})"

    @property
    def labellers(self) -> str:
        """Who labelled."""
        return ", ".join(f"{name} ({count:,})" for name, count in self.people.items())

    @property
    def complete(self) -> bool:
        """Whether no label leaves a topic open; in a tree, topics below a label are open anyway."""
        supervision = self.model.state_.supervision
        patterns = supervision.patterns[1:]
        labels = np.where(patterns == PERMITTED, PERMITTED, FORBIDDEN).astype(np.int8)
        return not bool(((patterns == UNKNOWN) & (supervision.forest.closed(labels) == FORBIDDEN)).any())

    def corpus(self) -> Section:
        """Documents and terms."""
        state = self.model.state_
        languages = state.vectorizer.get("languages") or ["none"]
        facts = {
            "documents": f"{len(state.ids):,}",
            "terms": f"{len(state.vocabulary):,}",
            "languages of the stop words": ", ".join(map(str, cast("list[str]", languages))),
            "hash of ids and texts": state.fingerprint,
        }
        note = "The model does not record where the documents come from. Add their source."
        return Section("Corpus", facts, notes=[note])

    def labels(self) -> Section:
        """Labelled documents, in all and per topic."""
        topics, supervision = self.model.state_.topics, self.model.state_.supervision
        facts = {
            "labelled documents": self.labelled,
            "of them with none of the topics": f"{topics.n_outsiders:,}",
            "labels": "complete: no other known topics" if self.complete else "may be incomplete",
            "who labelled": self.labellers or NOT_RECORDED,
            "how documents were chosen": self.origin,
        }
        table: dict[str, Sequence[Any]] = {
            "topic": topics.names[: topics.n_known],
            "labelled documents": supervision.counts.tolist(),
        }
        if not topics.forest.flat:
            table["level"] = [1 + depth for depth in topics.forest.depth]
        if any(topic.description for topic in self.model.codebook):
            table["definition"] = [topic.description for topic in self.model.codebook]
        notes = [] if self.people else ["The model does not record who labelled. Add names or numbers of people."]
        return Section("Labels", facts, table, [Column("labelled documents", "count")], notes)

    def settings(self) -> Section:
        """Arguments of the model, and the end of the fit."""
        state = self.model.state_
        given = {name: value for name, value in state.parameters.items() if name != "topics" and value is not None}
        facts = {name: json.dumps(value, ensure_ascii=False) for name, value in given.items()}
        facts |= {"free topics found": f"{len(state.free_names):,}", "world": "open" if state.open else "closed"}
        facts["iterations"] = f"{state.estimator.get('n_iter', '')} ({state.estimator.get('ended', '')})"
        return Section("Settings", facts)

    def evaluated(self) -> Section:
        """Scores on hidden labels."""
        title, found = "Evaluation on hidden labels", self.evaluation
        if found is None:
            return Section(title, notes=["Predictions were not evaluated: this needs the training documents."])
        facts = {"folds": str(found.folds), "labelled documents": f"{found.labelled:,}"}
        return Section(title, facts, found.shown() if found.judged else {}, notes=[found.verdict])

    def estimated(self) -> Section:
        """Shares of topics."""
        if not self.share_table:
            note = "Shares were not estimated: this needs the training documents. Averages of memberships are biased."
            return Section("Shares of topics", notes=[note])
        percent = [Column(name, "share") for name in ("share", "low", "high")]
        return Section("Shares of topics", {"intervals": "95 %"}, self.share_table, percent)

    def assumptions(self) -> Section:
        """Sentences about the world and the labels."""
        declared = self.model.state_.parameters.get("world")
        world = (
            f"declared as {declared}" if declared else f"found to be {'open' if self.model.state_.open else 'closed'}"
        )
        notes = [] if self.shares is None else list(self.shares.sentences)
        notes.append(f"World: {world}. {self.model.belief}")
        notes.append("A label is taken as true. Errors of the people who labelled are part of every figure.")
        if not self.complete:
            notes.append("Topics that a labelled document does not name are unknown, not absent.")
        return Section("Assumptions", notes=notes)

    def versions(self) -> Section:
        """Versions of packages, and hashes of everything that the numbers come from."""
        state = self.model.state_
        facts = {"topicsteer": __version__, "Python": platform.python_version()}
        facts |= {name: version_of(name) for name in PACKAGES}
        codebook = json.dumps(state.codebook.to_json(), sort_keys=True, ensure_ascii=False)
        hashed = {"codebook": codebook.encode(), "labels": state.patterns[state.pattern].tobytes()}
        hashed["topics"] = state.components.tobytes()
        facts["hash of ids and texts"] = state.fingerprint
        facts |= {f"hash of the {name}": hashlib.sha256(data).hexdigest() for name, data in hashed.items()}
        return Section("Versions and hashes", facts)


def version_of(package: str) -> str:
    """The version of a package; numba is missing in an installation that only reads models."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


class Findings:
    """Findings of a fitted `TopicModel`, as ``model.findings``.

    Parameters
    ----------
    model : TopicModel
    """

    def __init__(self, model: TopicModel) -> None:
        self._model = model

    def prevalence(
        self, by: str | Sequence[Any] | Groups | None = None, *, table: str = "shares", **options: Any
    ) -> Frame:
        """Table of the shares of topics in the training documents, with intervals; missing where they are not known.

        Parameters
        ----------
        by : column name, sequence of one value per document, or Groups, optional
            As in :meth:`shares`.
        table : {"shares", "differences", "trend"}, default="shares"
            Shares in all documents and in groups; differences between groups; mean changes per period.
        **options
            As in :meth:`shares`, which has the assumptions too. Warnings among them are warnings here.

        Returns
        -------
        table
            One row per topic and group, of the kind that was fitted.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 25
        >>> model = TopicModel(free_topics=0).fit(texts, {row: ["tea", "coffee"][row % 2] for row in range(20)})
        >>> model.findings.prevalence()["topic"].to_list()
        ['coffee', 'tea']
        """
        found = self.shares(by, **options)
        tables = {"shares": found.table, "differences": found.differences, "trend": found.trend}
        if table not in tables:
            raise ValueError(f"table is {table!r}: expected one of {', '.join(map(repr, tables))}.")
        for sentence in found.sentences:
            if sentence.startswith(WARNING):
                warn_user(sentence.removeprefix(WARNING).strip())
        return self._model._table(tables[table]())

    @one_at_a_time
    def shares(
        self,
        by: str | Sequence[Any] | Groups | None = None,
        *,
        weight: str | ArrayLike | None = None,
        cluster: str | Sequence[Any] | None = None,
        coders: Mapping[str, Any] | None = None,
        level: float = 0.95,
        progress: Progress | None = None,
    ) -> Prevalence:
        """Shares of the topics in the training documents and in groups of them, as a record with its assumptions.

        Labelled documents correct the predictions for all others. Each is predicted without its own labels, which takes
        five further guides. They are kept, so another grouping of the same model is quick.

        Parameters
        ----------
        by : column name, sequence of one value per document, or Groups, optional
            Groups of documents. A column of dates is grouped by a period that fits its range; ``"date:month"`` chooses
            it.
        weight : column name or array (n_documents,), optional
            Survey weights.
        cluster : column name or sequence, optional
            Documents with the same value, such as an author, are not independent. Near duplicates never are.
        coders : mapping of str to answers, optional
            Answers of coders as further predictions, as in :meth:`coders`. They are never labels. The labels decide on
            the weight of each, so that a bad coder does no harm.
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
        >>> found = model.findings.shares()
        >>> found.table()["topic"], found.documents.tolist(), found.labels[0].tolist()
        (['coffee', 'tea'], [100], [20, 20])
        """
        n = len(self._model.state_.ids)
        columns = {} if self._model.documents_ is None else self._model.documents_.columns
        groups = groups_of(by, columns, n)
        weights, clusters = weights_of(weight, columns, n), clusters_of(cluster, columns, n)
        found = [] if coders is None else coders_of(self._model, coders)
        return shares(self._model.state_, self.evidence(clusters, progress).joined(found), groups, weights, level)

    def evidence(self, clusters: NDArray[np.int64] | None = None, progress: Progress | None = None) -> Evidence:
        """Labelled documents and their predictions, kept until the model or the clusters change.

        The texts of the same documents may be read again: :meth:`TopicModel.attach` changes nothing else.
        """
        model = self._model
        key = None if clusters is None else clusters.tobytes()
        kept: tuple[Any, bytes | None, Evidence, Scratch] | None = model.__dict__.get("_gathered")
        if kept is None or not same_but_texts(kept[0], model.state_) or kept[1] != key:
            work = Scratch()
            # The folds share the decision of the fit.
            settings = replace(model._settings(), world="open" if model.state_.open else "closed")
            origin = model.state_.label_origin
            hidden = Hidden(training_corpus(model), settings, reuse_of(model.predictor_, choice=True))
            found = gather(hidden, origin, clusters, folder=work.path, progress=progress)
            kept = model._gathered = (model.state_, key, found, work)  # the folder lives as long as the model
        return kept[2]

    def coders(self, coders: Mapping[str, Any]) -> Frame:
        """Compare coders with the labels, and with each other: precision, recall and agreement per topic.

        A coder is a language model, an old classifier, a dictionary or a second person. Its answers are never counted
        as labels. Only documents to which both sides gave an answer are compared.

        Parameters
        ----------
        coders : mapping of str to answers
            Answers by name. A file or DataFrame has the columns id and topics. Anything else is
            answers to all training documents, in any form of labels (see :meth:`fit`). "(none)" is an answer, and an
            empty one is not.

        Returns
        -------
        table
            One row per coder, reference (the column ``against``; "people" are the labels) and topic. Columns:
            documents, labels (with the topic according to the reference) and predicted (according to the coder).
            Then precision, recall, kappa and alpha, each with its 95 % interval. Precision is the share of the
            coder's yes that the reference confirms, recall the share of the reference's yes that the coder found.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
        >>> model = TopicModel(free_topics=0).fit(texts, ["tea", "coffee"] * 4 + [None] * 4)
        >>> table = model.findings.coders({"gpt": ["tea", "coffee", "coffee", "coffee"] * 3})
        >>> table.select("topic", "documents", "labels", "predicted", "precision", "recall").rows()
        [('coffee', 8, 4, 6, 0.6666666666666666, 1.0), ('tea', 8, 4, 2, 1.0, 0.5)]
        """
        return self._model._table(coder_table(self._model, coders_of(self._model, coders)))

    def disagreements(self, coders: Mapping[str, Any]) -> Frame:
        """Documents where a coder and the labels disagree; answers that the coder was surest of come first.

        Parameters
        ----------
        coders : mapping of str to answers
            As in :meth:`coders`.

        Returns
        -------
        table
            The id, the coder, the topics according to people and to the coder (``answer``), and the start of the text.
        """
        people = people_of(self._model.state_.supervision)
        found = [one for coder in coders_of(self._model, coders) for one in disagreements(coder, people)]
        columns = {
            "coder": [one.coder for one in found],
            "people": ["; ".join(one.theirs) for one in found],
            "answer": ["; ".join(one.ours) for one in found],
        }
        return self._model._documents_table([one.row for one in found], columns)

    def methods(
        self,
        path: str | Path | None = None,
        *,
        evaluation: Evaluation | None = None,
        shares: Prevalence | None = None,
        people: Mapping[str, int] | None = None,
        title: str = "Methods",
    ) -> str:
        """The paper trail: corpus, labels, settings, evaluation, shares, assumptions, versions and hashes.

        All numbers are measured. A note names everything that is missing.

        Parameters
        ----------
        path : str or Path, optional
            A .md file to write.
        evaluation : Evaluation, optional
            Result of :meth:`evaluate`.
        shares : Prevalence, optional
            Result of :meth:`shares`.
        people : mapping of str to int, optional
            Labelled documents per person.
        title : str, default="Methods"
            Title of the page.

        Returns
        -------
        str
            The page as Markdown.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
        >>> model = TopicModel(free_topics=0).fit(texts, ["tea", "coffee"] * 4 + [None] * 4)
        >>> print(model.findings.methods(people={"Anna": 8}))  # doctest: +NORMALIZE_WHITESPACE
        # Methods
        ## Corpus
        - documents: 12
        ...
        """
        if path is not None:
            check_suffix(Path(path), (".md",))
        page = markdown(title, Measured(self._model, evaluation, shares, people or {}).sections())
        if path is not None:
            write_text(path, page)
        return page


# --- reports and maps ---


def breakdowns(model: TopicModel, by: Sequence[str | Groups], progress: Progress | None = None) -> list[Breakdown]:
    """Shares in the whole corpus, and in the groups of each column.

    Parameters
    ----------
    model : TopicModel
        A model with its documents.
    by : sequence of column names or Groups
        ``"date:month"`` names the period of a date. Each column has a part of its own.
    progress : callable, optional
    """
    overall = model.findings.shares(progress=progress)
    found = [Breakdown.of(overall)]
    for column in by:
        shares = model.findings.shares(column, progress=progress)
        found.append(Breakdown.of(shares, overall.sentences))
    return found


def document_map(
    model: TopicModel,
    layout: Layout | None = None,
    progress: Progress | None = None,
    *,
    most: int = maps.MOST,
) -> MappedDocuments:
    """The map of the training documents, with their ids and texts; see `map_layout.obstacle`.

    Parameters
    ----------
    model : TopicModel
        With its documents.
    layout : Layout, optional
        Places of the documents. Default: they are computed.
    progress : callable, optional
        As in `TopicModel.fit`.
    most : int
        Number of documents on the map, at most.
    """
    state, topics = model.state_, model.state_.topics
    labelled = state.supervision.labelled
    rows = layout.rows if layout else maps.chosen_rows(len(topics.ids), labelled, model.random_state, most=most)
    P = np.asarray(state.judged.values[rows])
    judged = state.judge(P.astype(np.float32, copy=False))
    topic = judged.main()
    membership = np.take_along_axis(judged.values, topic[:, None], axis=1)[:, 0]
    found = maps.DocumentMap(
        layout or _layout(model, rows, P, progress),
        (*topics.names, NONE),
        topics.n_known,
        topic,
        membership,
        labelled[rows],
    )
    texts = model._texts()
    return MappedDocuments(found, [topics.ids[i] for i in rows], [texts[i] for i in rows])


def _layout(model: TopicModel, rows: maps.Rows, P: Array, progress: Progress | None) -> Layout:
    """Places by words and memberships."""
    X, seed = model._training_rows().take(rows), model.random_state
    directions = None if model.guide_ is None else model.guide_.features.directions
    latent = maps.latent_semantics(X, directions, seed, model.threads)
    points = maps.features(latent, _predicted(model, X, rows, P))
    places, aspect = maps.lay_out(points, seed, model.threads, progress)
    return Layout(rows, places, aspect, len(model.state_.topics.ids))


def _predicted(model: TopicModel, X: sp.csr_array, rows: maps.Rows, P: Array) -> Array:
    """Memberships as predicted; a membership of 1 by a label would set labelled documents apart from the others."""
    labelled = np.flatnonzero(model.state_.supervision.labelled[rows])
    predicted = np.array(P, dtype=np.float32)
    if len(labelled):
        embeddings = model._training_embeddings()
        own = None if embeddings is None else embeddings[rows[labelled]]
        predicted[labelled] = model.predictor_.all_memberships(X[labelled], own)
    return predicted


# Example documents per topic in a report.
EXAMPLES = 3
# A word is marked in an example if it contributes at least this share of the strongest word's contribution.
MARKED = 0.12


def report_data(
    model: TopicModel,
    *,
    title: str = "Topics",
    evaluation: Evaluation | None = None,
    by: str | Sequence[str] = (),
    shares: Sequence[Breakdown] | None = None,
    map: bool | Layout = False,
    progress: Progress | None = None,
) -> ReportData:
    """The content of a report; see `TopicModel.report`. Shares that are given are not estimated again."""
    columns = [by] if isinstance(by, str) else list(by)
    state, examples = model.state_, {}
    if shares is None:
        random = state.drawn and model.documents_ is not None
        shares = breakdowns(model, columns, progress) if columns or random else []
    offered: list[str] = []
    if model.documents_ is not None:
        named = {column if isinstance(column, str) else column.column for column in columns}
        others = {name: values for name, values in model.documents_.columns.items() if name not in (ORIGIN, *named)}
        offered = [name for name, values in others.items() if likely_groups(name, values) is not None]
        for k, name in enumerate(state.topics.names):
            shown = [(i, model.explain(row=i)) for i in state.topics.top_rows(k, EXAMPLES)]
            examples[k] = [Example(state.topics.ids[i], e.text, e.strengths(name, MARKED)) for i, e in shown]
    mapped, notes = None, ["These are the topics of the last complete iteration: the fit was interrupted."]
    notes = notes if state.interrupted else []
    if isinstance(map, Layout):
        mapped = document_map(model, map)
    elif map and model.documents_ is not None:
        why_not = maps.obstacle(len(state.ids))
        notes += [why_not] if why_not else []
        mapped = None if why_not else document_map(model, progress=progress)
    return ReportData(
        title=title,
        topics=state.topics,
        examples=examples,
        evaluation=evaluation,
        belief=model.belief,
        shares=shares,
        labelled=int(state.supervision.labelled.sum()),
        offered=offered,
        notes=notes,
        documents=mapped,
    )
