"""Shares of the topics of a model for a report: overall, by group and over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.groups import Groups
from topicsteer.analysis.suggest_ways import FREE_THRESHOLD
from topicsteer.analysis.term_trends import term_trends
from topicsteer.guidance.apply import accepted
from topicsteer.model.state import FittedState
from topicsteer.report.breakdown import Breakdown
from topicsteer.system.types import Progress

if TYPE_CHECKING:
    from topicsteer.model.fitted_model import FittedModel


def breakdowns(model: FittedModel, by: Sequence[str | Groups], progress: Progress | None = None) -> list[Breakdown]:
    """Shares in the whole corpus, and in the groups of each column.

    Parameters
    ----------
    model : FittedModel
        A model with its documents.
    by : sequence of column names or Groups
        ``"date:month"`` names the period of a date. Each column has a part of its own.
    progress : callable, optional
    """
    overall = model.prevalence(progress=progress)
    found = [Breakdown.of(overall)]
    for column in by:
        shares = model.prevalence(column, progress=progress)
        groups = shares.by
        terms = None if groups is None or groups.period is None else _term_trends(model, groups)
        found.append(Breakdown.of(shares, terms=terms, known=overall.sentences))
    return found


def _term_trends(model: FittedModel, groups: Groups) -> dict[str, list[Any]]:
    """Terms of topics that rise or fall over the periods."""
    topics = model.state_.topics
    periods = np.where(groups.codes < len(groups.starts), groups.codes, -1)  # not dated
    has = documents_with_topics(model.state_)
    return term_trends(model.training_rows, has, periods, topics.H, topics.vocabulary, topics.names)


def documents_with_topics(state: FittedState) -> NDArray[np.bool_]:
    """Whether each document has each topic: at least the threshold of a known topic, or a sure part of a free one."""
    known = accepted(np.asarray(state.memberships), state.thresholds)
    free = state.topics.all_memberships(state.supervision.outsiders)[:, len(state.codebook) : -1]
    return np.hstack([known, np.asarray(free > FREE_THRESHOLD)])
