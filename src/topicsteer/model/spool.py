"""Spooled corpora: documents and matrix in blocks on disk, for corpora larger than memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from topicsteer.backends.block_folder import BlockError, BlockFolder, write_blocks, writing
from topicsteer.corpora import BadRow, Documents, Labels, ReadOptions, ReadReport, TableStream
from topicsteer.corpora.disk_sequence import DiskSequence, DiskSequenceWriter
from topicsteer.corpora.label_files.formats import read_label_file
from topicsteer.corpora.label_files.records import match_labels
from topicsteer.corpora.options import Names, without_labels
from topicsteer.corpora.read_report import OnError
from topicsteer.corpora.readers.table_file import is_address
from topicsteer.nmf.blocks import slices
from topicsteer.system.files import replacing_folder, write_text
from topicsteer.system.memory import in_bytes
from topicsteer.system.types import JSON, Progress
from topicsteer.system.values import is_missing, plain, plain_id
from topicsteer.text import TextVectorizer

FORMAT = 1
INDEX = "spool.json"
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
    matrix: BlockFolder
    documents: Documents
    vectorizer: TextVectorizer

    @property
    def rows(self) -> BlockFolder:
        """The matrix, as the pipeline names it."""
        return self.matrix

    @property
    def ready(self) -> Spool:
        """The spool itself: `topicsteer.model.pipeline.prepare` has nothing to do."""
        return self


def spool(
    source: Any,
    folder: str | os.PathLike[str],
    *,
    text: Names | None = None,
    labels: Names | Literal[False] | None = None,
    id: str | Literal[False] | None = None,
    forbidden: str | Literal[False] | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    label_file: str | Path | None = None,
    sheet: str | None = None,
    on_error: OnError = "skip",
    like: ReadOptions | None = None,
    vectorizer: TextVectorizer | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Spool:
    r"""Write a corpus that may be larger than memory to disk, ready for a fit.

    The source is read twice: first to choose the columns, then to copy the documents and count their terms. Then the
    blocks are written. Memory grows with the number of distinct words (see `TextVectorizer.fit_blocks`) and by eight
    bytes per document. The disk needs about four bytes per character.

    The folder appears once it is complete. An interrupted run leaves at most a temporary folder next to it, which a
    later run removes. A folder from the same file and the same options is reused.

    Parameters
    ----------
    source : path, address or Dask DataFrame
        A source of `TableStream`.
    folder : path
        A new folder, or the folder of an earlier spool; a spool of another source is replaced.
    text, labels, id, forbidden, separator, encoding, delimiter, label_file, sheet, on_error
        As in `read_table`; the labels of a label file are held in memory for a while. Ids that are neither strings nor
        numbers become strings.
    like : ReadOptions, optional
        Columns of an earlier source, chosen where an option is None and the source has them.
    vectorizer : TextVectorizer, optional
        The vectoriser; a copy is fitted. Default: ``TextVectorizer()``.
    memory : int, optional
        Memory limit of a fit, in bytes. A block is a 64th of it, between 1 and 32 MB, so that several blocks fit in
        memory. Blocks of short texts end with a whole chunk of about 4 MB of text.
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
    options = ReadOptions(
        text, labels, id, forbidden, separator, encoding, delimiter, label_file, on_error, sheet, like
    )
    own = TextVectorizer() if vectorizer is None else clone(vectorizer)
    return put_on_disk(source, Path(folder), options, own, memory=memory, progress=progress)


def put_on_disk(
    source: object,
    folder: Path,
    options: ReadOptions,
    vectorizer: TextVectorizer,
    *,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Spool:
    """As :func:`spool`, with one argument for all reading options; fits the vectoriser itself, not a copy."""
    size = BLOCK if memory is None else min(max(memory // 64, 1 << 20), BLOCK)
    made = _made_from(source, options, vectorizer, size)
    if folder.exists() and not folder.is_dir():
        raise BlockError(f"{folder} is a file; choose a new folder.")
    if folder.exists() and any(folder.iterdir()):
        if not (folder / INDEX).exists():
            raise BlockError(f"{folder} contains files that are not a spooled corpus; choose a new folder.")
        if made is not None and _index(folder).get("made") == made:
            return open_spool(folder, lemmatizer=vectorizer.lemmatizer)

    def report(stage: str, done: int, total: int | None) -> None:
        if progress is not None:
            progress(stage, done, total, "")

    given = None if options.label_file is None else read_label_file(options)
    stream = TableStream.of(source, options, progress=lambda rows: report("columns", rows, None))
    need = f"write {stream.rows:,} documents, which take about {ROOM * stream.characters / 1e9:.1f} GB,"
    with writing(folder.absolute(), need), replacing_folder(folder) as partial:
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
        write_blocks(partial / "blocks", _watched(blocks, len(documents), report))
        _finish(partial, made, documents, vectorizer)
    return open_spool(folder, lemmatizer=vectorizer.lemmatizer)


def open_spool(folder: str | os.PathLike[str], *, lemmatizer: Callable[[str], str] | None = None) -> Spool:
    """Open a spooled corpus.

    Parameters
    ----------
    folder : path
    lemmatizer : callable, optional
        The lemmatizer of the vectoriser, if it had one; functions are not stored.

    Returns
    -------
    Spool

    Raises
    ------
    BlockError
        If the folder is not a spooled corpus, or is damaged.
    """
    folder = Path(folder)
    index = _index(folder)
    try:
        report, state = index["report"], index["vectorizer"]
        bad = tuple(BadRow(**row) for row in report["bad_rows"])
        read = ReadReport(report["source"], tuple(report["guesses"]), bad, tuple(report.get("left_out", ())))
        columns = ReadOptions.from_json(index.get("reading", {}))
        documents = _documents(folder, read, index["numbered"], index.get("columns", []), columns)
        idf = np.array(state["idf"], np.float64)
        vectorizer = TextVectorizer.from_state(state["options"], state["terms"], idf, lemmatizer=lemmatizer)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BlockError(f"{folder} is damaged ({error}); delete it and spool the corpus again.") from error
    return Spool(folder, BlockFolder(folder / "blocks"), documents, vectorizer)


def _index(folder: Path) -> dict[str, Any]:
    try:
        index: dict[str, Any] = json.loads((folder / INDEX).read_text())
        if index["format"] > FORMAT:
            raise BlockError(f"{folder} has format {index['format']}: upgrade topicsteer.")
    except FileNotFoundError as error:
        raise BlockError(f"{folder} has no {INDEX}: it is not a spooled corpus.") from error
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise BlockError(
            f"{folder / INDEX} is damaged ({error}); delete the folder and spool the corpus again."
        ) from error
    return index


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
    version = _version(name)
    if version is None or Path(name).is_dir():
        return 0
    size = int(version[1]) if not is_address(name) else _address_size(name)
    packed = PACKED if name.lower().endswith((".gz", ".parquet", ".pq", ".xlsx", ".xlsm")) else 1
    return NEEDED * packed * size


def _address_size(address: str) -> int:
    import fsspec

    system, path = fsspec.core.url_to_fs(address)
    return int(system.size(path) or 0)


def _made_from(source: object, options: ReadOptions, vectorizer: TextVectorizer, size: int) -> dict[str, JSON] | None:
    """Source and options of a spool, to recognise it; None if the source has no version."""
    parameters = vectorizer.get_params()
    both = (source, options.label_file)
    versions = [_version(os.fspath(one)) if isinstance(one, str | os.PathLike) else None for one in both]
    if parameters.pop("lemmatizer") is not None or versions[0] is None:
        return None
    del parameters["threads"]
    if not isinstance(parameters["stop_words"], str | None):
        parameters["stop_words"] = sorted(parameters["stop_words"])
    parameters["ngram_range"] = list(parameters["ngram_range"])
    reading = options.to_json() | {"on_error": options.on_error, "like": (options.like or ReadOptions()).to_json()}
    return {"versions": versions, "size": size, "reading": reading, "vectorizer": parameters, "columns": SHORT}


def _version(source: str) -> list[Any] | None:
    """Name, size and time of a file, or a unique key of an address; None if there is none."""
    if is_address(source):
        try:
            import fsspec

            system, path = fsspec.core.url_to_fs(source)
            return [source, system.ukey(path)]
        except Exception:  # each protocol has its own errors; reading reports them
            return None
    try:
        found = Path(source).stat()
    except OSError:
        return None
    return [os.path.abspath(source), found.st_size, found.st_mtime_ns]


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


def _finish(folder: Path, made: dict[str, JSON] | None, documents: Documents, vectorizer: TextVectorizer) -> None:
    options, terms, idf = vectorizer.get_state()
    state = {"options": options, "terms": terms, "idf": idf.tolist()}
    read = {"report": asdict(documents.report), "numbered": documents.numbered}
    if documents.reading is not None:
        read["reading"] = documents.reading.to_json()
    index = {"format": FORMAT, "made": made, **read, "vectorizer": state, "columns": list(documents.columns)}
    write_text(folder / INDEX, json.dumps(index))
