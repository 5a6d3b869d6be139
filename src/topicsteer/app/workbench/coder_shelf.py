"""Coders of a project: their answers in the project file, compared with the labels of people. They are never labels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis import agreement as analysis
from topicsteer.app.workbench.answers import CoderPage, CoderSummary, CoderTopic, Differing, Measured
from topicsteer.app.workbench.event_log import Topic
from topicsteer.app.workbench.project import read_documents
from topicsteer.app.workbench.refusals import Conflict, Invalid, NotFound
from topicsteer.app.workbench.session import LabelSession
from topicsteer.corpora.label_files import read_predictions
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.coder import PEOPLE, Coder, check_coder_name
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision

# Greatest number of coders of a project.
MOST = 20
# Documents of disagreement that a page lists.
LISTED = 200
# Lines of a reader's report in a message.
LINES = 8


class StoredAnswers(msgspec.Struct, frozen=True):
    """Answers as they are stored: keys of the topics that existed, and topics and scores by row."""

    keys: list[int]
    topics: dict[int, list[int]]
    scores: dict[int, float]


class CoderShelf:
    """The coders of a project.

    Parameters
    ----------
    session : LabelSession
        The labels and topics.
    """

    def __init__(self, session: LabelSession) -> None:
        self._session, self._project = session, session.project

    def add(self, path: Path, file: str, name: str) -> str:
        """Read the answers of a coder from a file; a coder of the same name is replaced. Return a sentence about it."""
        try:
            name = check_coder_name(name)
            topics = list(self._session.live)
            if not topics:
                raise Invalid("Create the topics first: the answers of a coder are compared topic by topic.")
            lineage, names = self._lineage(), [topic.name for topic in topics]
            found = read_predictions(path, read_documents(self._project.path), names, topic_of=lineage.topic)
        except ValueError as error:
            raise Invalid(f"{file}: {str(error).replace(path.name, file)}") from error
        key = {topic.name: topic.key for topic in topics}
        rows = {row: names for row, names in enumerate(found.labels) if names}
        stored = StoredAnswers(
            [topic.key for topic in topics],
            {row: [key[one] for one in map(lineage.topic, names) if one in key] for row, names in rows.items()},
            {} if found.scores is None else {row: s for row, s in enumerate(found.scores) if s == s},
        )
        with self._project.transaction() as connection:
            (others,) = connection.execute("SELECT count(*) FROM coders WHERE name != ?", (name,)).fetchone()
            if others >= MOST:
                raise Conflict(f"A project has at most {MOST} coders. Remove one first.")
            at = datetime.now(UTC).isoformat(timespec="seconds")
            values = (name, at, file, msgspec.json.encode(stored).decode())
            connection.execute("INSERT OR REPLACE INTO coders VALUES (?, ?, ?, ?)", values)
        bad = [str(row) for row in found.report.bad_rows]
        more = f" {len(bad):,} rows were not used as they are: {'; '.join(bad[:LINES])}" if bad else ""
        more += f"; and {len(bad) - LINES:,} more" if len(bad) > LINES else "." if bad else ""
        return f"{name} has answers to {len(rows):,} documents. They are not labels.{more}"

    def _lineage(self) -> Lineage:
        """Return the parents of topics by name; answers may be paths if topics form a tree."""
        tree = self._session.tree
        parents = {tree.names[key]: tree.names[above] for key, above in tree.parents.items() if above is not None}
        return Lineage(parents, tree.separator(self._session.settings.path_separator))

    def remove(self, name: str) -> None:
        """Remove a coder and its answers."""
        with self._project.transaction() as connection:
            if not connection.execute("DELETE FROM coders WHERE name = ?", (name,)).rowcount:
                raise NotFound(f"There is no coder {name!r}.")

    def page(self) -> CoderPage:
        """All coders, compared with the labels of people."""
        with self._session.lock:
            topics = list(self._session.live)
            decisions = {row: d for row, d in self._session.decisions.items() if d.permitted or d.forbidden}
        rows, keys = sorted(decisions), [topic.key for topic in topics]
        states = np.full((len(rows), len(keys)), UNKNOWN, dtype=np.int8)
        for i, row in enumerate(rows):
            for k, key in enumerate(keys):
                decision = decisions[row]
                if key in decision.permitted or key in decision.forbidden:
                    states[i, k] = PERMITTED if key in decision.permitted else FORBIDDEN
        people = Coder(PEOPLE, _supervision(states, topics))
        found = self._project.read("SELECT name, at, source, answers FROM coders ORDER BY name").fetchall()
        return CoderPage([self._summary(name, at, file, text, topics, rows, people) for name, at, file, text in found])

    def _summary(
        self, name: str, at: str, file: str, text: str, topics: Sequence[Topic], rows: Sequence[int], people: Coder
    ) -> CoderSummary:
        try:
            stored = msgspec.json.decode(text, type=StoredAnswers)
        except (msgspec.MsgspecError, UnicodeError):
            return CoderSummary(name, f"{file} cannot be read: remove it, and add it again", at, 0, 0, [], 0, [])
        states = np.full((len(rows), len(topics)), UNKNOWN, dtype=np.int8)
        known = np.array([topic.key in stored.keys for topic in topics], dtype=np.bool_)
        tree = self._session.tree
        for i, row in enumerate(rows):
            if row in stored.topics:  # a topic that was created later is unknown
                given = {key for key in stored.topics[row] if key in tree.parents}
                has = frozenset(given.union(*(tree.above(key) for key in given)))
                lacks = tree.excluded(has)
                states[i, known & [topic.key in lacks for topic in topics]] = FORBIDDEN
                states[i, [topic.key in has for topic in topics]] = PERMITTED
        scores = np.array([stored.scores.get(row, np.nan) for row in rows])
        coder = Coder(name, _supervision(states, topics), scores)
        compared = analysis.compare(coder, people)[: len(topics)] if rows and topics else []
        differ = analysis.disagreements(coder, people) if rows else []
        texts = self._project.beginnings([rows[one.row] for one in differ[:LISTED]])
        return CoderSummary(
            name,
            file,
            at,
            len(stored.topics),
            int(coder.answers.labelled.sum()),
            [_topic(topic, one) for topic, one in zip(topics, compared, strict=True)] if compared else [],
            len(differ),
            [
                Differing(rows[one.row], *texts[rows[one.row]], list(one.theirs), list(one.ours), one.score)
                for one in differ[:LISTED]
            ],
        )


def _topic(topic: Topic, one: analysis.TopicComparison) -> CoderTopic:
    measured = (Measured.of(one.precision), Measured.of(one.recall), Measured.of(one.kappa))
    return CoderTopic(topic.key, topic.name, one.documents, one.labels, one.predicted, *measured)


def _supervision(states: NDArray[np.int8], topics: Sequence[Topic]) -> Supervision:
    """States of documents as shared patterns; the first pattern is all unknown."""
    empty = np.full((1, len(topics)), UNKNOWN, dtype=np.int8)
    if not len(topics):
        return Supervision((), np.zeros(len(states), dtype=np.int32), empty)
    patterns, pattern = np.unique(np.vstack([empty, states]), axis=0, return_inverse=True)
    return Supervision(tuple(topic.name for topic in topics), pattern.ravel()[1:].astype(np.int32), patterns)
