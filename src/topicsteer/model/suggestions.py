"""Documents to label next, chosen by a fitted model."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.suggest import Suggestion, suggest, suggest_unknown
from topicsteer.analysis.suggest_ways import (
    FIRST_AT_RANDOM,
    FREE_THRESHOLD,
    WAYS,
    at_random,
    by_doubt,
    least_sure,
    typical,
)
from topicsteer.backends import as_rows
from topicsteer.corpora import Documents
from topicsteer.corpora.options import Names
from topicsteer.labels.origin import CHOSEN, PROBABILITY, Kind
from topicsteer.model.editing import ModelEdits
from topicsteer.model.fitted_model import Table, beginning
from topicsteer.model.naming import EXAMPLE, PROPOSED, TERMS, Namer, Proposal, TopicToName, present_name, propose
from topicsteer.model.sources import documents_of
from topicsteer.nmf.protocols import Rows
from topicsteer.system.safe_text import visible
from topicsteer.system.types import Array


class ModelSuggestions(ModelEdits):
    """Suggestions of a fitted `TopicModel`, which inherits them."""

    def name_free_topics(
        self,
        function: Namer,
        topics: Sequence[Hashable] | None = None,
        *,
        budget: int = 20,
        examples: int = 0,
        yes: bool = False,
    ) -> Table:
        """Let a function propose names of free topics; without ``yes`` nothing is called, and nothing is sent.

        A proposed name ends in "(proposed)" until you rename or adopt the topic.

        Parameters
        ----------
        function : callable
            From a `topicsteer.model.naming.TopicToName` to a name. `topicsteer.model.naming.chat_namer` asks a server
            of language models.
        topics : sequence of topics, optional
            Names or numbers of free topics, or "free 3". Default: all free topics.
        budget : int, default=20
            Largest number of calls; a name that another topic has is asked for once again.
        examples : int, default=0
            Number of documents per topic whose beginnings are shown to the function. Default: terms only.
        yes : bool, default=False
            Whether to call the function and to rename the topics.

        Returns
        -------
        table
            One row per topic: its present name, the proposed name, its terms, a note, and the question as it is sent.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
        >>> model = TopicModel(free_topics=1, topics=["tea"]).fit(texts, ["tea"] + [None] * 11)
        >>> model.name_free_topics(lambda topic: "Coffee", yes=True)["name"].to_list()
        ['Coffee (proposed)']
        >>> model.topics["topic"].to_list()
        ['tea', 'Coffee (proposed)']
        """
        known, names = self.state_.topics.n_known, list(self.state_.topics.names)
        numbers = [self._number(topic) for topic in (range(known, len(names)) if topics is None else topics)]
        for number in numbers:
            if number < known:
                raise ValueError(f"{names[number]!r} is a known topic: names are proposed for free topics only.")
        if examples and self.documents_ is None:
            raise ValueError("examples need the training documents: attach them first, or leave examples out.")
        asked = [self._to_name(number, examples) for number in dict.fromkeys(numbers)]
        found = propose(asked, function, budget) if yes else [Proposal(topic) for topic in asked]
        for proposal in found:
            if proposal.name is not None:
                names[proposal.topic.number] = proposal.name + PROPOSED
        if yes:
            self.rename_topics(names)
        return self._table(
            {
                "topic": [proposal.topic.name for proposal in found],
                "name": [None if proposal.name is None else proposal.name + PROPOSED for proposal in found],
                "terms": [", ".join(proposal.topic.terms) for proposal in found],
                "note": [proposal.note for proposal in found],
                "question": [proposal.topic.question for proposal in found],
            }
        )

    def _to_name(self, number: int, examples: int) -> TopicToName:
        """A free topic, as the function sees it."""
        names = self.state_.topics.names
        taken = tuple(present_name(name) for k, name in enumerate(names) if k != number)
        texts = self.surest(number, examples)["text"] if examples else ()
        shown = tuple(visible(text, EXAMPLE) for text in texts)
        return TopicToName(number, names[number], tuple(self.top_terms(number, TERMS)), shown, taken)

    def suggest(
        self,
        n: int = 20,
        source: object = None,
        *,
        topic: Hashable | None = None,
        how: str = "useful",
        text: Names | None = None,
        id: str | None = None,
    ) -> Table:
        """Choose documents to label next, best first; label some, fit again, and repeat.

        Parameters
        ----------
        n : int, default=20
            Number of documents; near duplicates are skipped.
        source : list of str, Documents, DataFrame or path, optional
            Documents to choose from. Default: the unlabelled training documents.
        topic : str, optional
            A topic: the least sure documents among those given it. "free 3" is the third free topic.
        how : {"useful", "typical", "few", "groups", "random", "prevalence"}, default="useful"
            "useful": labels from which the model learns most. "typical": the surest documents of each topic in turn.
            "few": the same for topics without enough labels. "groups": large groups without a topic. "random".
            "prevalence": for shares of topics; at random first, then by doubt with known probability.
        text, id : str, optional
            Column names of a table.

        Returns
        -------
        table
            The id, the start of the text, the likely topics, the reason, and two columns for :meth:`prevalence`:
            ``chosen`` and ``probability``. Keep them in the table of labels.
        """
        if how not in WAYS:
            raise ValueError(f"how is {how!r}: expected one of {', '.join(map(repr, WAYS))}.")
        if topic is not None and how != "useful":
            raise ValueError(f"choose either the topic {topic!r} or how={how!r}: a topic has its own order.")
        k = None if topic is None else self._number(topic)
        free, known = k is not None and not self.result_.known(k), len(self.codebook)
        old = source is None
        if old:
            documents = Documents(self.state_.topics.ids, self._texts())
        else:
            documents = documents_of(source, None, text, id, like=self._columns)
            old = self.accepts(documents)
        if old:
            X = self._rows_of(documents.texts)
            belongs = self.result_.all_memberships(self.supervision_.outsiders) if free else self.memberships_
        else:
            matrix, embeddings = self._read(documents.texts)
            X, find = as_rows(matrix), self._fitted.all_memberships if free else self._fitted.belongs
            belongs = find(matrix, embeddings)[:, : None if free else known]
        if k is None and self.result_.found:  # nobody can label a free topic inside another
            belongs = np.array(belongs)
            belongs[:, list(self.result_.found)] = 0
        # Shares are of all documents, also of those without terms.
        filled = (X.sizes > 0) | (how in ("prevalence", "random"))
        rows = np.flatnonzero(filled & ~(self.state_.supervision.labelled if old else np.False_))
        names = self.state_.topics.names
        if how == "prevalence" and self._starts_at_random(old):
            how = "random"
        chosen = self._choose(X, belongs, rows, n, k, how, old)
        return self._table(
            {
                "id": [documents.ids[c.row] for c in chosen],
                "text": [beginning(documents.texts[c.row]) for c in chosen],
                "topics": ["; ".join(names[k] for k in c.topics) for c in chosen],
                "why": [c.why for c in chosen],
                CHOSEN: [self._chosen_by(how)] * len(chosen),
                PROBABILITY: [c.probability for c in chosen],
            }
        )

    def _choose(
        self, X: Rows, belongs: Array, rows: NDArray[np.intp], n: int, k: int | None, how: str, old: bool
    ) -> list[Suggestion]:
        """Choose n of the rows: for the topic k, or in one of the ways."""
        names = self.state_.topics.names
        if k is not None:
            threshold = float(self.thresholds_[k]) if self.result_.known(k) else FREE_THRESHOLD
            return least_sure(belongs, threshold, k, names[k], rows)[:n]
        if how in ("typical", "few"):
            return typical(belongs, self.supervision_.counts, names, rows, only_few=how == "few")[:n]
        if how == "groups":
            return self._in_groups(rows, old)[:n]
        if how == "random":
            return at_random(rows, n, self.random_state)
        if how == "prevalence":
            rng = np.random.default_rng([self.random_state, int(self.supervision_.labelled.sum())])
            return by_doubt(belongs, rows, n, rng)
        return suggest(
            lambda rows: self._fitted.positions(X.take(rows)),
            belongs,
            self.state_.supervision,
            self._fitted.seen,
            n,
            rows=rows,
            seed=self.random_state,
        )

    def _starts_at_random(self, old: bool) -> bool:
        """Whether documents for shares are drawn at random: a draw by doubt needs some labels drawn by chance."""
        if not old:
            raise ValueError('how="prevalence" needs the training documents of the model.')
        kind = self.state_.label_origin.kind[self.supervision_.labelled]
        return int(np.isin(kind, (Kind.RANDOM, Kind.DOUBT)).sum() or (not kind.any()) * len(kind)) < FIRST_AT_RANDOM

    def _chosen_by(self, how: str) -> str:
        """How documents were chosen, for the column of a table of labels; rounds are numbered."""
        name = {"prevalence": "doubt", "random": "random"}.get(how, "suggested")
        last = self.state_.label_origin.rounds
        return f"{name} {last + 1}" if last else name

    def _in_groups(self, rows: NDArray[np.intp], old: bool) -> list[Suggestion]:
        """Documents of the largest free topics, in turn."""
        known, free = len(self.codebook), len(self.state_.free_names)
        if not old or not free:
            raise ValueError('how="groups" needs free topics and the training documents of the model.')
        P = self.result_.all_memberships(self.supervision_.outsiders)[:, known : known + free]
        others = np.ones(len(P), dtype=np.bool_)
        others[rows] = False
        return suggest_unknown(P, self.state_.free_names, (P > FREE_THRESHOLD).sum(axis=0).tolist(), others)
