"""The content of reports and maps of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis import map_layout as maps
from topicsteer.analysis.evaluation import Evaluation
from topicsteer.analysis.groups import Groups
from topicsteer.analysis.label_advice import label_effects
from topicsteer.analysis.map_layout import Layout
from topicsteer.labels.codebook import topic_columns
from topicsteer.report import page, workbook
from topicsteer.report.breakdown import Breakdown
from topicsteer.report.map_page import MappedDocuments
from topicsteer.report.page import Example, ReportData
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import NONE

if TYPE_CHECKING:
    from topicsteer.model.topic_model import TopicModel


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
    overall = model.findings.prevalence(progress=progress)
    found = [Breakdown.of(overall)]
    for column in by:
        shares = model.findings.prevalence(column, progress=progress)
        found.append(Breakdown.of(shares, overall.sentences))
    return found


def document_map(
    model: TopicModel,
    layout: Layout | None = None,
    progress: Progress | None = None,
    *,
    most: int = maps.MOST,
) -> MappedDocuments:
    """The map of the training documents, with their ids and texts.

    Parameters
    ----------
    model : TopicModel
        Without its documents, the map has no texts, and documents lie around their topics.
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
    documents = model.documents_
    texts = None if documents is None else [documents.texts[i] for i in rows]
    return MappedDocuments(found, [topics.ids[i] for i in rows], texts)


def _layout(model: TopicModel, rows: maps.Rows, P: Array, progress: Progress | None) -> Layout:
    """Places by words and memberships; around the topics if there are no texts, few documents or no umap-learn."""
    n, seed = len(model.state_.topics.ids), model.random_state
    if model.documents_ is not None and maps.can_lay_out() and len(rows) >= maps.FEWEST:
        X = model._terms(rows)
        directions = None if model.guide_ is None else model.guide_.directions
        latent = maps.latent_semantics(X, directions, seed, model.threads)
        points = maps.features(latent, _predicted(model, X, rows, P))
        places, aspect = maps.lay_out(points, seed, model.threads, progress)
        return Layout(rows, places, aspect, "umap", n)
    return Layout(rows, maps.around_topics(P, model.state_.topics.positions, seed), 1.6, "topics", n)


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
    shares: bool = False,
    map: bool | Layout = False,
    progress: Progress | None = None,
) -> ReportData:
    """The content of a report; see `TopicModel.report`."""
    columns = [by] if isinstance(by, str) else list(by)
    parts = breakdowns(model, columns, progress) if shares or columns else []
    state, estimator, examples = model.state_, model.estimator_, {}
    if model.documents_ is not None:
        for k, name in enumerate(state.topics.names):
            shown = [(i, model.explain(row=i)) for i in state.topics.top_rows(k, EXAMPLES)]
            examples[k] = [Example(state.topics.ids[i], e.text, e.strengths(name, MARKED)) for i, e in shown]
    settings = {"fingerprint of the documents": state.fingerprint, "world": _world(model)}
    if model.state_.interrupted:
        settings["unfinished"] = "the fit was interrupted"
    settings |= {k: v for k, v in estimator.get_params().items() if k not in ("init", "topics")}
    return ReportData(
        title=title,
        topics=state.topics,
        examples=examples,
        guidance=label_effects(state.topics, state.supervision, state.profiles),
        evaluation=evaluation,
        settings=settings | model.vectorizer_.get_params(),
        belief=model.belief,
        groups=[len(group) for group in state.free_groups],
        codebook=topic_columns(model.codebook),
        shares=parts,
        labelled=int(state.supervision.labelled.sum()),
        documents=document_map(model, None if isinstance(map, bool) else map, progress) if map else None,
    )


def write_report(
    model: TopicModel,
    path: str | Path,
    *,
    shares: bool | None = None,
    map: bool | Layout = True,
    **content: Any,
) -> None:
    """Write a page or a workbook, by the suffix of the path; see `TopicModel.report`."""
    excel = Path(path).suffix == ".xlsx"
    if shares is None:
        shares = excel and model.documents_ is not None
    data = report_data(model, shares=shares, map=False if excel else map, **content)
    (workbook.write if excel else page.write)(data, path)


def _world(model: TopicModel) -> str:
    """The world, and who decided it."""
    declared = model.state_.parameters.get("world")
    believed = "open" if model.state_.believes_open else "closed"
    return f"{declared}, as declared" if declared else f"{believed}, not declared"
