"""Distinct words as bytes in one arena, with a hash table: no Python object per word."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import numpy as np

from topicsteer.text import kernels

# Seeds of the hash, new in every process: words cannot be crafted so that they collide. No result depends on them.
SEEDS: kernels.Seeds = np.array([secrets.randbits(64) | 1 for _ in range(3)], dtype=np.uint64)


class WordTable:
    """Distinct words, numbered in order of appearance.

    Examples
    --------
    >>> table = WordTable.of(["tea", "cup", "tea"])
    >>> len(table), table.find(["cup", "leaf"]).tolist(), table.words([1, 0])
    (2, [1, -1], ['cup', 'tea'])
    """

    def __init__(self) -> None:
        self._slots = np.full(1 << 12, -1, np.int32)
        self._hashes, self._starts = np.empty(1 << 11, np.uint64), np.zeros((1 << 11) + 1, np.int64)
        self._arena = np.empty(1 << 14, np.uint8)
        self._size = 0

    @classmethod
    def of(cls, words: Iterable[str]) -> WordTable:
        """The table of these words."""
        table = cls()
        data, limits = _encoded(words)
        table.add(data, limits[:-1], limits[1:])
        return table

    def __len__(self) -> int:
        return self._size

    def add(self, data: kernels.Bytes, begins: kernels.Longs, ends: kernels.Longs) -> kernels.Ints:
        """Ids of the words ``data[begin:end]``; new words get new ids. ``data`` ends as in `kernels.lower`."""
        table = self._slots, self._hashes, self._starts, self._arena, self._size
        found = kernels.add(data, data.view(np.uint64), begins, ends, SEEDS, *table)
        ids, self._slots, self._hashes, self._starts, self._arena, self._size = found
        return ids

    def merge(self, other: WordTable) -> kernels.Ints:
        """Ids of the words of another table; new words get new ids."""
        limits = other._limits
        return self.add(other._arena, limits[:-1], limits[1:])  # an arena has room for two groups at its end

    def find(self, words: Iterable[str]) -> kernels.Ints:
        """Ids of words; -1 for words that are not in the table."""
        data, limits = _encoded(words)
        table = self._slots, self._hashes, self._starts, self._arena
        return kernels.find(data, data.view(np.uint64), limits, SEEDS, *table)

    def words(self, ids: Iterable[int] | kernels.Longs | None = None) -> list[str]:
        """Some words as text; default: all of them."""
        chosen = np.arange(self._size) if ids is None else np.asarray(ids, dtype=np.int64)
        return kernels.lines(self._arena, self._limits, chosen).tobytes().decode().split("\n")[:-1]

    def describe(self) -> tuple[kernels.Ints, kernels.Bytes]:
        """Number of characters and kind of each word; see `kernels.describe`."""
        return kernels.describe(self._arena, self._limits)

    @property
    def _limits(self) -> kernels.Longs:
        return self._starts[: self._size + 1]


def _encoded(words: Iterable[str]) -> tuple[kernels.Bytes, kernels.Longs]:
    """Words as bytes in one array, and the limits of each."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    limits = np.cumsum([0, *map(len, encoded)])
    data = np.zeros((limits[-1] // 8 + 2) * 8, np.uint8)
    data[: limits[-1]] = np.frombuffer(b"".join(encoded), np.uint8)
    return data, limits
