"""Thresholds from goals: a fitted model predicts its labelled documents again, without their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from topicsteer.analysis.design import Sample, label_values, same_texts
from topicsteer.analysis.goals import Goal, Kind, choose
from topicsteer.backends import as_rows
from topicsteer.guidance.embeddings import Embeddings
from topicsteer.model.crossfit import cross_fit
from topicsteer.model.fitted_model import FittedModel
from topicsteer.model.learning import Task
from topicsteer.model.predictor import reservoir_of
from topicsteer.model.settings import Settings
from topicsteer.system.files import Scratch
from topicsteer.system.lock import one_at_a_time
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import is_missing

# Why estimates may be too high in an open world.
NO_OUTSIDERS = (
    "Some documents seem to have none of the known topics, and none is marked so: label random documents, with (none) "
    "where no topic fits, or fewer predictions may be right."
)


class ModelGoals(FittedModel):
    """Goals of a fitted `TopicModel`, which inherits them."""

    _settings: Callable[[], Settings]

    @one_at_a_time
    def goal(
        self, *, precision: float | None = None, recall: float | None = None, progress: Progress | None = None
    ) -> Goal:
        """The threshold for a wanted precision or recall of predictions, estimated from hidden labels.

        Five further guides are learnt, each without a fifth of the labels. They need the retained documents, which a
        model has unless it was saved for predictions alone. The estimates hold for documents like the training
        documents, if the labelled ones were drawn at random; see `topicsteer.analysis.goals`.

        Parameters
        ----------
        precision, recall : float, optional
            One of them: the share of predicted topics that are right, or the share of topics that are found.
        progress : callable, optional
            As in :meth:`fit`, with the stage "shares".

        Returns
        -------
        Goal
            ``threshold``, the estimated precision and recall, and a ``sentence``. The threshold is chosen so that the
            goal is reached with a certainty of 95 %, as far as the labels permit.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 20
        >>> model = TopicModel(free_topics=0).fit(texts, ["tea", "coffee"] * 20 + [None] * 40)
        >>> model.goal(precision=0.8).reached
        True
        """
        if (precision is None) == (recall is None):
            raise ValueError("pass either precision or recall, such as precision=0.9.")
        kind: Kind = "precision" if recall is None else "recall"
        wanted = precision if recall is None else recall
        hidden, labels = self._hidden_predictions(progress)
        state = self.state_
        others = np.asarray(state.memberships[~state.supervision.labelled, : len(state.codebook)])
        doubt = NO_OUTSIDERS if state.believes_open and not state.supervision.outsiders.any() else ""
        return choose(hidden, labels, others if len(others) else hidden, kind, float(wanted or 0), doubt=doubt)

    def predict(
        self,
        texts: Iterable[str],
        *,
        precision: float | None = None,
        recall: float | None = None,
        embeddings: Embeddings | None = None,
        ancestors: bool = False,
    ) -> list[list[str]]:
        """Known topics of new texts, strongest first; none of empty texts. In a tree these are the deepest topics.

        Parameters
        ----------
        texts : iterable of str
        precision, recall : float, optional
            A goal for the predictions; see :meth:`goal`, which also gives the estimates. Default: memberships at or
            above ``thresholds_``.
        embeddings : array, encoder or callable, optional
            Embeddings of the texts, for a model that was fitted with an array of embeddings.
        ancestors : bool, default=False
            Whether the topics above the deepest ones are returned too.
        """
        goal = None
        if precision is not None or recall is not None:
            goal = self.goal(precision=precision, recall=recall)
        texts = texts if isinstance(texts, str) or hasattr(type(texts), "columns") else list(texts)
        belongs = self._fitted.belongs(*self._read(texts, embeddings))
        found = self.decide(belongs, None if goal is None else goal.threshold, ancestors=ancestors)
        return [[] if is_missing(text) else names for text, names in zip(texts, found, strict=True)]

    def _hidden_predictions(self, progress: Progress | None) -> tuple[Array, Array]:
        """Memberships of the labelled documents without their labels, and the labels; kept until the model changes."""
        kept = self.__dict__.get("_hidden")
        if kept is None or kept[0] is not self.state_:
            self._hidden = kept = (self.state_, *self._predict_hidden(progress))
        return kept[1], kept[2]

    def _predict_hidden(self, progress: Progress | None) -> tuple[Array, Array]:
        state, reservoir, guide = self.state_, reservoir_of(self.state_), self._fitted.guide
        if guide is None or not state.supervision.labelled.any():
            raise ValueError("a goal needs labels and guidance: label some documents, and fit with guidance.")
        if reservoir is None:
            raise ValueError("this model was saved for predictions alone: fit without --final (updatable=True).")
        supervision = replace(state.supervision, pattern=state.supervision.pattern[reservoir.rows])
        encode = None if reservoir.embeddings is None else self.encoder_
        weight = np.asarray(state.weights[reservoir.rows])
        task = Task(
            as_rows(reservoir.X),
            supervision,
            self.codebook,
            self._fitted.vectorizer,
            weight,
            reservoir.embeddings,
            encode,
            directions=guide.directions,
            choice=guide.choice,
        )
        rows = np.flatnonzero(supervision.labelled)
        labels = label_values(supervision, rows)
        sample = Sample(rows, labels, state.label_origin.take(reservoir.rows[rows]), same_texts(task.rows.take(rows)))
        decided = replace(self._settings(), world="open" if state.believes_open else "closed")
        with Scratch() as folder:
            found = cross_fit(decided, task, sample, folder=folder, progress=progress)
        if found is None:
            raise ValueError("there are too few labels to hide some of them: label more documents.")
        return np.asarray(found.labelled[:, :-1]), labels[:, :-1]
