"""Named topics as records; the key of a topic never changes, its name may."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from topicsteer.system.types import JSON
from topicsteer.system.values import NONE

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


@dataclass(frozen=True)
class Codebook:
    """The known topics, in order.

    Parameters
    ----------
    topics : tuple of Topic

    Examples
    --------
    >>> book = Codebook.of_names(["tea", "milk"])
    >>> later = Codebook.of_names(["milk", "tea", "coffee"], before=book)
    >>> [(topic.key, topic.name) for topic in later]
    [(2, 'milk'), (1, 'tea'), (3, 'coffee')]
    """

    topics: tuple[Topic, ...] = ()

    def __post_init__(self) -> None:
        for topic in self.topics:
            check_topic_name(topic.name)

    @classmethod
    def of_names(
        cls,
        names: Sequence[Hashable],
        *,
        before: Codebook | None = None,
        descriptions: Mapping[str, str] | None = None,
        keywords: Mapping[str, Sequence[str]] | None = None,
        banned: Mapping[str, Sequence[str]] | None = None,
    ) -> Codebook:
        """Make a codebook from names; names in an earlier codebook keep their keys, others get new ones.

        Descriptions and words are looked up by the name as text: ``{"3": ...}`` belongs to the topic 3.
        """
        known = {str(topic.name): topic.key for topic in before or ()}
        fresh = itertools.count(max(known.values(), default=0) + 1)
        described, words, without = _by_text(descriptions), _by_text(keywords), _by_text(banned)
        topics = []
        for name in names:
            key = known[str(name)] if str(name) in known else next(fresh)
            has, lacks = (tuple(given.get(str(name), ())) for given in (words, without))
            topics.append(Topic(key, name, None, described.get(str(name), ""), has, lacks))
        return cls(tuple(topics))

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

    def rename(self, position: int, name: Hashable) -> Codebook:
        """Return a codebook with another name for one topic."""
        return self._with(position, replace(self.topics[position], name=name))

    def merge(self, group: Sequence[int]) -> Codebook:
        """Merge topics into the first of them, which keeps its position and key and gets the keywords of all."""
        first, rest = self.topics[group[0]], [self.topics[k] for k in group[1:]]
        keywords = tuple(dict.fromkeys(word for topic in (first, *rest) for word in topic.keywords))
        banned = tuple(word for word in first.banned if word not in keywords)
        joined = self._with(group[0], replace(first, keywords=keywords, banned=banned))
        return Codebook(tuple(topic for k, topic in enumerate(joined.topics) if k not in group[1:]))

    def to_json(self) -> list[dict[str, JSON]]:
        """Return plain values for a JSON file."""
        return [asdict(topic) | {"keywords": list(topic.keywords), "banned": list(topic.banned)} for topic in self]

    @classmethod
    def from_json(cls, records: Sequence[Mapping[str, JSON]]) -> Codebook:
        """Read the result of :meth:`to_json`; missing fields get their default."""
        words = ("keywords", "banned")
        return cls(tuple(Topic(**{**record, **{k: tuple(record.get(k, ())) for k in words}}) for record in records))  # type: ignore[arg-type]

    def _with(self, position: int, topic: Topic) -> Codebook:
        return Codebook((*self.topics[:position], topic, *self.topics[position + 1 :]))


def check_topic_name(name: object) -> None:
    """Raise ValueError for the name `NONE`, which is the label of documents without a topic."""
    if name == NONE:
        raise ValueError(f"a topic cannot have the name {NONE!r}: this label marks documents with none of the topics.")


def _by_text(given: Mapping[str, T] | None) -> dict[str, T]:
    return {str(name): value for name, value in (given or {}).items()}
