"""Compiled loops over bytes and ids: find tokens, number them, weight rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.machine_code import jit
from topicsteer.text.words import WEAK_BELOW

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Seeds = NDArray[np.uint64]
# A hash table of words: slots, at most half of them used; hash and start of each word, with room for more; the bytes of
# the words.
WordArrays = tuple[Ints, Seeds, Longs, Bytes]

# Kinds of characters: GAP separates tokens, a run of WORD is a token, and so are each two neighbours of kind PAIR.
GAP, WORD, PAIR = 0, 1, 2

_compile = jit(nogil=True)


@_compile
def lower(data: Bytes) -> Bytes:
    """Lower-case the ASCII letters of UTF-8 texts; no other byte changes. Up to 16 zeros follow, see :func:`eight`."""
    out = np.zeros((len(data) // 8 + 2) * 8, np.uint8)
    for position in range(len(data)):
        byte = data[position]
        out[position] = byte | np.uint8(32) if np.uint8(byte - np.uint8(65)) < 26 else byte
    return out


@_compile
def eight(groups: Seeds, begin: int) -> Any:
    """Eight bytes from any position, the first one lowest; ``groups`` are the bytes in aligned groups of eight."""
    low, shift = groups[begin >> 3], np.uint64(8 * (begin & 7))
    high = groups[(begin >> 3) + 1]
    return low >> shift | (high << np.uint64(1)) << (np.uint64(63) - shift)


@_compile
def hash_of(groups: Seeds, begin: int, end: int, seeds: Seeds) -> Any:
    """Hash of some bytes, eight at a time; nobody can predict it without the seeds.

    Two words of one length up to eight bytes never have the same hash, since each step can be undone.
    """
    code = seeds[0] ^ np.uint64(end - begin)
    while begin + 8 <= end:
        code = (code ^ eight(groups, begin)) * seeds[1]
        code ^= code >> np.uint64(32)
        begin += 8
    if begin < end:
        code ^= eight(groups, begin) & (np.uint64(1) << np.uint64(8 * (end - begin))) - np.uint64(1)
        code *= seeds[1]
        code ^= code >> np.uint64(32)
    code *= seeds[2]
    return code ^ code >> np.uint64(29)


@_compile
def grown(hashes: Seeds, size: int) -> Ints:
    """Return a hash table of four times as many slots as words."""
    slots = np.full(4 * size, -1, np.int32)
    for known in range(size):
        slot = np.int64(hashes[known] & np.uint64(len(slots) - 1))
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = known
    return slots


@_compile
def slot_of(code: np.uint64, data: Bytes, begin: int, end: int, table: WordArrays) -> np.int64:
    """Find the slot of a word in a hash table, or the free slot for it."""
    slots, hashes, starts, arena = table
    slot = np.int64(code & np.uint64(len(slots) - 1))
    while slots[slot] >= 0:
        known = slots[slot]
        if hashes[known] == code and starts[known + 1] - starts[known] == end - begin:
            same, line = end - begin if end - begin <= 8 else 0, starts[known]
            while same < end - begin and arena[line + same] == data[begin + same]:
                same += 1
            if same == end - begin:
                break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@_compile
def number(
    data: Bytes, begins: Longs, ends: Longs, seeds: Seeds, table: WordArrays, size: int, token: int, ids: Ints
) -> tuple[int, int]:
    """Number words from ``token`` on, as far as the table has room; return the next token and the number of words.

    The arrays never change their place here: the loop would be slower if they could.
    """
    slots, hashes, starts, arena = table
    groups = data.view(np.uint64)
    while token < len(begins) and size < len(hashes):
        begin, end = begins[token], ends[token]
        code = hash_of(groups, begin, end, seeds)
        slot = slot_of(code, data, begin, end, table)
        if slots[slot] < 0:
            length, width = starts[size], end - begin
            if length + width + 16 > len(arena):  # two groups of eight stay free, see `eight`
                break
            for position in range(width):
                arena[length + position] = data[begin + position]
            slots[slot], hashes[size], starts[size + 1] = size, code, length + width
            size += 1
        ids[token] = slots[slot]
        token += 1
    return token, size


@_compile
def add(
    data: Bytes, begins: Longs, ends: Longs, seeds: Seeds, table: WordArrays, size: int
) -> tuple[Ints, WordArrays, int]:
    """Number words in order of appearance; return their ids, and the table with the new words and their number."""
    ids = np.empty(len(begins), np.int32)
    token = 0
    while True:
        token, size = number(data, begins, ends, seeds, table, size, token, ids)
        if token == len(begins):
            return ids, table, size
        slots, hashes, starts, arena = table
        if size == len(hashes):
            hashes = np.concatenate((hashes, np.empty_like(hashes)))
            starts = np.concatenate((starts[: size + 1], np.empty_like(starts)))
            slots = grown(hashes, size)
        while starts[size] + ends[token] - begins[token] + 16 > len(arena):
            arena = np.concatenate((arena, np.empty_like(arena)))
        table = (slots, hashes, starts, arena)


@_compile
def find(data: Bytes, limits: Longs, seeds: Seeds, table: WordArrays) -> Ints:
    """Find the ids of words in a hash table; -1 for other words."""
    ids = np.empty(len(limits) - 1, np.int32)
    groups = data.view(np.uint64)
    for word in range(len(ids)):
        begin, end = limits[word], limits[word + 1]
        code = hash_of(groups, begin, end, seeds)
        ids[word] = table[0][slot_of(code, data, begin, end, table)]
    return ids


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
            if code < 0x80 and pair < 0:  # the usual case: a gap and a run of ASCII
                if kinds[code] != WORD:
                    if begin >= 0:
                        begins[found], ends[found] = begin, position
                        found += 1
                        begin = np.int64(-1)
                    position += 1
                    continue
                if begin < 0:
                    begin = position
                position += 1
                while position < stop and data[position] < 0x80 and kinds[data[position]] == WORD:
                    position += 1
                continue
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
def describe(arena: Bytes, starts: Longs) -> tuple[Ints, Bytes]:
    """Number of characters of each word, and its kind: 0 for other words, 1 for ASCII digits only, 2 if not ASCII."""
    lengths, kinds = np.zeros(len(starts) - 1, np.int32), np.zeros(len(starts) - 1, np.uint8)
    for word in range(len(lengths)):
        digits, ascii_only = True, True
        for position in range(starts[word], starts[word + 1]):
            byte = arena[position]
            lengths[word] += (byte & 0xC0) != 0x80
            digits &= (byte >= 48) & (byte <= 57)
            ascii_only &= byte < 0x80
        kinds[word] = 1 if digits else 0 if ascii_only else 2
    return lengths, kinds


@_compile
def lines(arena: Bytes, starts: Longs, ids: Longs) -> Bytes:
    """Some words as lines of text."""
    length = 0
    for word in ids:
        length += starts[word + 1] - starts[word] + 1
    out, end = np.empty(length, np.uint8), 0
    for word in ids:
        for position in range(starts[word], starts[word + 1]):
            out[end] = arena[position]
            end += 1
        out[end] = 10
        end += 1
    return out


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
def weigh(columns: Ints, starts: Longs, idf: Doubles, sublinear: bool) -> tuple[Longs, Ints, Floats]:
    """Compute TF-IDF rows of unit length with sorted columns; return their sizes, columns and values.

    Weak words do not count towards the length; a row without other words stays empty.
    """
    sizes = np.zeros(len(starts) - 1, np.int64)
    indices, data = np.empty(columns.size, np.int32), np.empty(columns.size, np.float32)
    counts = np.zeros(len(idf), np.int32)
    end = 0
    for row in range(len(starts) - 1):
        begin = found = end
        for position in range(starts[row], starts[row + 1]):
            column = columns[position]
            if column >= 0:
                if counts[column] == 0:
                    indices[found] = column
                    found += 1
                counts[column] += 1
        indices[begin:found].sort()
        square = 0.0
        for position in range(begin, found):
            column = indices[position]
            times = counts[column]
            counts[column] = 0
            value = (1.0 + np.log(times) if sublinear else float(times)) * idf[column]
            if idf[column] >= WEAK_BELOW:
                square += value * value
            data[position] = value
        if square == 0.0:
            found = begin
        for position in range(begin, found):
            data[position] /= np.sqrt(square)
        sizes[row], end = found - begin, found
    return sizes, indices[:end].copy(), data[:end].copy()
