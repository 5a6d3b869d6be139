"""An open SQLite file: one connection for writing, and one per thread for reading."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

# Size of the write-ahead log, in bytes, from which it is moved into the file.
LARGE_LOG = 4 << 20


class Database:
    """Connections to an SQLite file.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = self._connect()
        self._writer.executescript(
            # A checkpoint waits for the disk twice, so `tidy` does it in the background.
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
            "PRAGMA foreign_keys = ON;"
        )
        self._writing = threading.Lock()
        self._readers = threading.local()
        self._all_readers: list[sqlite3.Connection] = []

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for writing; its changes are on disk together or not at all."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # on a full disk SQLite may have ended it
                    self._writer.execute("ROLLBACK")
                raise

    def read(self, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Return the rows of a query; each thread has its own connection."""
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = self._readers.connection = self._connect()
            reader.execute("PRAGMA query_only = ON")
            self._all_readers.append(reader)
        return reader.execute(query, tuple(values))

    def tidy(self) -> None:
        """Move a large write-ahead log into the file; labels can be written meanwhile."""
        log = self.path.with_name(self.path.name + "-wal")
        with suppress(OSError, sqlite3.Error):
            if log.stat().st_size > LARGE_LOG:
                with closing(sqlite3.connect(self.path, timeout=30)) as connection:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Move the write-ahead log into the file and close all connections."""
        with self._writing:
            with suppress(sqlite3.Error):
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            for connection in (*self._all_readers, self._writer):
                connection.close()
