"""Findings of a fitted model: how wrong a coder is, and the paper trail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topicsteer.analysis.evaluate import Evaluation
from topicsteer.model import coders as coding
from topicsteer.model.fitted_model import Table, beginning
from topicsteer.model.methods import Evidence, methods_page
from topicsteer.model.shares import ModelShares
from topicsteer.report.methods import html, markdown
from topicsteer.report.tables import columns
from topicsteer.system.files import write_text
from topicsteer.system.types import Progress
from topicsteer.system.values import NONE


class Findings(ModelShares):
    """Findings of a fitted `TopicModel`; `TopicModel` inherits them."""

    def coders(self, coders: Mapping[str, Any]) -> Table:
        """Compare coders with the labels, and with each other: precision, recall and agreement per topic.

        A coder is a language model, an old classifier, a dictionary or a second person. Its answers are never counted
        as labels. Only documents to which both sides gave an answer are compared.

        Parameters
        ----------
        coders : mapping of str to answers
            Answers by name. A file or DataFrame has the columns id, topics and, optionally, score. Anything else is
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
        >>> table = model.coders({"gpt": ["tea", "coffee", "coffee", "coffee"] * 3})
        >>> table.select("topic", "documents", "labels", "predicted", "precision", "recall").rows()
        [('coffee', 8, 4, 6, 0.6666666666666666, 1.0), ('tea', 8, 4, 2, 1.0, 0.5)]
        """
        return self._table(coding.coder_table(self, coding.coders_of(self, coders)))

    def disagreements(self, coders: Mapping[str, Any]) -> Table:
        """Documents where a coder and the labels disagree; answers that the coder was surest of come first.

        Parameters
        ----------
        coders : mapping of str to answers
            As in :meth:`coders`.

        Returns
        -------
        table
            The id, the coder, the topics according to people and to the coder (``answer``), its score, and the start of
            the text.
        """
        return self._table(coding.disagreement_table(self, coders, beginning))

    def memberships_with(self, coders: Mapping[str, Any], *, progress: Progress | None = None) -> Table:
        """Memberships of the training documents, with the answers of coders as a second opinion.

        Labels decide how much an answer counts, topic by topic: a guide predicts each labelled document without its
        labels, and the answers must improve these predictions. Otherwise nothing changes, with a warning. Documents
        without an answer keep their memberships, and so do labelled documents. The model itself does not change.

        Parameters
        ----------
        coders : mapping of str to answers
            As in :meth:`coders`.
        progress : callable, optional
            As in :meth:`fit`, with the stage "shares".

        Returns
        -------
        table
            As in :meth:`memberships`.
        """
        found = coding.memberships_with(self, coding.coders_of(self, coders), self._evidence(None, progress))
        topics = self.result_
        return self._table(columns(topics.ids, (*topics.names, NONE), found))

    def methods(
        self,
        path: str | Path | None = None,
        *,
        coders: Mapping[str, Any] | None = None,
        evaluation: Evaluation | None = None,
        shares: Any = None,
        people: Mapping[str, int] | None = None,
        title: str = "Methods",
        as_html: bool = False,
    ) -> str:
        """The paper trail: one paragraph to paste, and the numbers behind it.

        It has the corpus, the labels, agreement, settings, evaluation, shares, assumptions, versions and hashes. All
        numbers are measured. A note names everything that is missing.

        Parameters
        ----------
        path : str or Path, optional
            A file to write: .md or .html.
        coders : mapping of str to answers, optional
            As in :meth:`coders`.
        evaluation : Evaluation, optional
            Result of :meth:`evaluate`.
        shares : Prevalence, optional
            Result of :meth:`prevalence`.
        people : mapping of str to int, optional
            Labelled documents per person.
        title : str, default="Methods"
            Title of the page.
        as_html : bool, default=False
            Whether to return HTML without writing a file.

        Returns
        -------
        str
            The page as Markdown, or as HTML if the path ends in .html.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
        >>> model = TopicModel(free_topics=0).fit(texts, ["tea", "coffee"] * 4 + [None] * 4)
        >>> print(model.methods(people={"Anna": 8}).splitlines()[2])
        We fitted a topic model with supervision by labels (topicsteer ...) to 12 documents. ...
        """
        suffix = "" if path is None else Path(path).suffix.lower()
        if path is not None and suffix not in (".md", ".html"):
            raise ValueError(f"{path}: the name must end in .md or .html.")
        found = [] if coders is None else coding.coders_of(self, coders)
        evidence = Evidence(
            evaluation=evaluation,
            shares={} if shares is None else shares.table(),
            assumptions=() if shares is None else tuple(shares.sentences),
            coders=found,
            agreement=coding.coder_table(self, found) if found else {},
            people=people or {},
        )
        page = (html if as_html or suffix == ".html" else markdown)(methods_page(self, evidence, title))
        if path is not None:
            write_text(path, page)
        return page
