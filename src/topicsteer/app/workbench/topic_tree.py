"""The topics of a project as a tree, by key; `labels.forest` has the rules of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from topicsteer.app.workbench.project import Topic
from topicsteer.corpora.columns import free_separator
from topicsteer.labels.forest import Forest, cycle
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED
from topicsteer.system.values import fold


class Tree:
    """The existing topics, each with the key of its parent; a flat list without parents.

    A topic whose parent was deleted stands under the nearest topic above it that exists.

    Parameters
    ----------
    topics : mapping of int to Topic
        All topics by key, also deleted ones.

    Examples
    --------
    >>> topics = [Topic(1, "sport"), Topic(2, "chess", 1), Topic(3, "arts", position=1), Topic(4, "golf", 1)]
    >>> tree = Tree({topic.key: topic for topic in topics})
    >>> tree.order, tree.above(2), tree.below(1), tree.level(4)
    ((1, 2, 4, 3), (1,), (2, 4), 2)
    >>> sorted(tree.excluded(frozenset({2}))), sorted(tree.excluded(frozenset({1})))
    ([3, 4], [3])
    >>> tree.path(4)
    ('sport', 'golf')
    """

    def __init__(self, topics: Mapping[int, Topic]) -> None:
        live = sorted((t for t in topics.values() if not t.gone), key=lambda t: (t.position, t.key))
        self.keys = tuple(topic.key for topic in live)
        self.names = {topic.key: topic.name for topic in live}
        self.parents = {topic.key: _nearest(topic, topics) for topic in live}
        self._place = {key: k for k, key in enumerate(self.keys)}
        numbers = [-1 if (above := self.parents[key]) is None else self._place[above] for key in self.keys]
        self.forest = Forest(tuple(numbers))
        self._excluded: dict[frozenset[int], frozenset[int]] = {}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The keys, each followed by the keys below it."""
        return self._keys(self.forest.order)

    def above(self, key: int) -> tuple[int, ...]:
        """The topics above a topic, nearest first."""
        return self._keys(self.forest.ancestors(self._place[key]))

    def below(self, key: int) -> tuple[int, ...]:
        """The topics below a topic."""
        return self._keys(self.forest.descendants(self._place[key]))

    def level(self, key: int) -> int:
        """The level of a topic, from 1."""
        return 1 + self.forest.depth[self._place[key]]

    def deepest(self, keys: Iterable[int]) -> list[int]:
        """Some topics without those above others of them, in order."""
        given = set(keys)
        return [key for key in self.order if key in given and not given.intersection(self.below(key))]

    def excluded(self, permitted: frozenset[int]) -> frozenset[int]:
        """The topics that a document with these complete labels does not have; below a label nothing is known."""
        if self.forest.flat:
            return frozenset(self.keys) - permitted
        if permitted not in self._excluded:
            states = np.full((1, len(self.keys)), FORBIDDEN, dtype=np.int8)
            states[0, [self._place[key] for key in permitted]] = PERMITTED
            closed = self.forest.closed(states)[0]
            self._excluded[permitted] = frozenset(self._keys(np.flatnonzero(closed == FORBIDDEN).tolist()))
        return self._excluded[permitted]

    # --- paths ---

    def own_name(self, key: int, separator: str | None = None) -> str:
        """The name of a topic without the name of its parent, if it is a path with this separator."""
        parent, name = self.parents[key], self.names[key]
        start = "" if parent is None or separator is None else self.names[parent] + separator
        return name[len(start) :] if name.startswith(start) and len(name) > len(start) else name

    def path(self, key: int, separator: str | None = None) -> tuple[str, ...]:
        """The names from the top down to a topic."""
        return tuple(self.own_name(k, separator) for k in (*reversed(self.above(key)), key))

    def by_path(self, separator: str | None = None) -> dict[tuple[str, ...], int]:
        """The keys by path, as names are compared."""
        return {tuple(map(fold, self.path(key, separator))): key for key in self.keys}

    def separator(self, wanted: str | None) -> str | None:
        """A separator for paths of these topics; None for a flat list."""
        if self.forest.flat:
            return None
        return free_separator((self.own_name(key, wanted) for key in self.keys), wanted)

    def has_paths(self, separator: str | None) -> bool:
        """Whether each name that contains the separator is a path: the parent's name and one name more."""
        return separator is not None and not any(separator in self.own_name(key, separator) for key in self.keys)

    def _keys(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.keys[k] for k in places)


def ring(topics: Mapping[int, Topic]) -> list[str]:
    """The names of topics that are below each other; empty if there are none."""
    keys = [key for key, topic in topics.items() if not topic.gone]
    place = {key: k for k, key in enumerate(keys)}
    found = cycle([place.get(-1 if (above := topics[key].parent) is None else above, -1) for key in keys])
    return [topics[keys[k]].name for k in found]


def _nearest(topic: Topic, topics: Mapping[int, Topic]) -> int | None:
    """The nearest topic above that exists."""
    above, seen = topic.parent, {topic.key}
    while above is not None and above in topics and topics[above].gone and above not in seen:
        seen.add(above)
        above = topics[above].parent
    found = above is not None and above in topics and above not in seen and not topics[above].gone
    return above if found else None
