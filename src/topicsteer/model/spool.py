"""Documents of a model: from lists, tables and files, and spooled corpora: blocks on disk, for more than memory."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from topicsteer.corpora import Documents, ReadOptions, ReadReport, TableStream, attach_labels, read_documents
from topicsteer.corpora.columns import is_storable
from topicsteer.corpora.documents import DEFAULT, DiskSequence, DiskSequenceWriter, Names, without_labels
from topicsteer.corpora.label_files import read_label_file
from topicsteer.system.files import replacing_folder
from topicsteer.system.machine_code import lazy_module
from topicsteer.system.memory import in_bytes
from topicsteer.system.types import JSON, Progress
from topicsteer.system.values import is_missing, plain, plain_id
from topicsteer.text.vectorizer import TextVectorizer

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from numpy.typing import ArrayLike

    from topicsteer.backends import block_folder
    from topicsteer.labels.supervision import Supervision

    Source: TypeAlias = Sequence[str] | Documents | IntoDataFrame | str | Path | "Spool"
    LabelSource: TypeAlias = (
        str | Sequence[Any] | Mapping[Any, Any] | IntoDataFrame | ArrayLike | Supervision | bool | None
    )
else:
    block_folder = lazy_module("topicsteer.backends.block_folder")

# File of a spooled corpus, which a later one may replace.
MARK = "spool.json"
COLUMNS = ("ids", "texts", "labels", "forbidden")
# Further columns of the table are kept if their values have at most this many characters on average.
SHORT = 80
# Bytes per block, if memory allows.
BLOCK = 1 << 25
# Bytes in memory per byte of plain text.
NEEDED = 10
# Bytes of plain text per byte of a compressed file.
PACKED = 3
# Bytes on disk per character: the text, temporary term ids and the rows of a block.
ROOM = 4


@dataclass(frozen=True)
class Spool:
    """A corpus on disk.

    Parameters
    ----------
    path : Path
        The folder that holds it.
    matrix : BlockFolder
        TF-IDF rows of the documents.
    documents : Documents
        Ids, texts and labels, read from disk on access.
    vectorizer : TextVectorizer
        The vectoriser, fitted to the texts.
    """

    path: Path
    matrix: block_folder.BlockFolder
    documents: Documents
    vectorizer: TextVectorizer


def spool(
    source: Any,
    folder: str | os.PathLike[str],
    options: ReadOptions = DEFAULT,
    *,
    vectorizer: TextVectorizer | None = None,
    memory: int | None = None,
    block: int = BLOCK,
    piece: int | None = None,
    progress: Progress | None = None,
) -> Spool:
    r"""Write a corpus that may be larger than memory to disk, ready for a fit.

    The source is read twice: first to choose the columns, then to copy the documents and count their terms. Then the
    blocks are written. Memory grows with the number of distinct words (see `TextVectorizer.fit_blocks`) and by eight
    bytes per document. The disk needs about four bytes per character.

    The folder appears once it is complete. An interrupted run leaves at most a temporary folder next to it, which a
    later run removes.

    Parameters
    ----------
    source : path or table
        A source of `TableStream`.
    folder : path
        A new folder, or the folder of an earlier spool, which is replaced.
    options : ReadOptions, optional
        Columns, encoding, label file and bad rows; the labels of a label file are held in memory for a while. Ids that
        are neither strings nor numbers become strings.
    vectorizer : TextVectorizer, optional
        The vectoriser; a copy is fitted. Default: that of a `TopicModel`.
    memory : int, optional
        Memory limit of a fit, in bytes. A block is a 64th of it, between 1 and 32 MB, so that several blocks fit in
        memory. Blocks of short texts end with a whole chunk of about 4 MB of text.
    block : int
        Largest size of a block, in bytes.
    piece : int, optional
        Size of the pieces in which the source is read; see `TableStream`.
    progress : callable, optional
        Called with "columns", "terms" or "blocks", the number of documents done, their total or None, and a detail.

    Returns
    -------
    Spool

    Raises
    ------
    ReadError
        If the source cannot be read.
    BlockError
        If the folder holds other files, or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "texts.csv"
    ...     _ = path.write_text("text,label\nships carry grain,trade\ngrain prices fell,\n")
    ...     result = spool(path, Path(folder) / "spool")
    ...     result.matrix.shape, result.documents
    ((2, 5), <Documents: 2 documents, 1 labelled, 1 topic>)
    """
    folder = Path(folder)
    if vectorizer is None:
        vectorizer = TextVectorizer(weak_stop_words=True)
    vectorizer = TextVectorizer(**vectorizer.get_params())
    size = block if memory is None else min(max(memory // 64, 1 << 20), block)
    if folder.exists() and not folder.is_dir():
        raise block_folder.BlockError(f"{folder} is a file; choose a new folder.")
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise block_folder.BlockError(f"{folder} contains files that are not a spooled corpus; choose a new folder.")

    def report(stage: str, done: int, total: int | None) -> None:
        if progress is not None:
            progress(stage, done, total, "")

    given = None if options.label_file is None else read_label_file(options)
    stream = TableStream(source, options, size=piece, progress=lambda rows: report("columns", rows, None))
    need = f"write {stream.rows:,} documents, which take about {ROOM * stream.characters / 1e9:.1f} GB,"
    with block_folder.writing(folder.absolute(), need), replacing_folder(folder) as partial:
        with ExitStack() as stack:
            writers = {name: stack.enter_context(DiskSequenceWriter(partial / name)) for name in COLUMNS}
            more = stream.short_columns(SHORT)
            further = {name: stack.enter_context(DiskSequenceWriter(_place(partial, k))) for k, name in enumerate(more)}
            texts = _texts(stream, writers, further)
            blocks = vectorizer.fit_blocks(
                texts, partial, size=size, progress=lambda n, _: report("terms", n, stream.rows)
            )
        written = len(DiskSequence(partial / "ids"))
        block_folder.write_blocks(partial / "blocks", _watched(blocks, written, report))
        (partial / MARK).touch()
    documents = _documents(folder, stream, more)
    if given is not None:
        documents = attach_labels(documents, given)
    return Spool(folder, block_folder.BlockFolder(folder / "blocks"), documents, vectorizer)


def _place(folder: Path, number: int) -> Path:
    """Files of a further column."""
    return folder / f"column-{number}"


def _documents(folder: Path, stream: TableStream, more: Sequence[str]) -> Documents:
    ids, texts, labels, forbidden = (DiskSequence(folder / name) for name in COLUMNS)
    columns = {name: DiskSequence(_place(folder, number)) for number, name in enumerate(more)}
    return Documents(ids, texts, labels, columns, forbidden, stream.report, stream.numbered, stream.reading)


def too_large(source: Any, memory: int | str | None) -> bool:
    """Whether a source is processed on disk: a file that needs more memory than the limit."""
    limit = in_bytes(memory)
    return limit is not None and isinstance(source, str | os.PathLike) and memory_needed(source) > limit


def memory_needed(source: str | os.PathLike[str]) -> int:
    """Estimated bytes of a fit in memory, from the size of its file.

    The estimate is ten times the plain text, measured on fits to hundreds of thousands of abstracts.
    """
    path = Path(source)
    if not path.is_file():  # a folder is read in memory, and reading reports errors
        return 0
    packed = PACKED if path.suffix.lower() in (".gz", ".parquet", ".pq", ".xlsx", ".xlsm") else 1
    return NEEDED * packed * path.stat().st_size


def _texts(
    stream: TableStream, writers: dict[str, DiskSequenceWriter], further: dict[str, DiskSequenceWriter]
) -> Iterator[str]:
    """Yield the texts, and write all columns on the way."""
    for documents in stream:
        for name, writer in writers.items():
            values = getattr(documents, name)
            writer.extend(map(plain_id, values) if name == "ids" else values)
        for name, writer in further.items():
            writer.extend(_json_value(value) for value in documents.columns[name])
        yield from documents.texts


def _json_value(value: object) -> JSON:
    """A cell as JSON: text, numbers and missing values as they are, other values such as dates as text."""
    value = plain(value)
    if is_missing(value):
        return None
    return value if isinstance(value, str | int | float) else str(value)


def _watched(blocks: Iterator[Any], total: int, report: Callable[[str, int, int | None], None]) -> Iterator[Any]:
    rows = 0
    for block in blocks:
        yield block
        rows += block.shape[0]
        report("blocks", rows, total)


# --- documents from the sources that methods of a model accept ---


def named_columns(source: object, labels: object) -> Names | Literal[False] | None:
    """The label columns of a table, or None for a guess; False if the labels are not in a column.

    A list of names means columns if a DataFrame has them all.
    """
    if labels is None or isinstance(labels, str):
        return labels
    if isinstance(labels, list | tuple) and labels and all(isinstance(name, str) for name in labels):
        columns = list(map(str, getattr(source, "columns", ())))
        if all(fnmatch.filter(columns, name) or name in columns for name in labels):
            return tuple(labels)
    return False


def without_column(labels: LabelSource) -> LabelSource:
    """Labels as a method got them. False, as in `read_documents`, means that no column holds any."""
    return "none" if labels is False else labels


def difference(ids: Sequence[Hashable], documents: Documents) -> str:
    """The first difference between the documents of a model, by their ids, and others."""
    if len(ids) != len(documents):
        return f"they are {len(documents):,}, and the model has {len(ids):,}"
    for row, (own, other) in enumerate(zip(ids, documents.ids, strict=True)):
        if str(own) != str(other):
            return f"number {row + 1:,} has the id {other!r}, and the id {own!r} in the model"
    return "their ids are the same, but texts differ"


def documents_of(
    source: object,
    labels: object,
    text: Names | None,
    id: str | None,
    *,
    like: Mapping[str, Any] | None = None,
    keep_all: bool = False,
) -> Documents:
    """Documents from a list, a table or a file; rows in memory count as documents even if their text is empty.

    Labels are a column or several, or None for columns that are guessed. Otherwise no column holds labels. ``like`` are
    the columns of the training documents. With ``keep_all``, every row of a table is a document.
    """
    if isinstance(source, Spool):
        return source.documents
    if isinstance(source, Documents):
        return source
    if isinstance(source, str) and "\n" in source:
        raise TypeError("expected a list of texts, a table or a path, but got one long text: put it in a list, [text].")
    if isinstance(source, str) and " " in source and not Path(source).exists():
        raise TypeError(f"there is no file {source!r}; if it is a text, put it in a list, [text].")
    if isinstance(source, list | tuple) and not source:
        return Documents([], [], numbered=True)
    if isinstance(source, list) and text is None and id is None and not isinstance(labels, str):
        plain = _documents_of_list(source)
        if plain is not None:
            return plain
    column = named_columns(source, labels)
    in_memory = not isinstance(source, str | Path)
    options = ReadOptions(text=text, labels=column, id=id).after(like or {})
    documents = read_documents(source, options, keep_empty=in_memory, keep_all=keep_all)
    if column is False and labels is not False and documents.report.bad_rows:
        raise ValueError(f"Labels by row need every row, but some rows cannot be read:\n{documents.report}")
    if in_memory and not hasattr(type(source), "columns"):  # a list of texts has no columns to remember
        return replace(documents, reading=None)
    by_row = column is False and labels is not False
    return replace(documents, reading=without_labels(documents.reading)) if by_row else documents


def _documents_of_list(texts: list[object]) -> Documents | None:
    """Documents of a list of texts, without a table; None if an item is not a text that files can store."""
    found = []
    for text in texts:
        if not isinstance(text, str) or not (text.isascii() or is_storable(text)):
            return None
        found.append(text if text and not text.isspace() else "")
    return Documents(list(range(len(found))), found, report=ReadReport("list"), numbered=True)
