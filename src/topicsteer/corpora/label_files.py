"""Read label files: tables, such as the exports of doccano, and the answers of a coder."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from topicsteer.corpora.columns import (
    LABEL_FILE_ID_NAMES,
    Columns,
    check_labels,
    read_id,
)
from topicsteer.corpora.documents import BadRow, Documents, ReadError, ReadKeywords, ReadOptions, ReadReport
from topicsteer.corpora.readers import Table, load_table
from topicsteer.system.templates import guarded, unguarded, visible
from topicsteer.system.values import CHOSEN, NONE, PROBABILITY, UNSURE, check_none, fold, is_missing


@dataclass(frozen=True)
class LabelRecord:
    """The labels of one document in a label file.

    Parameters
    ----------
    place : str
        Its line or row in the label file.
    id : str, int or None
        The document's id, if the file has one.
    text : str or None
        The document's text, if the file has it.
    labels, forbidden : list of str
        The topics that the document has, and the topics that it does not have.
    complete : bool, default=True
        False if the file marks other topics of the document as open.
    people : tuple of str
        The people who gave these labels, if the file names them.
    draw : tuple of two values
        The columns ``chosen`` and ``probability``, which `prevalence` needs.

    Examples
    --------
    >>> LabelRecord("line 2", "a", None, ["weather"], []).labels
    ['weather']
    """

    place: str
    id: Hashable | None
    text: str | None
    labels: list[str]
    forbidden: list[str]
    complete: bool = True
    people: tuple[str, ...] = ()
    draw: tuple[object, object] = (None, None)


@dataclass(frozen=True)
class Labels:
    """The records of a label file, in its order.

    Parameters
    ----------
    records : sequence of LabelRecord
        The records; a document may have several.
    report : ReadReport, optional
        Guesses and bad rows.
    separator : str, optional
        Separator of the levels in labels, if they are paths through a tree.
    empty : sequence of str
        Ids or places of the rows without a label, which are no records.

    Examples
    --------
    >>> len(Labels([LabelRecord("line 2", "a", None, ["weather"], [])]))
    1
    """

    records: Sequence[LabelRecord]
    report: ReadReport = field(default_factory=ReadReport, compare=False)
    separator: str | None = None
    empty: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.records)


def attach_labels(documents: Documents, labels: Labels) -> Documents:
    """Add the labels of a label file to documents.

    Records are matched by id, or by text if they have one (spaces are ignored). Annotation tools use ids of their own.
    So if records have both, ids are used only if most of the texts begin alike. If a topic is both permitted and
    forbidden for a document, the last record counts. A document with other labels of its own keeps both, and the report
    lists it. A record that brings "(none)" together with other labels of its document is left out and reported.

    Parameters
    ----------
    documents : Documents
        The documents; labels that they already have are kept.
    labels : Labels
        The result of `read_labels`.

    Returns
    -------
    Documents
        The same documents with their labels; the report covers both files.

    Raises
    ------
    ReadError
        If no record matches.

    Examples
    --------
    >>> documents = Documents(["a", "b"], ["rain at noon", "shares fell"])
    >>> labels = Labels([LabelRecord("line 2", "b", None, ["money"], ["sport"])])
    >>> attach_labels(documents, labels).labels
    [[], ['money']]
    """
    changed, report = match_labels(documents, labels)
    nothing: list[str] = []  # one list for all unlabelled documents
    has, lacks = (
        [changed[row][which] if row in changed else list(names) or nothing for row, names in enumerate(given)]
        for which, given in enumerate((documents.labels, documents.forbidden))
    )
    columns = {**documents.columns, **draws(documents, labels, changed)}
    return replace(documents, labels=has, forbidden=lacks, report=report, columns=columns)


def draws(documents: Documents, labels: Labels, changed: Collection[int]) -> dict[str, list[object]]:
    """Return the columns on the draw of documents, with the values of a label file for some rows; none without any."""
    matched = zip(labels.records, match_records(documents, labels.records), strict=True)
    drawn = {row: record.draw for record, rows in matched for row in rows if record.draw[0] is not None}
    found = {name: list(documents.columns.get(name, [None] * len(documents))) for name in (CHOSEN, PROBABILITY)}
    for row in drawn.keys() & changed:
        found[CHOSEN][row], found[PROBABILITY][row] = drawn[row]
    return found if drawn else {}


def incomplete_rows(documents: Documents, labels: Labels) -> set[int]:
    """Return the rows of documents whose other topics are open, according to the label file."""
    found = zip(labels.records, match_records(documents, labels.records), strict=True)
    return {row for record, rows in found if not record.complete for row in rows}


def match_labels(documents: Documents, labels: Labels) -> tuple[dict[int, tuple[list[str], list[str]]], ReadReport]:
    """Return labels and forbidden labels of all rows with a record, and a report; see `attach_labels`."""
    changed: dict[int, tuple[dict[str, None], dict[str, None]]] = {}
    bad, given, unmatched = [], defaultdict[int, dict[str, None]](dict), 0
    for record, rows in zip(labels.records, match_records(documents, labels.records), strict=True):
        if not rows:
            key = f"id {record.id!r}" if record.text is None else "text"
            bad.append(BadRow(record.place, f"no document has this {key}"))
            unmatched += 1
        try:
            for row in rows:
                check_none([*(changed[row][0] if row in changed else documents.labels[row]), *record.labels])
        except ValueError as error:
            bad.append(BadRow(record.place, f"with its earlier labels, the document has {error}"))
            continue
        for row in rows:
            given[row].update(dict.fromkeys(record.labels))
            if row not in changed:
                changed[row] = dict.fromkeys(documents.labels[row]), dict.fromkeys(documents.forbidden[row])
            has, lacks = changed[row]
            for names, gain, lose in ((record.labels, has, lacks), (record.forbidden, lacks, has)):
                for topic in names:
                    gain[topic] = None
                    lose.pop(topic, None)
    problems = ReadReport(labels.report.source, bad_rows=tuple(bad))
    if unmatched == len(labels):
        raise ReadError(
            "no record of the label file matches any of these documents: use the ids of the documents, "
            f"and leave out the texts if they differ\n{problems}"
        )
    name = Path(labels.report.source).name
    guesses = [f"in {name}, {guess}" for guess in (*labels.report.guesses, *_conflicts(documents, given))]
    left_out = [replace(row, place=f"{name} {row.place}") for row in (*labels.report.bad_rows, *bad)]
    first = documents.report
    report = replace(first, guesses=(*first.guesses, *guesses), bad_rows=(*first.bad_rows, *left_out))
    return {row: (list(has), list(lacks)) for row, (has, lacks) in changed.items()}, report


def _conflicts(documents: Documents, given: Mapping[int, Iterable[str]]) -> list[str]:
    """List the documents whose own labels differ from a label file."""
    found = []
    for row, names in given.items():
        own = documents.labels[row]
        if own and names and set(map(fold, own)) != set(map(fold, names)):
            found.append(f"{documents.ids[row]!r} ({', '.join(own)} / {', '.join(names)})")
    if not found:
        return []
    more = f" and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
    have = "document has" if len(found) == 1 else "documents have"
    listed = "; ".join(found[:LISTED])
    return [f"{len(found):,} {have} other labels than in the table, and the labels of both count: {listed}{more}"]


def match_records(documents: Documents, records: Sequence[LabelRecord]) -> list[list[int]]:
    """Return the rows of the documents that match each record; only the records are in memory."""
    by_id: dict[str, list[int]] = {str(record.id): [] for record in records if record.id is not None}
    by_text: dict[str, list[int]] = {_squeeze(record.text): [] for record in records if record.text is not None}
    other_spelling: dict[str, list[int]] = {}
    for row, key in enumerate(map(str, documents.ids)):
        if key in by_id:
            by_id[key] = [row]
        for spelling in other_spellings(key):
            if spelling in by_id:
                other_spelling[spelling] = [] if spelling in other_spelling else [row]
    for row, text in enumerate(documents.texts if by_text else ()):
        squeezed = _squeeze(text)
        if squeezed in by_text:
            by_text[squeezed].append(row)
    found = [
        (
            [] if record.id is None else by_id[str(record.id)] or other_spelling.get(str(record.id), []),
            [] if record.text is None else by_text[_squeeze(record.text)],
            None if record.text is None else _squeeze(record.text)[:SAME_START],
        )
        for record in records
    ]
    agree = [_squeeze(documents.texts[ids[0]]).startswith(start) for ids, _, start in found if ids and start]
    trusted = 2 * sum(agree) > len(agree)
    return [ids if ids and (start is None or trusted) else texts for ids, texts, start in found]


def other_spellings(key: str) -> list[str]:
    """An id with and without the quote that keeps spreadsheets from reading it as a formula, and the suffix .txt.

    Examples
    --------
    >>> other_spellings("=a"), other_spellings("'=a"), other_spellings("a.txt.gz")
    (["'=a"], ["''=a", '=a'], ['a'])
    """
    stem = key.removesuffix(".gz").removesuffix(".txt")
    return [spelling for spelling in (guarded(key), unguarded(key), stem) if spelling != key]


def _squeeze(text: str) -> str:
    """Collapse spaces and line ends, which often change when text is copied."""
    return " ".join(text.split())


# Options of a label file of its own; all others belong to its table.
OWN_OPTIONS = ("labels", "id", "forbidden", "separator", "encoding", "delimiter", "sheet")
# Texts of a label file may be cut. A text with the id of a document belongs to it if this many characters agree.
SAME_START = 100
# Conflicts between a table and its label file that a report lists.
LISTED = 20
# Greatest number of characters of an id in a message.
SHOWN = 60
# A column of the workbench's exports: the separator of the levels in names that are paths.
PATH_SEPARATOR = "path_separator"


# A column of the workbench's exports: "no" marks labels that leave other topics open.
COMPLETE = "complete"
# A column of the workbench's exports: the people who gave the labels.
LABELLED_BY = "labelled_by"
# One annotation of a document: id, text, labels, forbidden labels, and the people who gave them.
Annotation = tuple[Hashable | None, str | None, list[str], list[str], tuple[str, ...]]
# Reads the annotation of a row.
Reader = Callable[[int], Annotation]


def read_labels(source: object, **options: Unpack[ReadKeywords]) -> Labels:
    """Read a label file.

    A label file is a table with labels and an id or a text, such as doccano's JSONL. A document may have several rows.
    The label "(none)" marks a document that has none of the topics. A column ``labelled_by`` names the people who gave
    the labels.

    Parameters
    ----------
    source : path or table
        As in `read_table`.
    labels, id, forbidden : str, optional
        Names of the columns of a plain table. Default: guessed.
    separator, encoding, delimiter, sheet
        As in `read_table`.
    like : ReadOptions, optional
        Columns of the documents: their column of ids is chosen if the file has it.

    Returns
    -------
    Labels
        The records in the order of the file; rows without labels are left out.

    Raises
    ------
    ReadError
        If the file cannot be read, or has no labels.

    Examples
    --------
    >>> rows = [{"text": "rain at noon", "label": "weather", "forbidden": "money"}]
    >>> [(record.labels, record.forbidden) for record in read_labels(rows).records]
    [(['weather'], ['money'])]
    """
    given = ReadOptions(**options)
    return labels_of_table(load_table(source, given), given)


def read_label_file(options: ReadOptions) -> Labels:
    """Read the label file that belongs to a table or folder, with options of its own."""
    own: dict[str, Any] = dict(options.label_options or {})
    if wrong := sorted(set(own) - set(OWN_OPTIONS)):
        raise ReadError(f"a label file has no option {wrong[0]!r}; its options are {', '.join(OWN_OPTIONS)}.")
    ids = options.id or getattr(options.like, "id", None) or None
    file = ReadOptions(**own, like=ReadOptions(id=ids))
    return labels_of_table(load_table(options.label_file, file), file)


def labels_of_table(table: Table, options: ReadOptions) -> Labels:
    """Convert the table of a label file to labels."""
    like = None if options.like is None else ReadOptions(id=options.like.id or None)  # its labels are in another file
    columns = Columns([table], replace(options, labels=options.labels or None, like=like), label_file=True)
    read = plain_rows(table, columns)
    records, problems, complete = list[LabelRecord](), dict(table.problems), table.column(COMPLETE)
    empty = list[str]()
    chosen, probabilities = table.column(CHOSEN), table.column(PROBABILITY)
    for row, place in enumerate(table.places):
        try:
            key, text, has, lacks, people = read(row)
            if key is None and text is None:
                raise ValueError("neither an id nor a text (name the column of ids: id, --id)")
            check_labels(has, lacks)
            if has or lacks:
                whole = str(complete[row]).strip().casefold() not in ("no", "false")
                draw = (None, None) if is_missing(chosen[row]) else (chosen[row], probabilities[row])
                own = None if CHOSEN in table.columns and key is not None else text  # `suggest` has our ids
                records.append(LabelRecord(f"{table.unit} {place}", key, own, has, lacks, whole, people, draw))
            else:
                empty.append(f"{table.unit} {place}" if key is None else str(key))
        except ValueError as error:
            problems[place] = str(error)
    cells = (cell for cell in table.columns.get(PATH_SEPARATOR, ()) if not is_missing(cell) and str(cell).strip())
    separator = next(map(str, cells), None)
    if separator is not None:
        columns.guesses.append(f"labels are paths with {separator!r} between the levels: fit with this path separator")
    report = table.report(columns.guesses, problems)
    if not records:
        raise ReadError(f"{table.source}: has no labels\n{report}".rstrip())
    return Labels(records, report, separator, empty)


def plain_rows(table: Table, columns: Columns) -> Reader:
    """Read a table with one document, or one label of a document, per row."""
    for name in (LABELLED_BY, PATH_SEPARATOR):
        columns.free.pop(name, None)
    id_column = columns.ids(LABEL_FILE_ID_NAMES)
    permitted, forbids = columns.labels(), columns.forbidden()
    text_column = columns.label_file_texts()
    if id_column is None and text_column is None:
        id_column = columns.label_file_ids()
    if permitted.name is None and not permitted.names and forbids.name is None:
        names = ", ".join(map(repr, columns.free)) or "no others"
        raise ReadError(
            f"{table.source}: which column holds the labels? Pass --labels (labels= in Python); the columns are {names}"
        )
    ids, texts, people = table.column(id_column), table.column(text_column), table.column(LABELLED_BY)
    has, lacks = permitted.reader(table), forbids.reader(table)

    def read(row: int) -> Annotation:
        key = _id(table.unguarded(ids[row]))
        names = tuple(str(table.unguarded(name)) for name in _people(people[row]))
        labels, zeros = has(row)
        return key, _text(texts[row]), labels, [*lacks(row)[0], *zeros], names

    return read


def _people(cell: object) -> tuple[str, ...]:
    """The names of people in a cell: a list, a list as JSON, or a text with semicolons.

    Examples
    --------
    >>> _people("ann; bob"), _people('["ann; the first"]'), _people(None)
    (('ann', 'bob'), ('ann; the first',), ())
    """
    if isinstance(cell, str) and cell.startswith("["):
        with suppress(ValueError):
            cell = json.loads(cell)
    if is_missing(cell):
        return ()
    names = cell if isinstance(cell, list | tuple) else str(cell).split(";")
    return tuple(dict.fromkeys(name for name in (str(one).strip() for one in names) if name))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _id(value: object) -> Hashable | None:
    return None if is_missing(value) else read_id(value)


# Common names of the answers of a program; the common names of labels are accepted too.
ANSWER_NAMES = ("predicted", "prediction", "predictions", "code", "codes")


def read_predictions(source: object, documents: Documents) -> tuple[list[list[str]], ReadReport]:
    """Read the answers of a coder to these documents, and list the rows that cannot be used.

    Rows are matched by id, or by text as in `attach_labels`. A report has a line for each unknown id, each further
    answer to a document, and each row without an answer.

    Parameters
    ----------
    source : path or table
        As in `read_table`.
    documents : Documents
        The documents of the model. Their column of ids may hold the ids of the answers too.

    Returns
    -------
    labels : list of lists of str
        Topics per document; ``["(none)"]`` = none of the topics, ``[]`` = no answer.
    report : ReadReport

    Raises
    ------
    ReadError
        If the file cannot be read, or has no answer to any of these documents.

    Examples
    --------
    >>> documents = Documents(["a", "b"], ["rain at noon", "shares fell"])
    >>> rows = [{"id": "b", "topics": "money; sport"}, {"id": "c", "topics": "sport"}]
    >>> labels, report = read_predictions(rows, documents)
    >>> labels
    [[], ['money', 'sport']]
    >>> print(report)
    list: id is column 'id'
    list: labels are column 'topics', separated by ';'
    list: 1 bad row, not used
      row 2: no document has the id 'c': use the ids of the documents
    """
    like = None if documents.reading is None else ReadOptions(id=documents.reading.id or None)
    options = ReadOptions(forbidden=False, like=like)
    table = load_table(source, options)
    name = Path(table.source).name or table.source
    usual = {name.strip().lower(): name for name in reversed(list(table.columns))}
    answers = next((usual[name] for name in ANSWER_NAMES if name in usual), None)
    columns = Columns([table], replace(options, labels=answers), label_file=True)
    read, problems, records = plain_rows(table, columns), dict(table.problems), list[tuple[int, LabelRecord]]()
    for row, place in enumerate(table.places):
        try:
            key, text, answer, *_ = read(row)
            has = list(map(str, answer))
            if key is None and text is None:
                raise ValueError("neither an id nor a text: write the id of the document")
            if not has or has == [UNSURE]:
                raise ValueError(f"no answer: write {NONE} for a document that has none of the topics")
            check_labels(has, [])
            records.append((place, LabelRecord("", key, text, has, [])))
        except ValueError as error:
            problems[place] = str(error)
    labels: list[list[str]] = [[] for _ in range(len(documents))]
    for (place, record), rows in zip(records, match_records(documents, [one for _, one in records]), strict=True):
        if not rows:
            key = f"id {visible(repr(record.id), SHOWN)}: use the ids of the documents"
            problems[place] = f"no document has the {key if record.text is None else 'text'}"
        elif any(labels[row] for row in rows):
            problems[place] = (
                "a further answer to a document, whose first one counts: write several topics in one cell, and pass "
                "further runs as coders of their own"
            )
        for row in rows:
            labels[row] = labels[row] or record.labels
    report = replace(table.report(columns.guesses, problems), source=name, treatment="not used")
    if not any(labels):
        raise ReadError(f"{name}: has no answer to any of these documents\n{report}".rstrip())
    return labels, report
