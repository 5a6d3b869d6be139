"""Read the answers of a coder: a table with an id, topics and, optionally, a score per document."""

from __future__ import annotations

import difflib
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from topicsteer.corpora.columns import Columns, check_labels
from topicsteer.corpora.documents import BadRow, Documents, OnError, ReadError, ReadOptions, ReadReport
from topicsteer.corpora.label_files import LabelRecord, match_records, plain_rows
from topicsteer.corpora.readers.formats import load_table
from topicsteer.system.templates import visible
from topicsteer.system.values import NONE, is_missing

# Common names of the answers of a program; the common names of labels are accepted too.
ANSWER_NAMES = ("predicted", "prediction", "predictions", "code", "codes")
# Common names of the scores.
SCORE_NAMES = ("score", "confidence", "probability")
# Greatest number of names for which a similar topic is looked up.
HINTS = 200
# Greatest number of characters of a cell in a message.
SHOWN = 60


@dataclass(frozen=True)
class Predictions:
    """Answers in the order of the documents.

    Parameters
    ----------
    labels : list of lists of str
        Topics per document; ``["(none)"]`` = none of the topics, ``[]`` = no answer.
    scores : list of float, or None
        NaN without a score; None if no answer has one.
    report : ReadReport
        Guesses, and one line per row that was not used as it is.
    """

    labels: list[list[str]]
    scores: list[float] | None
    report: ReadReport


def read_predictions(
    source: object,
    documents: Documents,
    topics: Sequence[Hashable],
    *,
    on_error: OnError = "skip",
    topic_of: Callable[[Hashable], Hashable] = str,
) -> Predictions:
    """Read the answers of a coder to these documents.

    Rows are matched by id, or by text as in `attach_labels`. Every row that cannot be used as it is gets a line in the
    report: unknown ids, topics outside the codebook, further answers to a document, rows without an answer, scores
    that are no numbers from 0 to 1.

    Parameters
    ----------
    source : path or table
        As in `read_table`.
    documents : Documents
        The documents of the model. Their column of ids may hold the ids of the answers too.
    topics : sequence of str
        The known topics. An answer outside them is none of them.
    on_error : {"skip", "raise"}, default="skip"
        Leave out what cannot be used, or raise one error that lists it.
    topic_of : callable, optional
        From an answer to the name of its topic, such as `Lineage.topic` for paths through a tree.

    Returns
    -------
    Predictions

    Raises
    ------
    ReadError
        If the file cannot be read, or has no answer to any of these documents.

    Examples
    --------
    >>> documents = Documents(["a", "b"], ["rain at noon", "shares fell"])
    >>> found = read_predictions([{"id": "b", "topics": "money; sprot"}, {"id": "c", "topics": "sport"}],
    ...                          documents, ["money", "sport"])
    >>> found.labels
    [[], ['money']]
    >>> print(found.report)
    list: id is column 'id'
    list: labels are column 'topics', separated by ';'
    list: 2 bad rows, not used as written
      row 1: 'sprot' is not a topic of the model and counts as none of them; did you mean 'sport'?
      row 2: no document has the id 'c': use the ids of the documents
    """
    like = None if documents.reading is None else ReadOptions(id=documents.reading.id or None)
    options = ReadOptions(forbidden=False, on_error=on_error, like=like)
    table = load_table(source, options)
    name = Path(table.source).name or table.source
    usual = {name.strip().lower(): name for name in reversed(list(table.columns))}
    answers = next((usual[name] for name in ANSWER_NAMES if name in usual), None)
    columns = Columns([table], replace(options, labels=answers))
    score_column = next((usual[name] for name in SCORE_NAMES if name in usual), None)
    columns.free.pop(score_column or "", None)
    read, scores = plain_rows(table, columns), table.column(score_column)
    problems = defaultdict[str, list[str]](list)
    problems |= {f"{table.unit} {row}": [text] for row, text in table.problems.items()}
    records, sure = list[LabelRecord](), list[float]()
    for row, number in enumerate(table.places):
        place = f"{table.unit} {number}"
        try:
            ((key, text, answer, *_),) = read(row)
            has = list(map(str, answer))
            if key is None and text is None:
                raise ValueError("neither an id nor a text: write the id of the document")
            if not has:
                raise ValueError(f"no answer: write {NONE} for a document that has none of the topics")
            check_labels(has, [])
        except ValueError as error:
            problems[place].append(str(error))
            continue
        records.append(LabelRecord(place, key, text, has, []))
        sure.append(_score(scores[row], problems[place]))
    labels, found_scores = _answers(records, sure, documents, list(map(str, topics)), problems, topic_of)
    # Rows that could not be read at all are among the problems, but not among the places of the table.
    in_order = sorted(problems.items(), key=lambda problem: int(problem[0].rpartition(" ")[2]))
    bad = [BadRow(place, "; ".join(texts)) for place, texts in in_order if texts]
    report = ReadReport(name, tuple(columns.guesses), tuple(bad), treatment="not used as written")
    report.raise_for_bad_rows(on_error)
    if not any(labels):
        raise ReadError(f"{name}: has no answer to any of these documents\n{report}".rstrip())
    return Predictions(labels, found_scores, report)


def _answers(
    records: Sequence[LabelRecord],
    sure: Sequence[float],
    documents: Documents,
    topics: Sequence[str],
    problems: defaultdict[str, list[str]],
    topic_of: Callable[[Hashable], Hashable],
) -> tuple[list[list[str]], list[float] | None]:
    """Answers and scores per document; what cannot be used goes into ``problems``."""
    names = set(topics)
    labels: list[list[str]] = [[] for _ in range(len(documents))]
    scores = [math.nan] * len(documents)
    first: dict[int, str] = {}
    hints: dict[str, str] = {}
    for record, score, rows in zip(records, sure, match_records(documents, records), strict=True):
        notes = problems[record.place]
        if not rows:
            key = f"id {_short(record.id)}: use the ids of the documents" if record.text is None else "text"
            notes.append(f"no document has the {key}")
        again = [row for row in rows if row in first]
        if again:
            notes.append(
                f"a further answer to the document of {first[again[0]]}, which counts: write several topics in one "
                "cell, and pass further runs as coders of their own"
            )
        outside = [name for name in record.labels if str(topic_of(name)) not in names and name != NONE]
        for name in outside if len(again) < len(rows) else ():
            if name not in hints:
                near = difflib.get_close_matches(name, topics, n=1) if len(hints) < HINTS else []
                hints[name] = f"; did you mean {near[0]!r}?" if near else ""
            notes.append(f"{_short(name)} is not a topic of the model and counts as none of them{hints[name]}")
        for row in rows:
            if row not in first:
                first[row] = record.place
                labels[row] = [name for name in record.labels if str(topic_of(name)) in names] or [NONE]
                scores[row] = score
    return labels, None if all(map(math.isnan, scores)) else scores


def _score(cell: object, notes: list[str]) -> float:
    """The score of a row; NaN if it has none."""
    if is_missing(cell):
        return math.nan
    try:
        value = float(cell) if isinstance(cell, str | int | float) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not 0 <= value <= 1:
        notes.append(f"the score is {_short(cell)}: expected a number from 0 to 1, so it is ignored")
        return math.nan
    return value


def _short(value: object) -> str:
    """A value in quotes, cut to a length that fits into a message."""
    return visible(repr(value), SHOWN)
