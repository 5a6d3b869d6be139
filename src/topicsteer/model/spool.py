"""Spooled corpora: documents and matrix in blocks on disk, for corpora larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topicsteer.corpora import Documents, Labels, ReadOptions, ReadReport, TableStream, read_documents
from topicsteer.corpora.documents import DEFAULT, DiskSequence, DiskSequenceWriter, OnError, without_labels
from topicsteer.corpora.label_files import match_labels, read_label_file
from topicsteer.corpora.readers.table_file import is_address
from topicsteer.nmf.blocks import slices
from topicsteer.system.files import replacing_folder
from topicsteer.system.machine_code import lazy_module
from topicsteer.system.memory import in_bytes
from topicsteer.system.types import JSON, Progress
from topicsteer.system.values import is_missing, plain, plain_id
from topicsteer.text.vectorizer import TextVectorizer

if TYPE_CHECKING:
    from topicsteer.backends import block_folder
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
    source : path, address or Dask DataFrame
        A source of `TableStream`.
    folder : path
        A new folder, or the folder of an earlier spool, which is replaced.
    options : ReadOptions, optional
        Columns, encoding, label file and bad rows; the labels of a label file are held in memory for a while. Ids that
        are neither strings nor numbers become strings.
    vectorizer : TextVectorizer, optional
        The vectoriser; a copy is fitted. Default: ``TextVectorizer()``.
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
    vectorizer = TextVectorizer() if vectorizer is None else TextVectorizer(**vectorizer.get_params())
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
        documents = _documents(partial, stream.report, stream.numbered, more, stream.reading)
        if given is not None:
            documents = _label(partial, documents, given, options.on_error)
        block_folder.write_blocks(partial / "blocks", _watched(blocks, len(documents), report))
        (partial / MARK).touch()
    documents = _documents(folder, documents.report, documents.numbered, more, documents.reading)
    return Spool(folder, block_folder.BlockFolder(folder / "blocks"), documents, vectorizer)


def _place(folder: Path, number: int) -> Path:
    """Files of a further column."""
    return folder / f"column-{number}"


def _documents(
    folder: Path, report: ReadReport, numbered: bool, more: Sequence[str], reading: ReadOptions | None
) -> Documents:
    ids, texts, labels, forbidden = (DiskSequence(folder / name) for name in COLUMNS)
    columns = {name: DiskSequence(_place(folder, number)) for number, name in enumerate(more)}
    return Documents(ids, texts, labels, columns, forbidden, report, numbered, reading)


def _label(folder: Path, documents: Documents, given: Labels, on_error: OnError) -> Documents:
    """Write the labels of a label file; the documents have no labels yet."""
    changed, report = match_labels(documents, given, on_error=on_error)
    for column, name in enumerate(COLUMNS[2:]):
        with DiskSequenceWriter(folder / name) as writer:
            for rows in slices(len(documents), 1 << 16):
                writer.extend(changed.get(row, ([], []))[column] for row in range(rows.start, rows.stop))
    reading = without_labels(documents.reading)
    return _documents(folder, report, documents.numbered, list(documents.columns), reading)


def open_corpus(
    source: str | os.PathLike[str],
    options: ReadOptions,
    memory: int | None,
    *,
    folder: Callable[[], Path],
    vectorizer: TextVectorizer,
    on_disk: bool = False,
    progress: Progress | None = None,
) -> Documents | Spool:
    """Read documents into memory, or write them to a folder if they need more than ``memory`` bytes.

    A folder of texts is always read into memory. ``on_disk`` writes every other source to disk.
    """
    if Path(source).is_dir() or not (on_disk or too_large(source, memory)):
        return read_documents(source, options)
    return spool(source, folder() / "corpus", options, vectorizer=vectorizer, memory=memory, progress=progress)


def too_large(source: Any, memory: int | str | None) -> bool:
    """Whether a source is processed on disk: a Dask DataFrame, or a file that needs more memory than the limit."""
    if hasattr(source, "dask"):
        return True
    limit = in_bytes(memory)
    return limit is not None and isinstance(source, str | os.PathLike) and memory_needed(source) > limit


def memory_needed(source: str | os.PathLike[str]) -> int:
    """Estimated bytes of a fit in memory, from the size of its file.

    The estimate is ten times the plain text, measured on fits to hundreds of thousands of abstracts.
    """
    name = os.fspath(source)
    packed = PACKED if name.lower().endswith((".gz", ".parquet", ".pq", ".xlsx", ".xlsm")) else 1
    return NEEDED * packed * _size(name)


def _size(name: str) -> int:
    """Return the bytes of a file or an address; 0 for a folder, and for an error, which reading reports."""
    if not is_address(name):
        return Path(name).stat().st_size if Path(name).is_file() else 0
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(name)
        return int(system.size(path) or 0)
    except Exception:  # each protocol has its own errors
        return 0


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
