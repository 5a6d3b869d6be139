"""Agreement between people: α per topic, κ per topic and pair, and disagreements to settle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from topicsteer.analysis import agreement as analysis
from topicsteer.analysis.agreement import Estimate
from topicsteer.app.workbench import responses
from topicsteer.app.workbench.errors import DECISION, is_person
from topicsteer.app.workbench.project import Topic
from topicsteer.app.workbench.session import Decision, LabelSession
from topicsteer.system.templates import visible
from topicsteer.system.types import Array

# Disagreements in one answer.
LISTED = 50
# Characters of a document in each disagreement.
SHOWN = 6_000


class VoteTable(NamedTuple):
    """Votes on the documents that several people labelled, 1 or 0, and NaN for none: documents × people × topics.

    ``documents`` is the number of documents that each person labelled.
    """

    topics: list[Topic]
    people: list[str]
    documents: Counter[str]
    votes: Array

    def alpha(self, topic: int) -> Estimate | None:
        """Krippendorff's α of a topic over all people; None if it is not defined."""
        return self._measure("alpha", topic, range(len(self.people)))

    def kappa(self, topic: int, pair: tuple[int, int]) -> Estimate | None:
        """Cohen's κ of a topic for two people; None if it is not defined."""
        return self._measure("kappa", topic, pair)

    def _measure(self, measure: Literal["alpha", "kappa"], topic: int, people: Sequence[int]) -> Estimate | None:
        given = self.votes[:, list(people), topic]
        if len(people) < 2 or not len(given):
            return None
        found = analysis.agreement(given, measure)
        return None if np.isnan(found.value) else found

    def common(self, topic: int, people: Sequence[int] | None = None) -> int:
        """The number of documents with at least two votes on a topic."""
        some = self.votes[:, :, topic] if people is None else self.votes[:, list(people), topic]
        return int(((~np.isnan(some)).sum(axis=1) >= 2).sum())

    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of people with a common document, most common documents first."""
        every = combinations(range(len(self.people)), 2)
        return sorted(filter(self.shared, every), key=self.shared, reverse=True)

    def shared(self, pair: tuple[int, int]) -> int:
        """The number of documents that two people labelled."""
        given = np.asarray((~np.isnan(self.votes)).any(axis=2))
        return int(given[:, list(pair)].all(axis=1).sum())


def vote_table(session: LabelSession) -> VoteTable:
    """Collect the votes of people; files and decisions are no people."""
    with session.lock:
        topics, rows = session.live, [row for row, d in session.decisions.items() if any(d)]
        votes = [{p: own for p, own in session.votes_of(row).items() if is_person(p)} for row in rows]
    documents = Counter(person for people in votes for person in people)
    people, several = sorted(documents), [some for some in votes if len(some) > 1]
    table = np.full((len(several), len(people), len(topics)), np.nan)
    place = {topic.key: k for k, topic in enumerate(topics)}
    for i, some in enumerate(several):
        for person, own in some.items():
            table[i, people.index(person), [place[key] for key in own]] = list(own.values())
    return VoteTable(topics, people, documents, table)


def agreement_page(session: LabelSession, first: str = "", second: str = "") -> responses.AgreementPage:
    """Return α of every topic, and κ of every topic for one pair of people.

    Parameters
    ----------
    session : LabelSession
        The labels.
    first, second : str
        The pair. Default: the two with the most common documents.
    """
    table = vote_table(session)
    names, pairs = table.people, table.pairs()
    pair = next((p for p in pairs if {names[p[0]], names[p[1]]} == {first, second}), pairs[0] if pairs else None)
    overlap = [len(session.labellers(row)) for row in session.overlap.rows(session.settings.overlap)]
    return responses.AgreementPage(
        {person: table.documents[person] for person in names},
        [(names[a], names[b], table.shared((a, b))) for a, b in pairs],
        None if pair is None else pairs.index(pair),
        [
            responses.TopicAgreement(
                topic.key,
                topic.name,
                table.common(k),
                table.alpha(k),
                0 if pair is None else table.common(k, pair),
                None if pair is None else table.kappa(k, pair),
            )
            for k, topic in enumerate(table.topics)
        ],
        len(overlap),
        sum(n >= session.settings.overlap_people for n in overlap),
        int(session.differing.sum()),
        sum(DECISION in session.votes_of(row) for row in list(session.decisions)),
    )


def disagreements(session: LabelSession, start: int = 0) -> responses.DisagreementPage:
    """Return the open disagreements, topic by topic in the order of the topics, from a position on."""
    with session.lock:
        topics = {topic.key: k for k, topic in enumerate(session.live)}
        rows = np.flatnonzero(session.differing).tolist()
        open_ones = [(key, row) for row in rows for key in session.decisions.get(row, Decision()).differing]
        open_ones.sort(key=lambda one: (topics[one[0]], one[1]))
        listed = open_ones[start : start + LISTED]
        votes = {row: session.votes_of(row) for _, row in listed}
    found, texts = [], {row: session.project.document(row) for row in votes}
    for key, row in listed:
        name, text, _ = texts[row]
        own = {person: vote[key] for person, vote in votes[row].items() if key in vote and person != DECISION}
        yes, no = ([person for person, has in own.items() if has is side] for side in (True, False))
        shown, notes = visible(text[:SHOWN], 8 * SHOWN), session.notes_of(row)
        found.append(responses.Disagreement(row, key, visible(name, 200), shown, len(text) > SHOWN, yes, no, notes))
    return responses.DisagreementPage(found, len(open_ones))
