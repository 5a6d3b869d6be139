"""Compiled loops over bytes and ids: find tokens, number them, join n-grams, weight rows."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

# Kinds of characters: GAP separates tokens, a run of WORD is a token, and so are each two neighbours of kind PAIR.
GAP, WORD, PAIR = 0, 1, 2

_F = TypeVar("_F", bound=Callable[..., Any])


def _compile(function: _F) -> _F:
    """Compile a function to run without the GIL, and keep its type."""
    return cast(_F, njit(cache=True, nogil=True)(function))


@_compile
def split(data: Bytes, starts: Longs, kinds: Bytes) -> tuple[Longs, Longs, Longs]:
    """Find the tokens of UTF-8 texts: begin and end of each token, and the first token of each text."""
    most = len(data) // 2 + len(starts)
    begins, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    firsts = np.zeros(len(starts), np.int64)
    found = 0
    for row in range(len(starts) - 1):
        position, stop = starts[row], starts[row + 1]
        # Positions of the open token and of the last PAIR character; -1 if there is none.
        begin = pair = np.int64(-1)
        while position < stop:
            code, width = np.int64(data[position]), 1
            if code >= 0xF0:
                code, width = code & 0x07, 4
            elif code >= 0xE0:
                code, width = code & 0x0F, 3
            elif code >= 0xC0:
                code, width = code & 0x1F, 2
            for following in range(position + 1, position + width):
                code = code << 6 | np.int64(data[following]) & 0x3F
            kind = kinds[code]
            if kind == WORD and begin < 0:
                begin = position
            elif kind != WORD and begin >= 0:
                begins[found], ends[found] = begin, position
                found += 1
                begin = np.int64(-1)
            if kind == PAIR and pair >= 0:
                begins[found], ends[found] = pair, position + width
                found += 1
            pair = position if kind == PAIR else np.int64(-1)
            position += width
        if begin >= 0:
            begins[found], ends[found] = begin, stop
            found += 1
        firsts[row + 1] = found
    return begins[:found], ends[:found], firsts


@_compile
def number(data: Bytes, begins: Longs, ends: Longs) -> tuple[Ints, Bytes]:
    """Number the distinct tokens in order of appearance; return all ids, and the distinct tokens as lines."""
    ids = np.empty(len(begins), np.int32)
    slots = np.full(1 << 12, -1, np.int32)  # A hash table, at most half full.
    hashes, lines_at = np.empty(1 << 11, np.uint64), np.empty(1 << 11, np.int64)
    lines = np.empty(1 << 14, np.uint8)
    size = length = 0
    for token in range(len(begins)):
        if size == len(hashes):
            hashes = np.concatenate((hashes, np.empty_like(hashes)))
            lines_at = np.concatenate((lines_at, np.empty_like(lines_at)))
            slots = np.full(4 * size, -1, np.int32)
            for known in range(size):
                slot = np.int64(hashes[known] & np.uint64(len(slots) - 1))
                while slots[slot] >= 0:
                    slot = (slot + 1) & (len(slots) - 1)
                slots[slot] = known
        begin, width = begins[token], ends[token] - begins[token]
        code = np.uint64(0xCBF29CE484222325)  # FNV-1a
        for position in range(begin, begin + width):
            code = (code ^ np.uint64(data[position])) * np.uint64(0x100000001B3)
        code ^= code >> np.uint64(32)
        slot = np.int64(code & np.uint64(len(slots) - 1))
        while slots[slot] >= 0:
            if hashes[slots[slot]] == code:
                line, same = lines_at[slots[slot]], 0
                while same < width and lines[line + same] == data[begin + same]:
                    same += 1
                if same == width and lines[line + same] == 10:
                    break
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] < 0:
            slots[slot], hashes[size], lines_at[size] = size, code, length
            size += 1
            while length + width >= len(lines):
                lines = np.concatenate((lines, np.empty_like(lines)))
            for position in range(begin, begin + width):
                lines[length] = data[position]
                length += 1
            lines[length] = 10
            length += 1
        ids[token] = slots[slot]
    return ids, lines[:length]


@_compile
def replace(ids: Ints, starts: Longs, targets: Ints, target_starts: Longs) -> tuple[Ints, Longs]:
    """Replace each id by its targets: none, one or several."""
    length = 0
    for position in range(len(ids)):
        length += target_starts[ids[position] + 1] - target_starts[ids[position]]
    replaced, firsts = np.empty(length, np.int32), np.zeros_like(starts)
    found = 0
    for row in range(len(starts) - 1):
        for position in range(starts[row], starts[row + 1]):
            for target in range(target_starts[ids[position]], target_starts[ids[position] + 1]):
                replaced[found] = targets[target]
                found += 1
        firsts[row + 1] = found
    return replaced, firsts


@_compile
def count(ids: Ints, starts: Longs, seen: Longs, row: int, documents: Longs, total: Longs) -> None:
    """Count the texts and the occurrences of each id.

    ``seen`` holds the last text of each id; ``row`` is the number of the first text.
    """
    for text in range(len(starts) - 1):
        for position in range(starts[text], starts[text + 1]):
            term = ids[position]
            if term >= 0:
                total[term] += 1
                documents[term] += seen[term] != row + text
                seen[term] = row + text


@_compile
def _slot(key: np.int64, keys: Longs) -> np.int64:
    """Slot of a key, or the free slot for it."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((mixed ^ mixed >> np.uint64(32)) & np.uint64(len(keys) - 1))
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


@_compile
def join(
    left: Ints, right: Ints, starts: Longs, order: int, keys: Longs, values: Ints, size: int, grow: bool
) -> tuple[Ints, Longs, Ints, int]:
    """Ids of n-grams, each made of the (n-1)-gram in ``left`` and the last word in ``right``.

    An n-gram that is not in the table gets a new id if ``grow``, else -1.
    """
    joined = np.full(len(left), -1, np.int32)
    for row in range(len(starts) - 1):
        for position in range(starts[row], starts[row + 1] - order + 1):
            first, last = np.int64(left[position]), np.int64(right[position + order - 1])
            if first < 0 or last < 0:
                continue
            if grow and 2 * size == len(keys):
                old_keys, old_values = keys, values
                keys, values = np.full(4 * size, -1, np.int64), np.empty(4 * size, np.int32)
                for old in range(len(old_keys)):
                    if old_keys[old] >= 0:
                        slot = _slot(old_keys[old], keys)
                        keys[slot], values[slot] = old_keys[old], old_values[old]
            key = first << 32 | last
            slot = _slot(key, keys)
            if keys[slot] < 0:
                if not grow:
                    continue
                keys[slot], values[slot] = key, size
                size += 1
            joined[position] = values[slot]
    return joined, keys, values, size


@_compile
def weigh(columns: Ints, starts: Longs, idf: Doubles, sublinear: bool) -> tuple[Longs, Ints, Floats]:
    """Compute TF-IDF rows of unit length with sorted columns; return their sizes, columns and values."""
    sizes = np.zeros(len(starts) - 1, np.int64)
    indices, data = np.empty(columns.size, np.int32), np.empty(columns.size, np.float32)
    end = 0
    for row in range(len(starts) - 1):
        begin = found = end
        for order in range(len(columns)):
            for position in range(starts[row], starts[row + 1]):
                if columns[order, position] >= 0:
                    indices[found] = columns[order, position]
                    found += 1
        indices[begin:found].sort()
        square, position = 0.0, begin
        while position < found:
            column, times = indices[position], 0
            while position < found and indices[position] == column:
                position += 1
                times += 1
            value = (1.0 + np.log(times) if sublinear else float(times)) * idf[column]
            square += value * value
            indices[end], data[end] = column, value
            end += 1
        for position in range(begin, end):
            data[position] /= np.sqrt(square)
        sizes[row] = end - begin
    return sizes, indices[:end].copy(), data[:end].copy()
