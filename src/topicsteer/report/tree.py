"""The tree of topics as a report shows it: one branch per topic, with shares and terms."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from topicsteer.analysis.topics import Topics
from topicsteer.report.excerpt import Excerpt


@dataclass(frozen=True)
class TopicCard:
    """A topic with its numbers, most distinctive terms and documents."""

    number: int
    name: str
    origin: str
    share: float
    main: int
    labelled: int | None
    groups: int
    terms: list[tuple[str, float]]
    examples: list[tuple[Hashable, Excerpt]]

    @property
    def key(self) -> str:
        """Id of its card."""
        return f"topic-{self.number}"


@dataclass(frozen=True)
class TreeNode:
    """A topic with the topics below it.

    Parameters
    ----------
    card : TopicCard
        The topic.
    children : list of TreeNode
        The topics below it, the largest first.
    rest : float
        Share of the documents that have the topic and none below it; 0 without children.
    length : float
        Length of the bar of its share, relative to the largest topic.
    below : int
        Number of all topics below it.
    """

    card: TopicCard
    children: list[TreeNode]
    rest: float
    length: float
    below: int


def tree_of(topics: Topics, cards: Sequence[TopicCard]) -> list[TreeNode]:
    """The trees of the known topics, the largest first; empty for a flat list of topics."""
    forest = topics.forest
    if forest is None:
        return []
    largest = max(*(card.share for card in cards), 1e-30)
    rest = topics.rest_share
    nodes: dict[int, TreeNode] = {}
    for k in reversed(forest.order):
        children = sorted((nodes[child] for child in forest.children[k]), key=lambda node: -node.card.share)
        below = sum(1 + node.below for node in children)
        length = cards[k].share / largest
        nodes[k] = TreeNode(cards[k], children, float(rest[k]) if children else 0.0, length, below)
    return sorted((nodes[k] for k in forest.roots), key=lambda node: -node.card.share)
