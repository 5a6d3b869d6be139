"""Agreement between people: α per topic, κ per topic and pair, disagreements to settle; and coders against people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import numpy as np

from topicsteer.analysis import agreement as analysis
from topicsteer.analysis.agreement import Estimate
from topicsteer.app.workbench import responses
from topicsteer.app.workbench.errors import DECISION, Conflict, Invalid, NotFound, is_person
from topicsteer.app.workbench.project import Topic, read_documents
from topicsteer.app.workbench.session import Decision, LabelSession
from topicsteer.corpora.label_files import read_predictions
from topicsteer.labels.codebook import Lineage
from topicsteer.labels.coder import PEOPLE, Coder, check_coder_name
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.templates import visible
from topicsteer.system.types import Array

if TYPE_CHECKING:
    import polars as pl


# Greatest number of coders of a project.
MOST = 20
# Documents of disagreement that a page lists.
DIFFERING = 200
# Lines of a reader's report in a message.
LINES = 8
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


def agreement_frame(session: LabelSession) -> pl.DataFrame:
    """Return one row per topic and pair of people, and one per topic for all people."""
    import polars as pl

    table, rows = vote_table(session), []
    for k, topic in enumerate(table.topics):
        for measure, names, n, found in [
            ("alpha", table.people, table.common(k), table.alpha(k)),
            *(
                ("kappa", [table.people[a], table.people[b]], table.common(k, (a, b)), table.kappa(k, (a, b)))
                for a, b in table.pairs()
            ),
        ]:
            rows.append((topic.name, measure, "; ".join(names), n, *(found or (None, None, None))))
    schema = {"topic": pl.String, "measure": pl.String, "people": pl.String, "documents": pl.Int64}
    return pl.DataFrame(rows, schema | dict.fromkeys(("value", "low", "high"), pl.Float64), orient="row")


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


# --- coders: their answers in the project file, which are never labels ---


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

    def page(self) -> responses.CoderPage:
        """All coders, compared with the labels of people."""
        with self._session.lock:
            topics = list(self._session.live)
            decisions = sorted((row, d) for row, d in self._session.decisions.items() if d.permitted or d.forbidden)
        rows = [row for row, _ in decisions] if topics else []
        people = _coder(PEOPLE, topics, [(decision.permitted, decision.forbidden) for _, decision in decisions])
        found = self._project.read("SELECT name, source, answers FROM coders ORDER BY name").fetchall()
        return responses.CoderPage(
            [self._summary(name, file, text, topics, rows, people) for name, file, text in found]
        )

    def _summary(
        self, name: str, file: str, text: str, topics: Sequence[Topic], rows: Sequence[int], people: Coder
    ) -> responses.CoderSummary:
        try:
            stored = msgspec.json.decode(text, type=StoredAnswers)
        except (msgspec.MsgspecError, UnicodeError):
            return responses.CoderSummary(name, f"{file} cannot be read: remove it, and add it again", 0, 0, [], 0, [])
        if not rows:
            return responses.CoderSummary(name, file, len(stored.topics), 0, [], 0, [])
        tree, coded = self._session.tree, list[tuple[frozenset[int], frozenset[int]]]()
        for row in rows:
            has, lacks = frozenset[int](), frozenset[int]()
            if row in stored.topics:
                given = {key for key in stored.topics[row] if key in tree.parents}
                has = frozenset(given.union(*(tree.above(key) for key in given)))
                lacks = tree.excluded(has).intersection(stored.keys)  # a topic that was created later is unknown
            coded.append((has, lacks))
        coder = _coder(name, topics, coded, np.array([stored.scores.get(row, np.nan) for row in rows]))
        compared = analysis.compare(coder, people)[: len(topics)]
        differ = analysis.disagreements(coder, people)
        texts = self._project.beginnings([rows[one.row] for one in differ[:DIFFERING]])
        listed = [
            responses.Differing(rows[d.row], *texts[rows[d.row]], list(d.theirs), list(d.ours))
            for d in differ[:DIFFERING]
        ]
        both = int(coder.answers.labelled.sum())
        return responses.CoderSummary(name, file, len(stored.topics), both, compared, len(differ), listed)


def _coder(
    name: str,
    topics: Sequence[Topic],
    states_of: Sequence[tuple[Collection[int], Collection[int]]],
    scores: Array | None = None,
) -> Coder:
    """Return a coder from the keys of the topics that each document has and lacks."""
    place = {topic.key: k for k, topic in enumerate(topics)}
    states = np.full((1 + len(states_of), len(topics)), UNKNOWN, dtype=np.int8)  # the first pattern is all unknown
    for row, (has, lacks) in enumerate(states_of, start=1):
        states[row, [place[key] for key in lacks]] = FORBIDDEN
        states[row, [place[key] for key in has]] = PERMITTED
    patterns, pattern = np.unique(states, axis=0, return_inverse=True)
    names = tuple(topic.name for topic in topics)
    return Coder(name, Supervision(names, pattern.ravel()[1:].astype(np.int32), patterns), scores)
