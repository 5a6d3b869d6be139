"""Records of a label file, and how they are matched to documents."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from topicsteer.corpora.documents import Documents
from topicsteer.corpora.read_report import BadRow, OnError, ReadError, ReadReport
from topicsteer.system.safe_text import guarded, unguarded
from topicsteer.system.values import check_none


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

    Examples
    --------
    >>> len(Labels([LabelRecord("line 2", "a", None, ["weather"], [])]))
    1
    """

    records: Sequence[LabelRecord]
    report: ReadReport = field(default_factory=ReadReport, compare=False)
    separator: str | None = None

    def __len__(self) -> int:
        return len(self.records)


def attach_labels(documents: Documents, labels: Labels, *, on_error: OnError = "skip") -> Documents:
    """Add the labels of a label file to documents.

    Records are matched by id, or by text if they have one (spaces are ignored). Annotation tools use ids of their own.
    So if records have both, ids are used only if most of the texts match as well. If a topic is both permitted and
    forbidden for a document, the last record counts. A record that brings "(none)" together with other labels of
    its document is left out and reported.

    Parameters
    ----------
    documents : Documents
        The documents; labels that they already have are kept.
    labels : Labels
        The result of `read_labels`.
    on_error : {"skip", "raise"}, default="skip"
        Leave out records that match no document, or raise an error.

    Returns
    -------
    Documents
        The same documents with their labels; the report covers both files.

    Raises
    ------
    ReadError
        If no record matches, or if some do not match and ``on_error`` is "raise".

    Examples
    --------
    >>> documents = Documents(["a", "b"], ["rain at noon", "shares fell"])
    >>> labels = Labels([LabelRecord("line 2", "b", None, ["money"], ["sport"])])
    >>> attach_labels(documents, labels).labels
    [[], ['money']]
    """
    changed, report = match_labels(documents, labels, on_error=on_error)
    has, lacks = (
        [changed[row][which] if row in changed else list(names) for row, names in enumerate(given)]
        for which, given in enumerate((documents.labels, documents.forbidden))
    )
    return replace(documents, labels=has, forbidden=lacks, report=report)


def incomplete_rows(documents: Documents, labels: Labels) -> set[int]:
    """Return the rows of documents whose other topics are open, according to the label file."""
    found = zip(labels.records, match_records(documents, labels.records), strict=True)
    return {row for record, rows in found if not record.complete for row in rows}


def match_labels(
    documents: Documents, labels: Labels, *, on_error: OnError
) -> tuple[dict[int, tuple[list[str], list[str]]], ReadReport]:
    """Return labels and forbidden labels of all rows with a record, and a report; see `attach_labels`."""
    changed: dict[int, tuple[dict[str, None], dict[str, None]]] = {}
    bad = []
    for record, rows in zip(labels.records, match_records(documents, labels.records), strict=True):
        if not rows:
            key = f"id {record.id!r}" if record.text is None else "text"
            bad.append(BadRow(record.place, f"no document has this {key}"))
        try:
            for row in rows:
                check_none([*(changed[row][0] if row in changed else documents.labels[row]), *record.labels])
        except ValueError as error:
            bad.append(BadRow(record.place, f"with its earlier labels, the document has {error}"))
            continue
        for row in rows:
            if row not in changed:
                changed[row] = dict.fromkeys(documents.labels[row]), dict.fromkeys(documents.forbidden[row])
            has, lacks = changed[row]
            for names, gain, lose in ((record.labels, has, lacks), (record.forbidden, lacks, has)):
                for topic in names:
                    gain[topic] = None
                    lose.pop(topic, None)
    unmatched = ReadReport(labels.report.source, bad_rows=tuple(bad))
    if len(bad) == len(labels):
        raise ReadError(
            "no record of the label file matches any of these documents: use the ids of the documents, "
            f"and leave out the texts if they differ\n{unmatched}"
        )
    unmatched.raise_for_bad_rows(on_error)
    name = Path(labels.report.source).name
    guesses = [f"in {name}, {guess}" for guess in labels.report.guesses]
    left_out = [replace(row, place=f"{name} {row.place}") for row in (*labels.report.bad_rows, *bad)]
    first = documents.report
    report = replace(first, guesses=(*first.guesses, *guesses), bad_rows=(*first.bad_rows, *left_out))
    return {row: (list(has), list(lacks)) for row, (has, lacks) in changed.items()}, report


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
                other_spelling[spelling] = [row]
    for row, text in enumerate(documents.texts if by_text else ()):
        squeezed = _squeeze(text)
        if squeezed in by_text:
            by_text[squeezed].append(row)
    found = [
        (
            [] if record.id is None else by_id[str(record.id)] or other_spelling.get(str(record.id), []),
            [] if record.text is None else by_text[_squeeze(record.text)],
            record.text is None,
        )
        for record in records
    ]
    agree = [ids[0] in texts for ids, texts, id_only in found if ids and not id_only]
    trusted = 2 * sum(agree) > len(agree)
    return [ids if ids and (id_only or trusted) else texts for ids, texts, id_only in found]


def other_spellings(key: str) -> list[str]:
    """An id with and without the quote that keeps spreadsheets from reading it as a formula.

    Examples
    --------
    >>> other_spellings("=a"), other_spellings("'=a"), other_spellings("a")
    (["'=a"], ["''=a", '=a'], [])
    """
    return [spelling for spelling in (guarded(key), unguarded(key)) if spelling != key]


def _squeeze(text: str) -> str:
    """Collapse spaces and line ends, which often change when text is copied."""
    return " ".join(text.split())
