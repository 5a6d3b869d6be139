"""Coders of a project: their answers in the project file, compared with the labels of people. They are never labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from topicsteer.analysis import agreement as analysis
from topicsteer.app.workbench.answers import CoderPage, CoderSummary, Differing
from topicsteer.app.workbench.project import Topic, read_documents
from topicsteer.app.workbench.refusals import Conflict, Invalid, NotFound
from topicsteer.app.workbench.session import LabelSession
from topicsteer.corpora.coder_files import read_predictions
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.coder import PEOPLE, Coder, check_coder_name
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.types import Array

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
            decisions = sorted((row, d) for row, d in self._session.decisions.items() if d.permitted or d.forbidden)
        rows = [row for row, _ in decisions] if topics else []
        people = _coder(PEOPLE, topics, [(decision.permitted, decision.forbidden) for _, decision in decisions])
        found = self._project.read("SELECT name, source, answers FROM coders ORDER BY name").fetchall()
        return CoderPage([self._summary(name, file, text, topics, rows, people) for name, file, text in found])

    def _summary(
        self, name: str, file: str, text: str, topics: Sequence[Topic], rows: Sequence[int], people: Coder
    ) -> CoderSummary:
        try:
            stored = msgspec.json.decode(text, type=StoredAnswers)
        except (msgspec.MsgspecError, UnicodeError):
            return CoderSummary(name, f"{file} cannot be read: remove it, and add it again", 0, 0, [], 0, [])
        if not rows:
            return CoderSummary(name, file, len(stored.topics), 0, [], 0, [])
        tree, answers = self._session.tree, list[tuple[frozenset[int], frozenset[int]]]()
        for row in rows:
            has, lacks = frozenset[int](), frozenset[int]()
            if row in stored.topics:
                given = {key for key in stored.topics[row] if key in tree.parents}
                has = frozenset(given.union(*(tree.above(key) for key in given)))
                lacks = tree.excluded(has).intersection(stored.keys)  # a topic that was created later is unknown
            answers.append((has, lacks))
        coder = _coder(name, topics, answers, np.array([stored.scores.get(row, np.nan) for row in rows]))
        compared = analysis.compare(coder, people)[: len(topics)]
        differ = analysis.disagreements(coder, people)
        texts = self._project.beginnings([rows[one.row] for one in differ[:LISTED]])
        listed = [Differing(rows[d.row], *texts[rows[d.row]], list(d.theirs), list(d.ours)) for d in differ[:LISTED]]
        both = int(coder.answers.labelled.sum())
        return CoderSummary(name, file, len(stored.topics), both, compared, len(differ), listed)


def _coder(
    name: str,
    topics: Sequence[Topic],
    answers: Sequence[tuple[Collection[int], Collection[int]]],
    scores: Array | None = None,
) -> Coder:
    """Return a coder from the keys of the topics that each document has and lacks."""
    place = {topic.key: k for k, topic in enumerate(topics)}
    states = np.full((1 + len(answers), len(topics)), UNKNOWN, dtype=np.int8)  # the first pattern is all unknown
    for row, (has, lacks) in enumerate(answers, start=1):
        states[row, [place[key] for key in lacks]] = FORBIDDEN
        states[row, [place[key] for key in has]] = PERMITTED
    patterns, pattern = np.unique(states, axis=0, return_inverse=True)
    names = tuple(topic.name for topic in topics)
    return Coder(name, Supervision(names, pattern.ravel()[1:].astype(np.int32), patterns), scores)
