"""Corpora of any size for the commands: in memory, in blocks on disk, or on a cluster."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import BadParameter

from topicsteer.cli.terminal import amount, escape, notify, notify_report, read

if TYPE_CHECKING:
    from distributed import Client

    from topicsteer.corpora import Documents, ReadOptions
    from topicsteer.model.spool import Spool
    from topicsteer.system.types import Progress
    from topicsteer.text import TextVectorizer


@contextmanager
def work_folder(out: Path | None, work: Path | None) -> Iterator[Callable[[], Path]]:
    """Yield a function that reserves a folder for temporary files: the user's, or one that is deleted at the end.

    That one is next to the model ``out``; without a model it is a temporary folder of the system.
    """
    from topicsteer.system.arrays import check_folder
    from topicsteer.system.files import Scratch
    from topicsteer.system.lock import Busy

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
    reading: "ReadOptions",
    use: Callable[[], Path],
    memory: str | None,
    client: "Client | None",
    progress: "Progress",
    quiet: bool,
    vectorizer: "TextVectorizer | None" = None,
) -> "tuple[Documents | Spool, Path | None]":
    """Read the corpus into memory, or spool it to a folder if memory is too small or a cluster is used."""
    from topicsteer.model.spool import memory_needed, spool
    from topicsteer.system.memory import available_memory, in_bytes

    need, limit = memory_needed(source), available_memory() if memory is None else in_bytes(memory)
    in_memory = limit is None or need <= limit
    sizes = f"The fit may need {amount(need)} of memory; {amount(limit)} are {'allowed' if memory else 'available'}"
    if (isinstance(source, Path) and source.is_dir()) or (in_memory and client is None):
        notify(f"{sizes}: working in memory.", quiet or memory is None)
        return read(source, reading, quiet=quiet), use() if client is not None else None
    folder = use()
    notify(f"{sizes}: working in blocks on disk, in {folder}.", quiet or in_memory)
    found = spool(source, folder / "corpus", **reading.given(), vectorizer=vectorizer, memory=limit, progress=progress)
    notify_report(found.documents.report, quiet)
    return found, folder


@contextmanager
def cluster(workers: int | None, scheduler: str | None, quiet: bool) -> "Iterator[Client | None]":
    """Yield the client of a local or remote Dask cluster; None without one."""
    if workers is None and scheduler is None:
        yield None
        return
    if workers is not None and scheduler is not None:
        raise BadParameter("use either --workers (local processes) or --scheduler (a running cluster), not both")
    try:
        import distributed
    except ImportError as error:
        raise ImportError("Dask is not installed: pip install 'dask[distributed]'") from error
    dask: Any = distributed
    if scheduler is not None:
        notify(f"[dim]connecting to {escape(scheduler)}[/dim]", quiet)
        try:
            client = dask.Client(scheduler)
        except (OSError, ValueError) as error:
            raise OSError(f"{error}; use the address that 'dask scheduler' prints when it starts.") from error
        with client:
            yield client
        return
    from topicsteer.backends.local_cluster import start_cluster

    try:
        here = start_cluster(workers or 1)
    except ImportError as error:
        raise ImportError(f"{error}. --workers encrypts its connections: pip install cryptography") from error
    with here, dask.Client(here, direct_to_workers=True) as client:
        notify(f"[dim]{workers} worker processes[/dim]", quiet)
        yield client
