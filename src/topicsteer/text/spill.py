"""Ids of words that wait on disk, where those of a large corpus would not fit into memory."""

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from os import PathLike

import numpy as np

from topicsteer.text.tokens import Chunk


class Spill:
    """Chunks in a file without a name, which is gone with this object or with the process, however it ends.

    Parameters
    ----------
    chunks : iterable of Chunk
        Written at once, one after another.
    folder : path
        Where there is room.
    """

    def __init__(self, chunks: Iterable[Chunk], folder: str | PathLike[str]) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._sizes: list[tuple[int, int]] = []
        for ids, starts in chunks:
            self._file.write(ids.astype(np.int32, copy=False).data)
            self._file.write(starts.astype(np.int64, copy=False).data)
            self._sizes.append((len(ids), len(starts)))
        self._file.flush()  # a full disk is noticed here at the latest

    def __iter__(self) -> Iterator[Chunk]:
        """Read the chunks; several loops may take turns."""
        place = 0
        for ids, starts in self._sizes:
            self._file.seek(place)
            data = self._file.read(4 * ids + 8 * starts)
            place += len(data)
            yield np.frombuffer(data, np.int32, ids), np.frombuffer(data, np.int64, starts, 4 * ids)
