"""Convert words to terms: build n-grams, choose terms, and find the chosen terms in texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from topicsteer.system.lazy import lazy_module
from topicsteer.text.tokens import Chunk, Tokens, WordTable

if TYPE_CHECKING:
    from topicsteer.text import scanner
else:
    scanner = lazy_module("topicsteer.text.scanner")


class Grams:
    """Ids of n-grams of one order; each n-gram is an (n-1)-gram and the word after it."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.size = 0
        # A hash table. A key is the id of the (n-1)-gram × 2³² + the id of the last word.
        self._keys = np.full(1 << 10, -1, np.int64)
        self._values = np.empty(1 << 10, np.int32)

    def add(self, left: scanner.Ints, words: scanner.Ints, starts: scanner.Longs) -> scanner.Ints:
        """Ids of the n-grams that start at each word, -1 if there is none; new n-grams get new ids."""
        ids, self._keys, self._values, self.size = scanner.join(
            left, words, starts, self.order, self._keys, self._values, self.size, True
        )
        return ids

    def find(self, left: scanner.Ints, words: scanner.Ints, starts: scanner.Longs) -> scanner.Ints:
        """Ids of the known n-grams that start at each word; -1 if there is none."""
        return scanner.join(left, words, starts, self.order, self._keys, self._values, self.size, False)[0]

    def parts(self) -> tuple[scanner.Longs, scanner.Longs]:
        """The (n-1)-gram and the last word of each id."""
        used = np.flatnonzero(self._keys >= 0)
        keys = self._keys[used[np.argsort(self._values[used])]]
        return keys >> 32, keys & 0xFFFFFFFF


def choose(
    tokens: Tokens, ngram_range: tuple[int, int], bounds: tuple[float, float], limit: int | None
) -> tuple[list[str], scanner.Longs]:
    """Choose the most frequent of the terms whose number of texts is within the bounds.

    Returns the terms, sorted, and the number of texts of each.
    """
    least, most = bounds
    lowest, highest = ngram_range
    lasts = grams = tokens.chunks
    size = len(tokens.words)
    tables: dict[int, Grams] = {}
    # Order, id, number of texts and number of occurrences of each candidate.
    found = np.empty((4, 0), np.int64)
    for order in range(1, highest + 1):
        if order > 1:
            table = tables[order] = Grams(order)
            grams = tokens.keep(
                (table.add(left, last, starts), starts) for (left, starts), (last, _) in zip(grams, lasts, strict=True)
            )
            size = table.size
        texts, occurrences = count(grams, size)
        if order == 1 and tokens.used is not None:
            texts[~tokens.used] = 0
        if order >= lowest:
            ids = np.flatnonzero((texts >= max(least, 1)) & (texts <= most))
            found = np.hstack([found, [np.full_like(ids, order), ids, texts[ids], occurrences[ids]]])
        if order < highest:
            # An n-gram with a rare part is rare itself. The last entry is for id -1.
            frequent = np.append(texts >= least, False)
            grams = tokens.keep((np.where(frequent[ids], ids, np.int32(-1)), starts) for ids, starts in grams)
            lasts = grams if order == 1 else lasts
    if limit is not None and found.shape[1] > limit:
        # Ties at the limit stay for now; the sort below resolves them.
        found = found[:, found[3] >= np.partition(found[3], -limit)[-limit]]

    def spell(order: int, ids: scanner.Longs) -> list[str]:
        if order == 1:
            return tokens.words.words(ids)
        heads, tails = (part[ids] for part in tables[order].parts())
        return [f"{head} {tail}" for head, tail in zip(spell(order - 1, heads), spell(1, tails), strict=True)]

    terms = [term for order in range(lowest, highest + 1) for term in spell(order, found[1, found[0] == order])]
    ranking = np.array(sorted(range(len(terms)), key=terms.__getitem__), dtype=np.int64)
    if limit is not None:  # of equally frequent terms, the first in the alphabet
        ranking = ranking[np.sort(np.argsort(-found[3, ranking], kind="stable")[:limit])]
    return [terms[place] for place in ranking.tolist()], found[2, ranking]


class Finder:
    """Finds the columns of terms in texts of word ids."""

    def __init__(self, terms: Iterable[str], words: WordTable, highest: int) -> None:
        joined = list(terms)  # one text per term
        lengths = np.array([term.count(" ") + 1 for term in joined], np.int64)
        parts = joined if highest == 1 else [part for term in joined for part in term.split(" ")]
        flat, starts = words.find(parts), np.append(0, np.cumsum(lengths))
        self._tables = [Grams(order) for order in range(2, highest + 1)]
        # Column of each id, one array per order; the last entry is for id -1.
        self._columns: list[scanner.Ints] = []
        grams, size = flat, len(words)
        for order in range(1, highest + 1):
            if order > 1:
                table = self._tables[order - 2]
                grams, size = table.add(grams, flat, starts), table.size
            whole = np.flatnonzero(lengths == order)
            columns = np.full(size + 1, -1, np.int32)
            columns[grams[starts[whole]]] = whole
            columns[-1] = -1
            self._columns.append(columns)

    def columns(self, chunk: Chunk) -> scanner.Ints:
        """Columns of the terms that start at each word, one row per order; -1 if there is none."""
        words, starts = chunk
        grams = [words]
        for table in self._tables:
            grams.append(table.find(grams[-1], words, starts))
        return np.stack([columns[ids] for columns, ids in zip(self._columns, grams, strict=True)])


def count(chunks: Iterable[Chunk], size: int) -> tuple[scanner.Longs, scanner.Longs]:
    """Number of texts and of occurrences of each id."""
    seen, texts, occurrences = np.full(size, -1), np.zeros(size, np.int64), np.zeros(size, np.int64)
    row = 0
    for ids, starts in chunks:
        scanner.count(ids, starts, seen, row, texts, occurrences)
        row += len(starts) - 1
    return texts, occurrences
