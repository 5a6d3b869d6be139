"""Convert texts to word ids, and list the distinct words."""

import dataclasses
import tempfile
import unicodedata
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cache, partial
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.threads import OrderedMap
from topicsteer.text import kernels
from topicsteer.text.scripts import PAIRED
from topicsteer.text.segmenters import Segment, spaced
from topicsteer.text.word_table import WordTable

# Word ids of some texts in one array, and the start of each text.
Chunk = tuple[kernels.Ints, kernels.Longs]
# Stores chunks so that they can be read several times: `list`, or `Spill` for the disk.
Keep = Callable[[Iterable[Chunk]], Iterable[Chunk]]
# Called with the number of texts read and their total (None if unknown).
TextProgress = Callable[[int, int | None], None]

# Characters per task of a thread.
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Tokens:
    """Distinct words, and the ids of the words of all texts in chunks.

    ``used`` marks the words that may become terms; texts may contain others. None: all of them.
    """

    words: WordTable
    chunks: Iterable[Chunk]
    n_texts: int
    keep: Keep = list
    used: NDArray[np.bool_] | None = None

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
    digits: bool,
    pairs: bool,
    segment: Segment | None = None,
    progress: TextProgress | None = None,
    keep: Keep = list,
) -> Tokens:
    """Split texts into words; ids follow the order of first appearance. A segmenter divides them first."""
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
        for words, ids, starts in run(partial(_tokens, kinds=_kinds(digits, pairs)), _chunks(texts, segment)):
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


def only_used(tokens: Tokens, run: OrderedMap) -> Tokens:
    """Texts without the words that are not used, so that n-grams skip them."""
    if tokens.used is None:
        return tokens
    kept, starts = np.flatnonzero(tokens.used).astype(np.int32), np.append(0, np.cumsum(tokens.used))
    chunks = tokens.keep(run(lambda chunk: kernels.replace(*chunk, kept, starts), tokens.chunks))
    return dataclasses.replace(tokens, chunks=chunks)


def replace(tokens: Tokens, rule: Callable[[str], Iterable[str]], run: OrderedMap) -> Tokens:
    """Replace each word by others: none, one or several."""
    known: dict[str, int] = {}
    targets, firsts = array("i"), array("q", [0])
    for word in tokens.words.words():
        targets.extend(known.setdefault(new, len(known)) for new in rule(word))
        firsts.append(len(targets))
    flat, starts = np.array(targets, np.int32), np.array(firsts, np.int64)
    chunks = tokens.keep(run(lambda chunk: kernels.replace(*chunk, flat, starts), tokens.chunks))
    return Tokens(WordTable.of(known), chunks, tokens.n_texts, tokens.keep)


def _chunks(texts: Iterable[str], segment: Segment | None) -> Iterator[list[str]]:
    """Group texts into lists of about `_CHUNK` characters; the size does not change any result."""
    chunk: list[str] = []
    size = 0
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"the text in row {row} is {text!r}, a {type(text).__name__}; expected a string."
                ' Drop such rows, or put "" where a text is missing.'
            )
        chunk.append(text if segment is None else spaced(text, segment))
        size += len(text)
        if size >= _CHUNK:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _tokens(texts: list[str], *, kinds: kernels.Bytes) -> tuple[WordTable, kernels.Ints, kernels.Longs]:
    """Distinct words of some texts, the ids of all words, and the start of each text."""
    encoded = [  # the kernel lower-cases ASCII
        text.encode() if text.isascii() else unicodedata.normalize("NFC", text).lower().encode("utf-8", "surrogatepass")
        for text in texts
    ]
    data = kernels.lower(np.frombuffer(b"".join(encoded), np.uint8))
    begins, ends, starts = kernels.split(data, np.cumsum([0, *map(len, encoded)]), kinds)
    words = WordTable()
    return words, words.add(data, begins, ends), starts


@cache
def _kinds(digits: bool, pairs: bool) -> kernels.Bytes:
    """Kind of each code point.

    Letters and marks make words, and digits too if ``digits``. With ``pairs``, scripts without spaces are split into
    pairs of characters.
    """
    kinds = np.full(0x110000, kernels.GAP, np.uint8)
    for code in range(0x40000):  # There are no letters beyond.
        character = chr(code)
        if (character.isalnum() if digits else character.isalpha()) or unicodedata.category(character)[0] == "M":
            kinds[code] = kernels.WORD
    for first, last in PAIRED if pairs else ():
        kinds[first : last + 1] *= kernels.PAIR
    return kinds
