"""Named topics as records, and the tree that names and paths such as "sport/football" give."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import msgspec

from topicsteer.labels.forest import FLAT, Forest, cycle
from topicsteer.labels.spelling import names_by_fold
from topicsteer.system.types import JSON
from topicsteer.system.values import NONE, fold

T = TypeVar("T")


@dataclass(frozen=True)
class Topic:
    """A named topic.

    Parameters
    ----------
    key : int
        Unique and permanent.
    name : str or int
        The present name.
    parent : int, optional
        Key of the parent topic.
    description : str
        Description in words.
    keywords, banned : tuple of str
        Words that the topic must have, and words that it must not have.
    """

    key: int
    name: Hashable
    parent: int | None = None
    description: str = ""
    keywords: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()


class TopicRecord(msgspec.Struct):
    """A `Topic` in a JSON file; further fields of older versions are ignored."""

    key: int
    name: str | int | float | bool
    parent: int | None = None
    description: str = ""
    keywords: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Codebook:
    """The known topics, in order: a list, or a forest if topics have parents.

    Parameters
    ----------
    topics : tuple of Topic

    Raises
    ------
    ValueError
        If a topic has a reserved name, its parent does not exist, or topics are below each other.

    Examples
    --------
    >>> book = Codebook.of_names(["tea", "milk"])
    >>> later = Codebook.of_names(["milk", "tea", "coffee"], before=book)
    >>> [(topic.key, topic.name) for topic in later]
    [(2, 'milk'), (1, 'tea'), (3, 'coffee')]
    >>> tree = Codebook.of_names(["sport", "football"], parents={"football": "sport"})
    >>> tree.forest
    Forest(parents=(-1, 0))
    """

    topics: tuple[Topic, ...] = ()

    def __post_init__(self) -> None:
        keys = set(self.keys)
        for topic in self.topics:
            check_topic_name(topic.name)
            if topic.parent is not None and topic.parent not in keys:
                raise ValueError(f"the parent of the topic {topic.name!r} is not one of the topics.")
        if ring := cycle(self._parents):
            names = " and ".join(repr(self.names[k]) for k in ring)
            both = "below each other" if len(ring) > 1 else "its own parent"
            raise ValueError(f"{names} {'are' if len(ring) > 1 else 'is'} {both}: a tree of topics has no cycles.")

    @classmethod
    def of_names(
        cls,
        names: Sequence[Hashable],
        *,
        before: Codebook | None = None,
        parents: Mapping[str, Hashable] | None = None,
        descriptions: Mapping[str, str] | None = None,
        keywords: Mapping[str, Sequence[str]] | None = None,
        banned: Mapping[str, Sequence[str]] | None = None,
    ) -> Codebook:
        """Make a codebook from names; names in an earlier codebook keep their keys, others get new ones.

        Parents, descriptions and words are looked up by the name as text: ``{"3": ...}`` belongs to the topic 3.
        """
        known = {str(topic.name): topic.key for topic in before or ()}
        fresh = itertools.count(max(known.values(), default=0) + 1)
        described, words, without = _by_text(descriptions), _by_text(keywords), _by_text(banned)
        topics = []
        for name in names:
            key = known[str(name)] if str(name) in known else next(fresh)
            has, lacks = (tuple(given.get(str(name), ())) for given in (words, without))
            topics.append(Topic(key, name, None, described.get(str(name), ""), has, lacks))
        return cls(tuple(topics)).with_parents(parents or {})

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics)

    def __len__(self) -> int:
        return len(self.topics)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The names of the topics, in order."""
        return tuple(topic.name for topic in self.topics)

    @property
    def keys(self) -> tuple[int, ...]:
        """The keys of the topics, in order."""
        return tuple(topic.key for topic in self.topics)

    @cached_property
    def forest(self) -> Forest:
        """The tree of the topics by position."""
        return Forest(tuple(self._parents))

    @property
    def parent_names(self) -> dict[str, Hashable]:
        """The name of each topic's parent, by the topic's name as text."""
        name = {topic.key: topic.name for topic in self}
        return {str(topic.name): name[topic.parent] for topic in self if topic.parent is not None}

    def with_parents(self, parents: Mapping[str, Hashable]) -> Codebook:
        """Put topics under others, by name.

        Raises
        ------
        ValueError
            If a name is not one of the topics, or a topic has another parent already.
        """
        place = {str(topic.name): k for k, topic in enumerate(self)}
        topics = list(self.topics)
        for child, parent in parents.items():
            for name in (child, parent):
                if str(name) not in place:
                    known = ", ".join(list(place)[:8]) + (", ..." if len(place) > 8 else "")
                    raise ValueError(
                        f"parents puts {child!r} under {parent!r}, but {name!r} is not one of the topics ({known})."
                    )
            topic, key = topics[place[str(child)]], self.keys[place[str(parent)]]
            if topic.parent not in (None, key):
                before = next(other.name for other in self if other.key == topic.parent)
                raise ValueError(f"{child!r} has two parents, {before!r} and {parent!r}: a topic has one.")
            topics[place[str(child)]] = replace(topic, parent=key)
        return Codebook(tuple(topics)) if parents else self

    def rename(self, position: int, name: Hashable) -> Codebook:
        """Return a codebook with another name for one topic."""
        return self._with(position, replace(self.topics[position], name=name))

    def move(self, position: int, parent: int | None) -> Codebook:
        """Put a topic, and all topics below it, under another topic; None = at the top."""
        return self._with(
            position, replace(self.topics[position], parent=None if parent is None else self.keys[parent])
        )

    def merge(self, group: Sequence[int]) -> Codebook:
        """Merge topics into the first of them, which keeps its position and key and gets the keywords of all.

        It also gets their children, and the parent of the topmost of them.
        """
        first, rest = self.topics[group[0]], [self.topics[k] for k in group[1:]]
        keywords = tuple(dict.fromkeys(word for topic in (first, *rest) for word in topic.keywords))
        banned = tuple(word for word in first.banned if word not in keywords)
        joined = self._with(group[0], replace(first, keywords=keywords, banned=banned, parent=None))
        gone = {topic.key for topic in rest}
        parent = self.topics[min(group, key=self.forest.depth.__getitem__)].parent
        topics = []
        for k, topic in enumerate(joined.topics):
            if k == group[0]:
                topics.append(replace(topic, parent=parent))
            elif k not in group[1:]:
                topics.append(replace(topic, parent=first.key) if topic.parent in gone else topic)
        return Codebook(tuple(topics))

    def to_json(self) -> list[dict[str, JSON]]:
        """Return plain values for a JSON file."""
        return [asdict(topic) | {"keywords": list(topic.keywords), "banned": list(topic.banned)} for topic in self]

    @classmethod
    def from_json(cls, records: Sequence[Mapping[str, JSON]]) -> Codebook:
        """Read the result of :meth:`to_json`; missing fields get their default."""
        read = msgspec.convert(records, list[TopicRecord])
        return cls(tuple(Topic(**msgspec.structs.asdict(record)) for record in read))

    @property
    def _parents(self) -> list[int]:
        """Position of each topic's parent, -1 without one."""
        place = {topic.key: k for k, topic in enumerate(self)}
        return [-1 if topic.parent is None else place[topic.parent] for topic in self]

    def _with(self, position: int, topic: Topic) -> Codebook:
        return Codebook((*self.topics[:position], topic, *self.topics[position + 1 :]))


def check_topic_name(name: object) -> None:
    """Raise ValueError for the name `NONE`, which is the label of documents without a topic."""
    if isinstance(name, str) and fold(name) == NONE:
        raise ValueError(f"a topic cannot have the name {NONE!r}: this label marks documents with none of the topics.")


def _by_text(given: Mapping[str, T] | None) -> dict[str, T]:
    return {str(name): value for name, value in (given or {}).items()}


@dataclass(frozen=True)
class Lineage:
    """The parents of topics by name.

    Parameters
    ----------
    parents : mapping of str to str or int
        Parent of each topic that has one, by the topic's name as text.
    separator : str, optional
        Separator of the names in a path. A label "sport/football" is then a topic below the topic "sport". It has the
        path as its name, unless ``parents`` puts a topic "football" under "sport". None: no label is a path.
    names : mapping of str to str
        The name of the topic that each spelling stands for, folded or as it is; see `topicsteer.labels.spelling`.

    Examples
    --------
    >>> lineage = Lineage({"football": "sport"}, "/")
    >>> lineage.topic("sport / football"), lineage.topic("arts/film")
    ('football', 'arts/film')
    >>> lineage.with_ancestors(["arts/film", "football"])
    ['arts', 'arts/film', 'sport', 'football']
    >>> Lineage().spelled({"US": 2, "us": 1}).topic("Us")
    'US'
    """

    parents: Mapping[str, Hashable] = field(default_factory=dict)
    separator: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        codebook: Codebook | None,
        parents: Mapping[str, Hashable] | None,
        separator: str | None,
        names: Iterable[Hashable] = (),
    ) -> Lineage:
        """The parents of a codebook, and further ones by name; the codebook decides about its own topics.

        Its names, the parents and further ``names`` are spelt as they are.
        """
        given = {str(child): parent for child, parent in (parents or {}).items()}
        every = [*(codebook.names if codebook is not None else ()), *names, *given, *given.values()]
        right = [name for name in every if isinstance(name, str)]
        spelling = {fold(name): name for name in reversed(right)} | {name: name for name in right}
        if codebook is not None:
            known = set(map(str, codebook.names))
            given = {child: parent for child, parent in given.items() if child not in known} | codebook.parent_names
        return cls(given, separator, spelling)

    def spelled(self, counts: Mapping[str, int]) -> Lineage:
        """The same with one name for all spellings of new topics: the most frequent one."""
        every = {**counts, **dict.fromkeys(self.names.values(), math.inf)}
        return replace(self, names={**names_by_fold(every, self.separator), **self.names, NONE: NONE})

    def __bool__(self) -> bool:
        return bool(self.parents) or self.separator is not None

    def topic(self, label: Hashable) -> Hashable:
        """The name of the topic that a label stands for; of "sport/(none)" it is "sport".

        Raises
        ------
        ValueError
            If a name in a path is empty.
        """
        if not isinstance(label, str):
            return label
        names = [label]
        if self.separator is not None and self.separator in label:
            names = [name.strip() for name in label.split(self.separator)]
            if not all(names):
                raise ValueError(f"the label {label!r}, a path in which a name is empty")
            names = names[: -1 if fold(names[-1]) == NONE else None]
        path = (self.separator or "").join(names)
        folded = (self.separator or "").join(map(fold, names))
        path = self.names.get(path, self.names.get(folded, path))
        return path if self.separator is None else self._by_path.get(folded, path)

    def ends_here(self, label: Hashable) -> bool:
        """Whether a label means a topic and none of the topics below it, such as "sport/(none)".

        Examples
        --------
        >>> Lineage(separator="/").ends_here("sport/(none)"), Lineage().ends_here("sport/(none)")
        (True, False)
        """
        if self.separator is None or not isinstance(label, str):
            return False
        above, _, last = label.rpartition(self.separator)
        return bool(above) and fold(last) == NONE

    def parent(self, name: Hashable) -> Hashable | None:
        """The name of a topic's parent; None without one."""
        if str(name) in self.parents:
            return self.parents[str(name)]
        if self.separator is None or not isinstance(name, str) or self.separator not in name:
            return None
        return self.topic(name.rpartition(self.separator)[0])

    def with_ancestors(self, names: Iterable[Hashable]) -> list[Hashable]:
        """The names, each after the names above it."""
        found: dict[str, Hashable] = {}
        for name in names:
            line: list[Hashable] = []
            now: Hashable | None = name
            while now is not None and str(now) not in found and now not in line:
                line.append(now)
                now = self.parent(now)
            found |= {str(one): one for one in reversed(line)}
        return list(found.values())

    def parent_names(self, names: Sequence[Hashable]) -> dict[str, Hashable]:
        """The parent of each of these names that has one, for `Codebook.of_names`."""
        found = ((str(name), self.parent(name)) for name in names)
        return {name: parent for name, parent in found if parent is not None}

    def forest(self, names: Sequence[Hashable]) -> Forest:
        """The tree of these names."""
        return Codebook.of_names(names, parents=self.parent_names(names)).forest if self else FLAT.sized(len(names))

    @cached_property
    def _by_path(self) -> dict[str, Hashable]:
        """Names of the topics with a parent, by their paths."""
        found: dict[str, Hashable] = {}
        for name in self.parents:
            line: list[str] = [name]
            while line[0] in self.parents and str(self.parents[line[0]]) not in line:
                line.insert(0, str(self.parents[line[0]]))
            found[(self.separator or "").join(map(fold, line))] = name
        return found


def topic_columns(codebook: Codebook) -> dict[str, list[str]]:
    """The columns of a topics file; words are separated by semicolons, or are a list if a word has one.

    There is a column for parents if topics have some. Free topics below others are left out, since nobody named them.

    Parameters
    ----------
    codebook : Codebook

    Examples
    --------
    >>> topic_columns(Codebook.of_names(["price"], keywords={"price": ["cheap", "cost"]}))
    {'topic': ['price'], 'description': [''], 'keywords': ['cheap; cost'], 'banned': ['']}
    """
    parents = codebook.parent_names
    found = {"topic": [str(topic.name) for topic in codebook]}
    if any(name in parents for name in found["topic"]):
        found["parent"] = [str(parents.get(name, "")) for name in found["topic"]]
    found |= {
        "description": [topic.description for topic in codebook],
        "keywords": [_cell(topic.keywords) for topic in codebook],
        "banned": [_cell(topic.banned) for topic in codebook],
    }
    return found


def _cell(words: Sequence[str]) -> str:
    """Words as one cell."""
    return "; ".join(words) if not any(";" in word for word in words) else json.dumps(list(words), ensure_ascii=False)
