"""From names of topics to a tree: parents by name, and labels that are paths such as "sport/football"."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from topicsteer.labels.codebook import Codebook
from topicsteer.labels.forest import Forest
from topicsteer.system.values import NONE


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

    Examples
    --------
    >>> lineage = Lineage({"football": "sport"}, "/")
    >>> lineage.topic("sport / football"), lineage.topic("arts/film")
    ('football', 'arts/film')
    >>> lineage.with_ancestors(["arts/film", "football"])
    ['arts', 'arts/film', 'sport', 'football']
    """

    parents: Mapping[str, Hashable] = field(default_factory=dict)
    separator: str | None = None

    @classmethod
    def of(cls, codebook: Codebook | None, parents: Mapping[str, Hashable] | None, separator: str | None) -> Lineage:
        """The parents of a codebook, and further ones by name; the codebook decides about its own topics."""
        given = {str(child): parent for child, parent in (parents or {}).items()}
        if codebook is not None:
            known = set(map(str, codebook.names))
            given = {child: parent for child, parent in given.items() if child not in known} | codebook.parent_names
        return cls(given, separator)

    def __bool__(self) -> bool:
        return bool(self.parents) or self.separator is not None

    def topic(self, label: Hashable) -> Hashable:
        """The name of the topic that a label stands for; of "sport/(none)" it is "sport".

        Raises
        ------
        ValueError
            If a name in a path is empty.
        """
        if self.separator is None or not isinstance(label, str) or self.separator not in label:
            return label
        names = [name.strip() for name in label.split(self.separator)]
        if not all(names):
            raise ValueError(f"the label {label!r}, a path in which a name is empty")
        names = names[: -1 if names[-1] == NONE else None]
        path = self.separator.join(names)
        return self._by_path.get(path, path)

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
        return bool(above) and last.strip() == NONE

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

    def forest(self, names: Sequence[Hashable]) -> Forest | None:
        """The tree of these names; None if it has no edge."""
        return Codebook.of_names(names, parents=self.parent_names(names)).forest if self else None

    @cached_property
    def _by_path(self) -> dict[str, Hashable]:
        """Names of the topics with a parent, by their paths."""
        found: dict[str, Hashable] = {}
        for name in self.parents:
            line: list[str] = [name]
            while line[0] in self.parents and str(self.parents[line[0]]) not in line:
                line.insert(0, str(self.parents[line[0]]))
            found[(self.separator or "").join(line)] = name
        return found
