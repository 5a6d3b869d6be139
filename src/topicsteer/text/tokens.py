"""Convert texts to word ids, and words to terms: choose terms, and find the chosen terms in texts.

Distinct words are bytes in one arena with a hash table.
"""

from __future__ import annotations

import dataclasses
import secrets
import tempfile
import unicodedata
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cache, partial
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.machine_code import lazy_module
from topicsteer.system.threads import OrderedMap
from topicsteer.text.words import PAIRED, normal

if TYPE_CHECKING:
    from topicsteer.text import scanner
else:
    scanner = lazy_module("topicsteer.text.scanner")


# Seeds of the hash, new in every process: words cannot be crafted so that they collide. No result depends on them.
SEEDS: scanner.Seeds = np.array([secrets.randbits(64) | 1 for _ in range(3)], dtype=np.uint64)


class WordTable:
    """Distinct words, numbered in order of appearance.

    Examples
    --------
    >>> table = WordTable.of(["tea", "cup", "tea"])
    >>> len(table), table.find(["cup", "leaf"]).tolist(), table.words([1, 0])
    (2, [1, -1], ['cup', 'tea'])
    """

    def __init__(self) -> None:
        self._table: scanner.WordArrays = (
            np.full(1 << 12, -1, np.int32),
            np.empty(1 << 11, np.uint64),
            np.zeros((1 << 11) + 1, np.int64),
            np.empty(1 << 14, np.uint8),
        )
        self._size = 0

    @classmethod
    def of(cls, words: Iterable[str]) -> WordTable:
        """The table of these words."""
        table = cls()
        data, limits = encoded(words)
        table.add(data, limits[:-1], limits[1:])
        return table

    def __len__(self) -> int:
        return self._size

    def add(self, data: scanner.Bytes, begins: scanner.Longs, ends: scanner.Longs) -> scanner.Ints:
        """Ids of the words ``data[begin:end]``; new words get new ids. ``data`` ends as in `scanner.lower`."""
        ids, self._table, self._size = scanner.add(data, begins, ends, SEEDS, self._table, self._size)
        return ids

    def merge(self, other: WordTable) -> scanner.Ints:
        """Ids of the words of another table; new words get new ids."""
        limits = other._limits
        return self.add(other._table[3], limits[:-1], limits[1:])  # an arena has room for two groups at its end

    def find(self, words: Iterable[str]) -> scanner.Ints:
        """Ids of words; -1 for words that are not in the table."""
        data, limits = encoded(words)
        return scanner.find(data, limits, SEEDS, self._table)

    def words(self, ids: Iterable[int] | scanner.Longs | None = None) -> list[str]:
        """Some words as text; default: all of them."""
        chosen = np.arange(self._size) if ids is None else np.asarray(ids, dtype=np.int64)
        return scanner.lines(self._table[3], self._limits, chosen).tobytes().decode().split("\n")[:-1]

    def describe(self) -> tuple[scanner.Ints, scanner.Bytes]:
        """Number of characters and kind of each word; see `scanner.describe`."""
        return scanner.describe(self._table[3], self._limits)

    @property
    def _limits(self) -> scanner.Longs:
        return self._table[2][: self._size + 1]


def encoded(words: Iterable[str]) -> tuple[scanner.Bytes, scanner.Longs]:
    """Words as bytes in one array, and the limits of each."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    limits = np.cumsum([0, *map(len, encoded)])
    data = np.zeros((limits[-1] // 8 + 2) * 8, np.uint8)
    data[: limits[-1]] = np.frombuffer(b"".join(encoded), np.uint8)
    return data, limits


# Word ids of some texts in one array, and the start of each text.
Chunk = tuple[NDArray[np.int32], NDArray[np.int64]]
# Stores chunks so that they can be read several times: `list`, or `Spill` for the disk.
Keep = Callable[[Iterable[Chunk]], Iterable[Chunk]]
# Called with the number of texts read and their total (None if unknown).
TextProgress = Callable[[int, int | None], None]

# Some rows of the matrix: their sizes, columns and values.
RowArrays = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
# Characters per task of a thread.
CHUNK_SIZE = 1 << 22


@dataclass(frozen=True, slots=True)
class Tokens:
    """Distinct words, and the ids of the words of all texts in chunks.

    ``used`` marks the words that may become terms; texts may contain others. None: all of them. ``weak`` marks the weak
    stop words, which are not used.
    """

    words: WordTable
    chunks: Iterable[Chunk]
    n_texts: int
    keep: Keep = list
    used: NDArray[np.bool_] | None = None
    weak: NDArray[np.bool_] | None = None

    @property
    def n_words(self) -> int:
        """Number of words in all texts."""
        return sum(len(ids) for ids, _ in self.chunks)

    @property
    def empty(self) -> bool:
        """Whether there is no word that may become a term."""
        return not len(self.words) if self.used is None else not self.used.any()


class Spill:
    """Chunks on disk, for a corpus that does not fit into memory.

    The file has no name. It disappears with this object or with the process, however the process ends.

    Parameters
    ----------
    chunks : iterable of Chunk
        Written at once, in order.
    folder : path
        A folder with enough room.
    """

    def __init__(self, chunks: Iterable[Chunk], folder: str | PathLike[str]) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._sizes: list[tuple[int, int]] = []
        for ids, starts in chunks:
            self._file.write(ids.astype(np.int32, copy=False).data)
            self._file.write(starts.astype(np.int64, copy=False).data)
            self._sizes.append((len(ids), len(starts)))
        self._file.flush()  # A full disk raises here at the latest.

    def __iter__(self) -> Iterator[Chunk]:
        """Read the chunks; several loops may run at the same time."""
        place = 0
        for ids, starts in self._sizes:
            self._file.seek(place)
            data = self._file.read(4 * ids + 8 * starts)
            place += len(data)
            yield np.frombuffer(data, np.int32, ids), np.frombuffer(data, np.int64, starts, 4 * ids)


def read(
    texts: Iterable[str],
    run: OrderedMap,
    *,
    pairs: bool,
    progress: TextProgress | None = None,
    keep: Keep = list,
    chunk_size: int = CHUNK_SIZE,
) -> Tokens:
    """Split texts into words, as `words_of` does with one text; ids follow the order of first appearance."""
    if isinstance(texts, str | bytes | Mapping) or hasattr(texts, "columns"):
        raise TypeError(
            f"expected a list or column of texts, got a {type(texts).__name__}."
            ' Put a single text in a list: [text]. From a table, pass the column: table["text"].'
        )
    total = len(texts) if isinstance(texts, Sized) else None
    known = WordTable()
    done = 0

    def chunks() -> Iterator[Chunk]:
        nonlocal done
        number = partial(_tokens, kinds=_kinds(pairs))
        for words, ids, starts in run(number, _chunks(texts, chunk_size)):
            yield known.merge(words)[ids], starts
            done += len(starts) - 1
            if progress is not None:
                progress(done, total)

    kept = keep(chunks())
    return Tokens(known, kept, done, keep)


def drop(tokens: Tokens, leave_out: Iterable[str], shortest: int) -> Tokens:
    """Mark numbers, the words to leave out, and words of fewer than ``shortest`` letters as not used."""
    lengths, kinds = tokens.words.describe()
    used = (lengths >= shortest) & (kinds != 1)
    found = tokens.words.find(leave_out)
    used[found[found >= 0]] = False
    others = np.flatnonzero(used & (kinds == 2))  # digits of other scripts
    used[others] = [not word.isdecimal() for word in tokens.words.words(others)]
    return dataclasses.replace(tokens, used=used)


def mark_weak(tokens: Tokens, words: Iterable[str]) -> Tokens:
    """Mark weak stop words."""
    weak = np.zeros(len(tokens.words), np.bool_)
    found = tokens.words.find(words)
    weak[found[found >= 0]] = True
    return dataclasses.replace(tokens, used=~weak if tokens.used is None else tokens.used & ~weak, weak=weak)


def replace(tokens: Tokens, rule: Callable[[str], Iterable[str]], run: OrderedMap) -> Tokens:
    """Replace each word by others: none, one or several."""
    known: dict[str, int] = {}
    targets, firsts = array("i"), array("q", [0])
    for word in tokens.words.words():
        targets.extend(known.setdefault(new, len(known)) for new in rule(word))
        firsts.append(len(targets))
    flat, starts = np.array(targets, np.int32), np.array(firsts, np.int64)
    chunks = tokens.keep(run(lambda chunk: scanner.replace(*chunk, flat, starts), tokens.chunks))
    return dataclasses.replace(tokens, words=WordTable.of(known), chunks=chunks)


def _chunks(texts: Iterable[str], chunk_size: int) -> Iterator[list[str]]:
    """Group texts into lists of about ``chunk_size`` characters; the size does not change any result."""
    chunk: list[str] = []
    size = 0
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"the text in row {row} is {text!r}, a {type(text).__name__}; expected a string."
                ' Drop such rows, or put "" where a text is missing.'
            )
        chunk.append(text)
        size += len(text)
        if size >= chunk_size:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _tokens(texts: list[str], *, kinds: scanner.Bytes) -> tuple[WordTable, scanner.Ints, scanner.Longs]:
    """Distinct words of some texts, the ids of all words, and the start of each text."""
    encoded = [  # the kernel lower-cases ASCII
        text.encode() if text.isascii() else normal(text).encode("utf-8", "surrogatepass") for text in texts
    ]
    data = scanner.lower(np.frombuffer(b"".join(encoded), np.uint8))
    begins, ends, starts = scanner.split(data, np.cumsum([0, *map(len, encoded)]), kinds)
    words = WordTable()
    return words, words.add(data, begins, ends), starts


@cache
def _kinds(pairs: bool) -> scanner.Bytes:
    """Kind of each code point.

    Letters, digits and marks make words. With ``pairs``, scripts without spaces are split into pairs of characters.
    """
    kinds = np.full(0x110000, scanner.GAP, np.uint8)
    for code in range(0x40000):  # There are no letters beyond.
        character = chr(code)
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            kinds[code] = scanner.WORD
    for first, last in PAIRED if pairs else ():
        kinds[first : last + 1] *= scanner.PAIR
    return kinds


def choose(tokens: Tokens, bounds: tuple[float, float], limit: int | None) -> tuple[list[str], scanner.Longs]:
    """Choose the most frequent of the words whose number of texts is within the bounds.

    Returns the terms, sorted, and the number of texts of each.
    """
    texts, occurrences = count(tokens.chunks, len(tokens.words))
    if tokens.used is not None:
        texts[~tokens.used] = 0
    ids = np.flatnonzero((texts >= max(bounds[0], 1)) & (texts <= bounds[1]))
    if limit is not None and len(ids) > limit:
        # Ties at the limit stay for now; the sort below resolves them.
        ids = ids[occurrences[ids] >= np.partition(occurrences[ids], -limit)[-limit]]
    terms = tokens.words.words(ids)
    ranking = np.array(sorted(range(len(terms)), key=terms.__getitem__), dtype=np.int64)
    if limit is not None:  # of equally frequent terms, the first in the alphabet
        ranking = ranking[np.sort(np.argsort(-occurrences[ids[ranking]], kind="stable")[:limit])]
    return [terms[place] for place in ranking.tolist()], texts[ids[ranking]]


def choose_weak(tokens: Tokens, least: float) -> list[str]:
    """The weak stop words that are in enough texts, sorted."""
    if tokens.weak is None:
        return []
    texts = count(tokens.chunks, len(tokens.words))[0]
    return sorted(tokens.words.words(np.flatnonzero(tokens.weak & (texts >= max(least, 1)))))


def columns_of(terms: Iterable[str], words: WordTable) -> scanner.Ints:
    """The column of each word id; -1 for words that are no terms."""
    columns = np.full(len(words) + 1, -1, np.int32)  # the last entry is for terms that no text has
    found = words.find(terms)
    columns[found] = np.arange(len(found))
    return columns[:-1]


def weigh(chunk: Chunk, columns: scanner.Ints, idf: scanner.Doubles, sublinear: bool) -> RowArrays:
    """TF-IDF rows of unit length; a sublinear TF is 1 + log count."""
    return scanner.weigh(columns[chunk[0]], chunk[1], idf, sublinear)


def count(chunks: Iterable[Chunk], size: int) -> tuple[scanner.Longs, scanner.Longs]:
    """Number of texts and of occurrences of each id."""
    seen, texts, occurrences = np.full(size, -1), np.zeros(size, np.int64), np.zeros(size, np.int64)
    row = 0
    for ids, starts in chunks:
        scanner.count(ids, starts, seen, row, texts, occurrences)
        row += len(starts) - 1
    return texts, occurrences
