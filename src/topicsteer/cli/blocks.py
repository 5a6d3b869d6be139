"""Documents of a command in blocks: memory holds one block, whatever the size of the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from topicsteer.cli.terminal import escape, notify, notify_report, read

if TYPE_CHECKING:
    from topicsteer.corpora import Documents, EmptyTable, ReadOptions

# Bytes of memory per character of a block: the program itself takes most of a limit.
SHARE = 256
# Characters of the smallest block.
SMALLEST = 4_096


class DocumentBlocks:
    """The documents of a source, block by block. A source without rows is one block without documents.

    Parameters
    ----------
    source : Path
        A file, or a folder, which is one block.
    reading : ReadOptions
    memory : str, optional
        Memory limit, such as "1GB".
    quiet : bool
        Whether to print no guesses and no skipped rows.
    keep_all : bool
        Whether every row of a table is a document, as in `read_documents`.

    Attributes
    ----------
    rows : int
        Number of rows, good and bad.
    """

    def __init__(
        self,
        source: Path,
        reading: ReadOptions,
        memory: str | None = None,
        quiet: bool = False,
        *,
        keep_all: bool = False,
    ) -> None:
        from topicsteer.corpora import EmptyTable, TableStream
        from topicsteer.corpora.stream import BLOCK_SIZE
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
                self._blocks = TableStream.of(source, reading, keep_all=keep_all, size=size)
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


def read_any(source: Path, reading: ReadOptions, quiet: bool) -> Documents:
    """Read a source; a table without rows has no documents."""
    from topicsteer.corpora import EmptyTable

    try:
        return read(source, reading, quiet=quiet)
    except EmptyTable as error:
        return no_rows(source, quiet, error)
