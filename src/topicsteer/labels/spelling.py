"""The one rule for labels that people type: a topic has one name, and probable misspellings are listed.

Spellings that differ in Unicode form, case or spaces are one name, and the most frequent of them is shown. A rare name
that resembles a frequent one is a near miss: people decide on it.
"""

import difflib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from topicsteer.system.values import NONE, fold, tidy

# A near miss is at least this similar to the right name: one wrong letter in five.
SIMILAR = 0.8
# The right name of a near miss has at least this many times as many labels.
TIMES = 3
# Similarity of a name in a hint, which a person reads at once.
HINT = 0.6


def names_by_fold(counts: Mapping[str, float], separator: str | None = None) -> dict[str, str]:
    """Return the most frequent spelling of each name, by its folded form; in paths, of each level.

    Of equally frequent spellings the first one in the alphabet counts.

    Parameters
    ----------
    counts : mapping of str to number
        Number of labels per spelling.
    separator : str, optional
        Separator of names that are paths through a tree.

    Examples
    --------
    >>> names_by_fold({"us": 3, "US": 4, "new  york": 1})
    {'us': 'US', 'new york': 'new york'}
    >>> names_by_fold({"Sport / golf": 2, "sport/Tennis": 1, "Sport": 1}, "/")
    {'sport': 'Sport', 'sport/golf': 'Sport/golf', 'sport/tennis': 'Sport/Tennis'}
    """
    votes: dict[tuple[str, ...], defaultdict[str, float]] = {}
    for written, count in counts.items():
        parts = [tidy(part) for part in ([written] if separator is None else written.split(separator))]
        for depth, part in enumerate(parts, 1):
            votes.setdefault(tuple(map(fold, parts[:depth])), defaultdict(float))[part] += count
    levels: dict[tuple[str, ...], list[str]] = {(): []}
    for path in sorted(votes, key=len):
        best = min(votes[path], key=lambda part: (-votes[path][part], part))
        levels[path] = [*levels[path[:-1]], best]
    between = separator or ""
    return {between.join(path): between.join(levels[path]) for path in votes}


@dataclass(frozen=True)
class NearMiss:
    """A rare name that is probably a misspelling of a frequent one, and the numbers of their labels.

    Examples
    --------
    >>> print(NearMiss("Copmany", 1, "Company", 6))
    Copmany (1) → Company (6)?
    """

    written: str
    count: int
    name: str
    of: int

    def __str__(self) -> str:
        return f"{self.written} ({self.count:,}) → {self.name} ({self.of:,})?"


def near_misses(counts: Mapping[str, int]) -> list[NearMiss]:
    """Return the names that are probably misspellings, rarest first.

    A near miss has the first letter and the digits of the right name, which has at least three times as many labels.
    So "illegal" is no near miss of "legal", nor "type 1" of "type 2".

    Parameters
    ----------
    counts : mapping of str to int
        Number of labels per name, after `names_by_fold`.

    Examples
    --------
    >>> [str(found) for found in near_misses({"Company": 6, "Copmany": 1, "School": 4, "Album": 1})]
    ['Copmany (1) → Company (6)?']
    """
    folded = {name: fold(name) for name in counts if name != NONE}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, key in folded.items():
        groups.setdefault((key[:1], *filter(str.isdigit, key)), []).append(name)
    found = []
    for names in groups.values():
        for name in names:
            usual = {folded[other]: other for other in names if counts[other] >= TIMES * counts[name]}
            near = difflib.get_close_matches(folded[name], usual, n=1, cutoff=SIMILAR)
            if near:
                right = usual[near[0]]
                found.append(NearMiss(name, counts[name], right, counts[right]))
    return sorted(found, key=lambda miss: (miss.count, miss.written))


def near_miss(name: Hashable, topics: Iterable[Hashable]) -> str | None:
    """Return the topic that a name is probably a misspelling of; None if no topic is similar.

    Examples
    --------
    >>> near_miss("Tee", ["coffee", "tea"]), near_miss("milk", ["coffee", "tea"])
    ('tea', None)
    """
    usual = {fold(str(topic)): str(topic) for topic in topics}
    near = difflib.get_close_matches(fold(str(name)), usual, n=1, cutoff=HINT)
    return usual[near[0]] if near else None
