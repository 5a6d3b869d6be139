"""What somebody said of documents elsewhere, and how it finds its way to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from topicsteer.corpora.documents import Documents
from topicsteer.corpora.reports import BadRow, OnError, ReadError, ReadReport


@dataclass(frozen=True)
class LabelRecord:
    """What somebody said of one document.

    Parameters
    ----------
    place : str
        Where it stands in the label file.
    id : str, int or None
        The document's id, if the file has one.
    text : str or None
        The document's text, if the file has it.
    labels, forbidden : list of str
        The topics that it has, and those that it does not have.

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


@dataclass(frozen=True)
class Labels:
    """The records of a label file, in its order.

    Parameters
    ----------
    records : sequence of LabelRecord
        What was said of the documents; a document may occur several times.
    report : ReadReport, optional
        What was guessed and left out.

    Examples
    --------
    >>> len(Labels([LabelRecord("line 2", "a", None, ["weather"], [])]))
    1
    """

    records: Sequence[LabelRecord]
    report: ReadReport = field(default_factory=ReadReport, compare=False)

    def __len__(self) -> int:
        return len(self.records)


def attach_labels(documents: Documents, labels: Labels, *, on_error: OnError = "skip") -> Documents:
    """Give documents the labels of a label file.

    Records are matched by id, or by text if they have one (spaces apart). Annotation tools number documents
    in their own way, so where both are there, ids are believed only if most of the texts beside them agree.
    If a document is said to have a topic and not to have it, the last word counts.

    Parameters
    ----------
    documents : Documents
        What the labels are for; labels it has already are kept.
    labels : Labels
        What `read_labels` gave.
    on_error : {"skip", "raise"}, default="skip"
        What to do with records that match no document.

    Returns
    -------
    Documents
        The same documents with their labels; the report covers both files.

    Raises
    ------
    ReadError
        If no record matches, or some do not and that is to be fatal.

    Examples
    --------
    >>> documents = Documents(["a", "b"], ["rain at noon", "shares fell"])
    >>> labels = Labels([LabelRecord("line 2", "b", None, ["money"], ["sport"])])
    >>> attach_labels(documents, labels).labels
    [[], ['money']]
    """
    has = [dict.fromkeys(row) for row in documents.labels]
    lacks = [dict.fromkeys(row) for row in documents.forbidden]
    bad = []
    for record, rows in zip(labels.records, _match(documents, labels.records), strict=True):
        if not rows:
            key = f"id {record.id!r}" if record.text is None else "text"
            bad.append(BadRow(record.place, f"no document has this {key}"))
        for row in rows:
            for names, gain, lose in ((record.labels, has, lacks), (record.forbidden, lacks, has)):
                for topic in names:
                    gain[row][topic] = None
                    lose[row].pop(topic, None)
    unmatched = ReadReport(labels.report.source, bad_rows=tuple(bad))
    if len(bad) == len(labels):
        raise ReadError(
            "no record of the label file is about any of these documents: give it the ids of the documents, "
            f"and leave their texts out if they differ\n{unmatched}"
        )
    unmatched.settle(on_error)
    name = Path(labels.report.source).name
    guesses = [f"in {name}, {guess}" for guess in labels.report.guesses]
    aside = [replace(row, place=f"{name} {row.place}") for row in (*labels.report.bad_rows, *bad)]
    report = ReadReport(
        documents.report.source,
        (*documents.report.guesses, *guesses),
        (*documents.report.bad_rows, *aside),
    )
    return replace(documents, labels=list(map(list, has)), forbidden=list(map(list, lacks)), report=report)


def _match(documents: Documents, records: Sequence[LabelRecord]) -> list[list[int]]:
    """Rows of the documents that each record is about."""
    by_id = {str(key): [row] for row, key in enumerate(documents.ids)}
    # Tables that are guarded against formulas have a quote before such ids.
    by_id = {f"'{key}": rows for key, rows in by_id.items() if key[:1] in "=+-@\t\r" and key} | by_id
    by_text = defaultdict(list)
    if any(record.text for record in records):
        for row, text in enumerate(documents.texts):
            by_text[_squeeze(text)].append(row)
    found = [
        (
            [] if record.id is None else by_id.get(str(record.id), []),
            [] if record.text is None else by_text.get(_squeeze(record.text), []),
            record.text is None,
        )
        for record in records
    ]
    agree = [ids[0] in texts for ids, texts, id_only in found if ids and not id_only]
    trusted = 2 * sum(agree) > len(agree)
    return [ids if ids and (id_only or trusted) else texts for ids, texts, id_only in found]


def _squeeze(text: str) -> str:
    """Text without what copying changes: spaces and line ends."""
    return " ".join(text.split())
