"""Models and documents of a command: in memory, block by block, in blocks on disk, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topicsteer.cli.terminal import amount, escape, notify

if TYPE_CHECKING:
    from distributed import Client

    from topicsteer import TopicModel
    from topicsteer.corpora import Documents, EmptyTable, ReadOptions, ReadReport
    from topicsteer.model.predictor import NamedEmbeddings
    from topicsteer.model.spool import Spool
    from topicsteer.system.types import Progress


@contextmanager
def work_folder(out: Path | None, work: Path | None) -> Iterator[Callable[[], Path]]:
    """Yield a function that reserves a folder for temporary files: the user's, or one that is deleted at the end.

    That one is next to the model ``out``; without a model it is a temporary folder of the system.
    """
    from topicsteer.system.arrays import check_folder
    from topicsteer.system.files import Busy, Scratch

    if out is not None:
        check_folder(out)
    scratch = Scratch(work or (None if out is None else out.with_name(out.name + ".work")))
    used = ExitStack()

    def use() -> Path:
        used.enter_context(scratch.in_use())
        return scratch.path

    with used:
        yield use
        if work is None and scratch.claimed:
            with suppress(Busy):  # of another fit
                use()
                scratch.remove()


def read_corpus(
    source: str | Path,
    reading: ReadOptions,
    use: Callable[[], Path],
    memory: str | None,
    model: TopicModel,
    *,
    on_disk: bool = False,
    progress: Progress,
    quiet: bool,
) -> Documents | Spool:
    """Read the corpus of a model into memory, or spool it if memory is too small or ``on_disk`` is set."""
    from topicsteer.model.settings import new_vectorizer
    from topicsteer.model.spool import Spool, memory_needed, open_corpus
    from topicsteer.system.memory import available_memory, in_bytes

    need = memory_needed(source)
    limit = available_memory() if memory is None else in_bytes(memory)
    fits = limit is None or need <= limit
    allowed = "allowed" if memory else "available"
    sizes = f"The fit may need {amount(need)} of memory; {amount(limit)} are {allowed}"
    if fits and not on_disk:
        notify(f"{sizes}: working in memory.", quiet or memory is None)
    elif not fits:
        notify(f"{sizes}: working in blocks on disk, in {use()}.", quiet)
    terms = new_vectorizer(model.vectorizer, model.threads)
    found = open_corpus(source, reading, limit, folder=use, vectorizer=terms, on_disk=on_disk, progress=progress)
    documents = found.documents if isinstance(found, Spool) else found
    notify_report(documents.report, quiet)
    return found


@contextmanager
def cluster(scheduler: str | None, quiet: bool) -> Iterator[Client | None]:
    """Yield the client of a running Dask cluster; None without one."""
    if scheduler is None:
        yield None
        return
    try:
        import distributed
    except ImportError as error:
        raise ImportError("Dask is not installed: pip install 'dask[distributed]'") from error
    dask: Any = distributed
    notify(f"[dim]connecting to {escape(scheduler)}[/dim]", quiet)
    try:
        client = dask.Client(scheduler)
    except (OSError, ValueError) as error:
        raise OSError(f"{error}; use the address that 'dask scheduler' prints when it starts.") from error
    with client:
        yield client


# Bytes of memory per character of a block: the program itself takes most of a limit.
SHARE = 256
# Characters of the smallest block.
SMALLEST = 4_096


class DocumentBlocks:
    """The documents of a source, block by block, one per row. A source without rows is one block without documents.

    Parameters
    ----------
    source : Path
        A file, or a folder, which is one block.
    reading : ReadOptions
    memory : str, optional
        Memory limit, such as "1GB".
    quiet : bool
        Whether to print no guesses and no skipped rows.

    Attributes
    ----------
    rows : int
        Number of rows, good and bad.
    """

    def __init__(self, source: Path, reading: ReadOptions, memory: str | None = None, quiet: bool = False) -> None:
        from topicsteer.corpora import EmptyTable, TableStream
        from topicsteer.corpora.tables import BLOCK_SIZE
        from topicsteer.system.memory import in_bytes

        self._quiet = quiet
        limit = in_bytes(memory)
        size = BLOCK_SIZE if limit is None else min(max(limit // SHARE, SMALLEST), BLOCK_SIZE)
        self._blocks: TableStream | list[Documents]
        try:
            if source.is_dir():
                self._blocks = [read(source, reading, quiet=quiet)]
                self.rows = len(self._blocks[0])
            else:
                self._blocks = TableStream(source, reading, keep_all=True, size=size)
                self.rows = self._blocks.rows
        except EmptyTable as error:
            self._blocks, self.rows = [no_rows(source, quiet, error)], 0

    def __iter__(self) -> Iterator[Documents]:
        """Yield the blocks, and print guesses and skipped rows at the end."""
        yield from self._blocks
        if not isinstance(self._blocks, list):
            notify_report(self._blocks.report, self._quiet)


def no_rows(source: Path, quiet: bool, found: EmptyTable) -> Documents:
    """No documents, but the columns of their table, with a message: an empty table is no failure."""
    from topicsteer.corpora import Documents, ReadOptions

    notify(f"{escape(str(source))} has no rows.", quiet)
    columns: dict[str, list[object]] = {name: [] for name in found.columns}
    return Documents([], [], columns=columns, numbered=True, reading=ReadOptions(id=found.id))


def read_any(source: Path | None, reading: ReadOptions, fitted: TopicModel, quiet: bool) -> Documents:
    """Read the documents of an update: none of a table without rows, and late labels alone without a table."""
    from topicsteer.corpora import EmptyTable

    if source is None:
        return late_labels(fitted, reading, quiet)
    try:
        return read(source, reading, quiet=quiet)
    except EmptyTable as error:
        return no_rows(source, quiet, error)


def late_labels(fitted: TopicModel, reading: ReadOptions, quiet: bool) -> Documents:
    """Late labels of known documents, as documents without texts."""
    from topicsteer.corpora import Documents, Labels, ReadReport, read_labels
    from topicsteer.corpora.label_files import match_labels

    if reading.label_file is None:
        raise ValueError("nothing to update: pass a file of documents, or late labels with --label-file.")
    columns = {name: value for name, value in reading.given().items() if name not in ("text", "label_file", "sheet")}
    found = read_labels(reading.label_file, **columns)
    for record in found.records:
        if record.id is None:
            raise ValueError(f"{reading.label_file}, {record.place}: late labels need the ids of their documents.")
    by_id = Labels([replace(record, text=None) for record in found.records], found.report)
    ids = list(fitted.state_.topics.ids)
    known = Documents(ids, [""] * len(ids), report=ReadReport(str(reading.label_file)))
    changed, report = match_labels(known, by_id, on_error=reading.on_error)
    notify_report(report, quiet)
    has, lacks = zip(*changed.values(), strict=True)
    return Documents([ids[row] for row in changed], [""] * len(changed), list(has), forbidden=list(lacks))


def read(
    source: str | Path, reading: ReadOptions, model: TopicModel | None = None, *, quiet: bool = False
) -> Documents:
    """Read a table or folder, with the columns of a model, and print the guesses and the skipped rows."""
    from topicsteer.corpora import read_documents

    reading = reading if model is None else reading.after(model.state_.reading)
    documents = read_documents(source, reading)
    notify_report(documents.report, quiet)
    return documents


def notify_report(report: ReadReport, quiet: bool) -> None:
    """Print the guesses and the skipped rows of a report, if there are any."""
    notify(f"[dim]{escape(str(report))}[/dim]", quiet or not str(report))


def load(path: Path) -> TopicModel:
    """Load a saved model."""
    from topicsteer import TopicModel

    return TopicModel.load(path, frames="polars")  # commands do not load pandas


def load_with_documents(path: Path, source: Path | None, reading: ReadOptions, quiet: bool) -> TopicModel:
    """Load a saved model, with its training documents if their file is given."""
    fitted = load(path)
    return fitted if source is None else fitted.attach(read(source, reading, fitted, quiet=quiet))


def named_embeddings(name: str | None, fitted: TopicModel | None = None) -> NamedEmbeddings | None:
    """The embeddings of --embeddings; refused for a model without any."""
    from topicsteer.model.predictor import embeddings_named

    if name is None:
        return None
    if fitted is not None and not fitted.state_.encoder and not fitted.state_.uses_embeddings:
        raise ValueError("this model was fitted without embeddings: leave out --embeddings, or fit it again with them.")
    return embeddings_named(name)


def own_embeddings(fitted: TopicModel) -> NamedEmbeddings | None:
    """The embeddings that a fitted model remembers, for an evaluation; an error if it needs others."""
    from topicsteer.model.predictor import missing_embeddings, remembered

    found = remembered(fitted.state_.encoder)
    if found is None and fitted.state_.uses_embeddings:
        raise ValueError(missing_embeddings(fitted.state_.encoder))
    return found
