"""Read documents from folders, files and tables."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

from topicsteer.corpora.cells import check_labels
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.label_files.formats import labels_of_table, read_label_file
from topicsteer.corpora.label_files.records import attach_labels
from topicsteer.corpora.options import Names, ReadOptions, without_labels
from topicsteer.corpora.read_report import BadRow, OnError, ReadError, ReadReport
from topicsteer.corpora.readers.registry import load_table
from topicsteer.corpora.readers.table_file import check_encoding, read_text
from topicsteer.corpora.stream import TableStream

# Options for a source with guessed columns.
DEFAULT = ReadOptions()


def read_documents(
    source: object, options: ReadOptions = DEFAULT, *, keep_empty: bool = False, keep_all: bool = False
) -> Documents:
    """Read documents from a folder, a file, an address, or a table in memory.

    Parameters
    ----------
    source : path, address, DataFrame, Hugging Face Dataset, list of str or list of dict
        Any source of `read_folder` or `read_table`.
    options : ReadOptions, optional
        Columns, encoding, label file and bad rows. A folder has no columns: ``labels="folders"`` takes the names of
        the folders as labels, and all other names of columns refer to the label file.
    keep_empty : bool, default=False
        Whether a row with an empty text is kept as a document without words; otherwise it is a bad row.
    keep_all : bool, default=False
        Whether every row of a table is a document, in order, with all columns. A bad row has an empty text if its own
        cannot be read; ids may repeat. The report still lists bad rows.

    Returns
    -------
    Documents
        With the labels of the label file, if given.

    Raises
    ------
    ReadError
        As in `read_table` and `read_folder`.

    Examples
    --------
    >>> read_documents(["rain at noon", "shares fell"])
    <Documents: 2 documents, 0 labelled, 0 topics>
    """
    if not isinstance(source, str | os.PathLike) or not Path(source).is_dir():
        return _from_table(source, options, keep_empty, keep_all)
    folders = options.labels == "folders"
    documents = read_folder(
        os.fspath(source), labels_from_folders=folders, encoding=options.encoding, on_error=options.on_error
    )
    if options.label_file is None:
        return documents
    label_options = replace(options, labels=None) if folders else options
    labels = labels_of_table(load_table(options.label_file, label_options), label_options)
    return attach_labels(documents, labels, on_error=options.on_error)


def read_table(
    source: object,
    *,
    text: Names | None = None,
    labels: Names | Literal[False] | None = None,
    id: str | Literal[False] | None = None,
    forbidden: str | None = None,
    separator: str | None = None,
    label_file: str | Path | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    on_error: OnError = "skip",
    keep_empty: bool = False,
) -> Documents:
    """Read documents from a file or from a table in memory.

    Columns without a given name are guessed where it is obvious, and ``documents.report`` lists the guesses. It also
    lists bad rows: lines that cannot be decoded, a wrong number of fields, empty texts, missing or repeated ids, and
    labels that are not names.

    Parameters
    ----------
    source : path, address, DataFrame, Hugging Face Dataset, list of str or list of dict
        Files: .csv, .tsv, .xlsx, .jsonl, .json (a list of objects) or .parquet, each also with .gz. Addresses such
        as ``s3://bucket/a.csv`` are opened by fsspec (the extra ``remote``, and the fsspec package of that protocol).
    text : str or list of str, optional
        The column of texts. Several are joined, and a row counts if one of them has a text.
    labels : str, list of str or False, optional
        The column of labels. Empty cells, -1, -, ?, NA, n/a, NaN and null mean "no label". The label "(none)", alone
        in its cell, means "none of the topics". Or one column of 0 and 1 per topic: a list of names, ``"tea,coffee"``,
        or a pattern such as ``"cs.*"``; a row of zeros has none of the topics. False or "none": no column.
    id : str or False, optional
        The column of ids. False or "none": no column. The ids are then the index of a pandas DataFrame, or else row
        numbers counted from 0.
    forbidden : str, optional
        The column of topics that a document does not have.
    separator : str, optional
        Separator of several labels in a cell; ``"json"`` if a cell holds a list. Default: guessed.
    label_file : path, optional
        A second file with the labels, joined by id or text; see `read_labels`. ``labels`` and ``forbidden``
        then name its columns, and so does ``id`` if it has a column of that name.
    encoding : str, optional
        Default: UTF-8, UTF-16 or UTF-32 by their mark, else UTF-8 if the text is valid, else Windows-1252.
    delimiter : str, optional
        Delimiter of the fields of a .csv file. Default: guessed from the header.
    sheet : str, optional
        Sheet of an .xlsx file. Default: the first visible one with rows.
    on_error : {"skip", "raise"}, default="skip"
        Leave bad rows out and list them in the report, or raise one error that lists them.
    keep_empty : bool, default=False
        Whether a row with an empty text is kept as a document without words; otherwise it is a bad row.

    Returns
    -------
    Documents
        The good rows, in the order of the source. Columns without a role are kept.

    Raises
    ------
    ReadError
        If the source cannot be read, has no good row, or has bad rows and ``on_error`` is "raise".

    Examples
    --------
    >>> import polars as pl
    >>> texts = ["rain at noon", "", "shares fell"]
    >>> documents = read_table(pl.DataFrame({"body": texts, "topics": ["weather", "", "money;trade"]}))
    >>> documents.ids, documents.labels
    ([0, 2], [['weather'], ['money', 'trade']])
    >>> print(documents.report)
    DataFrame: text is column 'body'
    DataFrame: labels are column 'topics', separated by ';'
    DataFrame: 1 bad row, left out
      row 2: empty text
    """
    options = ReadOptions(text, labels, id, forbidden, separator, encoding, delimiter, label_file, on_error, sheet)
    return _from_table(source, options, keep_empty)


def read_folder(
    path: str | Path,
    *,
    pattern: str = "*.txt",
    labels_from_folders: bool = False,
    encoding: str | None = None,
    on_error: OnError = "skip",
) -> Documents:
    """Read a folder of text files, one document per file, with all its subfolders.

    Parameters
    ----------
    path : path
        The folder.
    pattern : str, default="*.txt"
        Files to read; the same names followed by .gz are read too. ``"*"`` reads all.
    labels_from_folders : bool, default=False
        Label each document with the names of its folders inside ``path``; files at the top are unlabelled.
    encoding : str, optional
        Default: detected per file, as in `read_table`.
    on_error : {"skip", "raise"}, default="skip"
        Leave out empty and undecodable files and list them in the report, or raise one error that lists them.

    Returns
    -------
    Documents
        Ids are the file names relative to the folder, sorted.

    Raises
    ------
    ReadError
        If there is no such folder, it has no such file, or it has bad files and ``on_error`` is "raise".

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     (Path(folder) / "weather").mkdir()
    ...     _ = (Path(folder) / "weather" / "monday.txt").write_text("rain at noon")
    ...     documents = read_folder(folder, labels_from_folders=True)
    >>> documents.ids, documents.texts, documents.labels
    (['weather/monday.txt'], ['rain at noon'], [['weather']])
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ReadError(f"{folder}: there is no such folder")
    if encoding is not None:
        check_encoding(encoding)
    ids, texts, labels, bad = [], [], [], []
    for file in sorted(file for file in {*folder.rglob(pattern), *folder.rglob(f"{pattern}.gz")} if file.is_file()):
        inside = file.relative_to(folder)
        try:
            text = read_text(file, encoding)
            if not text.strip():
                raise ReadError("empty text")
            names = list(dict.fromkeys(inside.parts[:-1])) if labels_from_folders else []
            check_labels(names, [])
        except ValueError as error:
            bad.append(BadRow(inside.as_posix(), str(error).removeprefix(f"{file}: ")))
            continue
        ids.append(inside.as_posix())
        texts.append(text)
        labels.append(names)
    report = ReadReport(str(folder), bad_rows=tuple(bad)).raise_for_bad_rows(on_error)
    if not ids:
        if (folder / "model.json").is_file():
            raise ReadError(f"{folder}: is a saved model; expected the table or the folder with the texts")
        expected = "expected a folder of such files, or a table (.csv, .xlsx, .jsonl, .parquet)"
        raise ReadError(f"{folder}: no file matching {pattern} could be read; {expected}\n{report}".rstrip())
    return Documents(ids, texts, labels, report=report)


def _from_table(source: object, options: ReadOptions, keep_empty: bool, keep_all: bool = False) -> Documents:
    table = load_table(source, options)
    (documents,) = TableStream.of(table, options, keep_empty=keep_empty, keep_all=keep_all)
    if options.label_file is None:
        return documents
    documents = attach_labels(documents, read_label_file(options), on_error=options.on_error)
    return replace(documents, reading=without_labels(documents.reading))
