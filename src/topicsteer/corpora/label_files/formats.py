"""Read label files: tables, and exports of doccano, Label Studio and Prodigy."""

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from topicsteer.corpora.cells import check_labels, read_id, split_labels
from topicsteer.corpora.columns import LABEL_FILE_ID_NAMES, TEXT_NAMES, Columns, LabelColumn
from topicsteer.corpora.label_files.paths import (
    PATH_SEPARATOR,
    free_separator,
    level_columns,
    path_of_row,
    stated_separator,
    taxonomy_cell,
    taxonomy_paths,
)
from topicsteer.corpora.label_files.records import LabelRecord, Labels
from topicsteer.corpora.options import Names, ReadOptions
from topicsteer.corpora.read_report import OnError, ReadError
from topicsteer.corpora.readers.registry import load_table
from topicsteer.corpora.readers.table_file import Table
from topicsteer.system.safe_text import unguarded
from topicsteer.system.values import is_missing

# A column of the workbench's exports: "no" marks labels that leave other topics open.
COMPLETE = "complete"
# A column of the workbench's exports: the people who gave the labels.
LABELLED_BY = "labelled_by"
# A name, or the names of a path through a tree of topics.
Label = str | tuple[str, ...]
# One annotation of a document: id, text, labels, forbidden labels, and the people who gave them.
Annotation = tuple[Hashable | None, str | None, Sequence[Label], list[str], tuple[str, ...]]
# Reads the annotations of a row: none, one, or one per annotator.
Reader = Callable[[int], Iterator[Annotation]]


def read_labels(
    source: object,
    *,
    labels: Names | None = None,
    id: str | None = None,
    forbidden: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    on_error: OnError = "skip",
    like: ReadOptions | None = None,
) -> Labels:
    """Read a label file.

    The columns decide on the format. Label Studio's JSON export has ``data`` and ``annotations``. Prodigy's JSONL has
    ``answer`` (accept, reject or ignore), and a rejected label becomes forbidden. All other files, such as doccano's
    JSONL, are tables with labels and an id or a text. A document may have several rows. The label "(none)" marks a
    document that has none of the topics. A column ``labelled_by``, and the annotators of Label Studio and Prodigy, name
    the people who gave the labels. Columns ``level 1``, ``level 2`` and so on, and Label Studio's Taxonomy, are paths
    through a tree of topics; ``Labels.separator`` is then between their names.

    Parameters
    ----------
    source : path or table
        As in `read_table`.
    labels, id, forbidden : str, optional
        Names of the columns of a plain table. Default: guessed.
    separator, encoding, delimiter, sheet, on_error
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
        If the file cannot be read, has no labels, or has bad rows and ``on_error`` is "raise".

    Examples
    --------
    >>> rows = [{"text": "rain at noon", "label": "weather", "answer": "accept"},
    ...         {"text": "rain at noon", "label": "money", "answer": "reject"}]
    >>> [(record.labels, record.forbidden) for record in read_labels(rows).records]
    [(['weather'], []), ([], ['money'])]
    """
    options = ReadOptions(None, labels, id, forbidden, separator, encoding, delimiter, None, on_error, sheet, like)
    return labels_of_table(load_table(source, options), options)


def read_label_file(options: ReadOptions) -> Labels:
    """Read the label file that belongs to a table; its column of ids may have another name."""
    options = replace(options, sheet=None)
    table = load_table(options.label_file, options)
    return labels_of_table(table, options if options.id in table.columns else replace(options, id=None))


def labels_of_table(table: Table, options: ReadOptions) -> Labels:
    """Convert the table of a label file to labels."""
    like = None if options.like is None else ReadOptions(id=options.like.id or None)  # its labels are in another file
    columns = Columns([table], replace(options, labels=options.labels or None, like=like), label_file=True)
    if "data" in columns.free and {"annotations", "completions"} & set(columns.free):
        columns.guesses.append("labels come from Label Studio")
        read = _label_studio(table)
    elif "answer" in columns.free:
        columns.guesses.append("labels come from Prodigy")
        read = _prodigy(table)
    else:
        read = plain_rows(table, columns, [] if options.labels else level_columns(columns.free))
    found, records, problems, complete = [], list[LabelRecord](), dict(table.problems), table.column(COMPLETE)
    for row, place in enumerate(table.places):
        try:
            found += [(row, place, annotation) for annotation in read(row)]
        except ValueError as error:
            problems[place] = str(error)
    separator = _separator(table, [label for *_, annotation in found for label in annotation[2]])
    for row, place, (key, text, labels, lacks, people) in found:
        try:
            has = [label if isinstance(label, str) else (separator or "").join(label) for label in labels]
            if key is None and text is None:
                raise ValueError("neither an id nor a text (name the column of ids: id, --id)")
            check_labels(has, lacks)
            if has or lacks:
                whole = _is_complete(complete[row])
                records.append(LabelRecord(f"{table.unit} {place}", key, text, has, lacks, whole, people))
        except ValueError as error:
            problems[place] = str(error)
    if separator is not None:
        columns.guesses.append(f"labels are paths with {separator!r} between the levels: fit with this path separator")
    report = table.report(columns.guesses, problems).raise_for_bad_rows(options.on_error)
    if not records:
        raise ReadError(f"{table.source}: has no labels\n{report}".rstrip())
    return Labels(records, report, separator)


def _separator(table: Table, labels: Sequence[Label]) -> str | None:
    """The separator of paths: as the file states it, or one that no name contains; None without paths."""
    paths = [label for label in labels if not isinstance(label, str)]
    stated = stated_separator(table)
    if not paths:
        return stated
    try:
        return free_separator((name for path in paths for name in path), stated)
    except ValueError as error:
        raise ReadError(f"{table.source}: {error}") from None


def plain_rows(table: Table, columns: Columns, levels: Sequence[str] = ()) -> Reader:
    """Read a table with one document, or one label of a document, per row; ``levels`` are columns of a path."""
    for name in (LABELLED_BY, PATH_SEPARATOR, *levels):
        columns.free.pop(name, None)
    id_column = columns.ids(LABEL_FILE_ID_NAMES)
    permitted, forbids = LabelColumn() if levels else columns.labels(), columns.forbidden()
    text_column = columns.label_file_texts()
    if id_column is None and text_column is None:
        id_column = columns.label_file_ids()
    if permitted.name is None and not permitted.names and forbids.name is None and not levels:
        names = ", ".join(map(repr, columns.free)) or "no others"
        raise ReadError(
            f"{table.source}: which column holds the labels? Pass --labels (labels= in Python); the columns are {names}"
        )
    ids, texts, people = table.column(id_column), table.column(text_column), table.column(LABELLED_BY)
    has, lacks, zeros = permitted.reader(table), forbids.reader(table), permitted.forbids(table)
    given = table.column(permitted.name)

    def labels_of(row: int) -> Sequence[Label]:
        if levels:
            return [path for path in [path_of_row(table, levels, row)] if path]
        paths = taxonomy_cell(given[row])
        return has(row) if paths is None else paths

    def read(row: int) -> Iterator[Annotation]:
        cell = ids[row]
        if table.guarded and isinstance(cell, str):
            cell = unguarded(cell)
        key = None if is_missing(cell) else read_id(cell)
        names, absent = _people(people[row]), [*lacks(row), *zeros(row)]
        yield key, _text(texts[row]), labels_of(row), absent, tuple(map(unguarded, names)) if table.guarded else names

    return read


def _prodigy(table: Table) -> Reader:
    """Read the export of Prodigy, one answer per row, to one label or to several options."""
    answers, texts, single, several, metas = map(table.column, ("answer", "text", "label", "accept", "meta"))
    annotators = table.column("_annotator_id" if "_annotator_id" in table.columns else "_session_id")

    def read(row: int) -> Iterator[Annotation]:
        names = split_labels(single[row] if several[row] is None else several[row], None)
        key, people = _id(metas[row]), _people(annotators[row])
        if answers[row] == "accept":
            yield key, _text(texts[row]), names, [], people
        elif answers[row] == "reject":
            yield key, _text(texts[row]), [], names, people
        elif answers[row] != "ignore":
            raise ValueError(f"the answer is {answers[row]!r}; expected accept, reject or ignore")

    return read


def _label_studio(table: Table) -> Reader:
    """Read the export of Label Studio, one task per row, with the choices of one or several annotators."""

    def read(row: int) -> Iterator[Annotation]:
        data = table.columns["data"][row]
        annotations = table.columns.get("annotations", table.columns.get("completions", ()))[row] or []
        if not isinstance(data, dict) or not isinstance(annotations, list):
            raise ValueError("expected a task with data and a list of annotations")
        strings = {name: value for name, value in data.items() if isinstance(value, str) and name != "id"}
        text = next(
            (strings[name] for name in TEXT_NAMES if name in strings), max(strings.values(), key=len, default=None)
        )
        key, names = _id(data), data.get(LABELLED_BY)
        named = names if isinstance(names, list) and len(names) == len(annotations) else None
        for place, annotation in enumerate(annotations):
            if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
                continue
            results = annotation.get("result")
            labels = list[Label]()
            for result in results if isinstance(results, list) else ():
                if isinstance(result, dict) and "value" in result and result.get("type") == "choices":
                    labels += split_labels(result["value"], None)
                elif isinstance(result, dict) and "value" in result and result.get("type") == "taxonomy":
                    labels += taxonomy_paths(result["value"])
            people = _people([named[place]] if named else _annotator(annotation.get("completed_by")))
            yield key, _text(text), labels, [], people

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


def _annotator(found: object) -> str | None:
    """The annotator of Label Studio: a record with an address, or a number."""
    if isinstance(found, dict):
        found = found.get("email") or found.get("username") or found.get("id")
    return f"annotator {found}" if isinstance(found, int) else found if isinstance(found, str) else None


def _is_complete(cell: object) -> bool:
    return str(cell).strip().casefold() not in ("no", "false")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _id(record: object) -> Hashable | None:
    value = record.get("id") if isinstance(record, dict) else None
    return None if is_missing(value) else read_id(value)
