"""The state of a document's labels: the decision that follows from the labels of people and of files.

Labels of people count before labels of files, and the majority of people decides. A tie leaves the topic open. Once
a disagreement is settled, the decision counts, and the labels of people stay as they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from topicsteer.app.workbench.event_log import (
    CLEARED,
    CONFIRMED,
    FORBIDDEN,
    NONE,
    PERMITTED,
    PRESENT,
    REST,
    WHOLE,
    Topic,
)
from topicsteer.app.workbench.text_rules import DECISION, FILE
from topicsteer.app.workbench.tree import Tree

# The last labels of one person for one document: for each key the state and the number of its event.
PersonLabels: TypeAlias = Mapping[int, tuple[str, int]]


class Decision(NamedTuple):
    """The keys of topics that a document has, of topics that it does not have, and of topics on which people differ."""

    permitted: frozenset[int] = frozenset()
    forbidden: frozenset[int] = frozenset()
    differing: frozenset[int] = frozenset()


class Training(NamedTuple):
    """Labels for a fit, by row; ``complete``: topics that are not among a document's labels are forbidden."""

    topics: tuple[Topic, ...]
    labels: Mapping[int, list[str]]
    forbidden: Mapping[int, list[str]]
    complete: bool
    seq: int


def decide(people: Mapping[str, PersonLabels], live: Mapping[int, int], complete: bool, tree: Tree) -> Decision:
    """Decide on the topics of a document.

    Parameters
    ----------
    people : mapping of person to labels
        The labels of each person.
    live : mapping of int to int
        The keys of existing topics, each with the number of the event that created it.
    complete : bool
        A label excludes all other topics.
    tree : Tree
        The tree of the existing topics.
    """
    settled = votes(people.get(DECISION, {}), live, False, tree)
    given = {person: votes(labels, live, complete, tree) for person, labels in people.items() if person != DECISION}
    by_people = [own for person, own in given.items() if own and not person.startswith(FILE)]
    balance: Counter[int] = Counter()
    voters: Counter[int] = Counter()
    for own in by_people or given.values():
        voters.update(own.keys())
        balance.update({key: 1 if has else -1 for key, has in own.items()})
    differing = frozenset(key for key, n in voters.items() if abs(balance[key]) < n)
    balance.update({key: (1 if has else -1) - balance[key] for key, has in settled.items()})
    return Decision(
        frozenset(key for key, value in balance.items() if value > 0),
        frozenset(key for key, value in balance.items() if value < 0),
        differing - settled.keys(),
    )


def current_states(labels: PersonLabels, live: Mapping[int, int]) -> dict[int, str]:
    """Return a person's labels without cleared ones and without deleted topics; `WHOLE` is the whole document."""
    states = {key: state for key, (state, _) in labels.items() if key == WHOLE or key in live}
    return {key: state for key, state in states.items() if state != CLEARED}


def denies_all(labels: PersonLabels, live: Mapping[int, int], tree: Tree) -> bool:
    """Return whether a document has none of the existing topics, according to one person."""
    own = votes(labels, live, False, tree)
    return bool(live) and own.keys() == live.keys() and not any(own.values())


def merged_state(labels: PersonLabels, topics: Sequence[Topic], same_below: bool = True) -> str | None:
    """Return a person's label for several topics that become one; None without any label.

    The merged topic is forbidden only if each of them was: "not tea" does not mean "neither tea nor coffee". "Nothing
    below it" holds only if the merged topic has the ``same`` topics ``below`` it.
    """
    states = [labels.get(topic.key, (CLEARED, 0))[0] for topic in topics]
    if REST in states and not {PERMITTED, CONFIRMED} & {*states}:
        return REST if same_below and states[0] == REST else PERMITTED
    for state in (PERMITTED, CONFIRMED):
        if state in states:
            return state
    if FORBIDDEN in states:
        return FORBIDDEN if all(state == FORBIDDEN for state in states) else CLEARED
    return None


def training_labels(topics: Sequence[Topic], decisions: Mapping[int, Decision], seq: int, tree: Tree) -> Training:
    """Return the labels for a fit, as they are after the event ``seq``: the deepest topics of each document.

    If labels are complete, ``forbidden`` has the topics that follow from no label, such as the topics below a label
    that means "nothing below".
    """
    name = {topic.key: topic.name for topic in topics}
    rows = {row: d for row, d in sorted(decisions.items()) if d.permitted or d.forbidden}
    complete = all(tree.excluded(d.permitted) <= d.forbidden for d in rows.values() if d.permitted)
    labels = {row: sorted(name[key] for key in tree.deepest(d.permitted)) for row, d in rows.items() if d.permitted}
    lacks = {
        row: d.forbidden - (tree.excluded(d.permitted) if complete and d.permitted else frozenset())
        for row, d in rows.items()
    }
    forbidden = {row: sorted(name[key] for key in keys) for row, keys in lacks.items() if keys}
    parents = tuple(replace(topic, parent=tree.parents[topic.key]) for topic in topics)
    return Training(parents, labels, forbidden, complete, seq)


def votes(labels: PersonLabels, live: Mapping[int, int], complete: bool, tree: Tree) -> dict[int, bool]:
    """Return one person's vote per topic: True if the document has it.

    A complete label also votes against all other topics that existed at the time, but not against later topics. The
    answer to a question is a single fact: it votes on its own topic only. In a tree, a vote for a topic includes all
    topics above it. A vote against a topic includes all topics below it. Topics below a label stay open.
    """
    own = {key: s in PRESENT for key, (s, _) in labels.items() if key in live and (s in PRESENT or s == FORBIDDEN)}
    if tree.forest is not None and own:
        own = _in_tree(own, labels, live, tree)
    none = labels.get(WHOLE, (CLEARED, 0))[0] == NONE
    if none or (complete and any(labels[key][0] in (PERMITTED, REST) for key in own if key in labels)):
        last = max(seq for key, (_, seq) in labels.items() if key >= WHOLE)
        others = tree.keys if none else tree.excluded(frozenset(key for key, has in own.items() if has))
        own |= {key: False for key in others if live[key] <= last and key not in own}
    return own


def _in_tree(own: Mapping[int, bool], labels: PersonLabels, live: Mapping[int, int], tree: Tree) -> dict[int, bool]:
    """Add the votes that follow from the tree; "nothing below" is about topics that existed at the time."""
    has = {key for key, yes in own.items() if yes}
    has.update(*(tree.above(key) for key in tuple(has)))
    lacks = {key for key, yes in own.items() if not yes}
    lacks.update(*(tree.below(key) for key in tuple(lacks)))
    for key in own:
        state, seq = labels[key]
        lacks.update(below for below in tree.below(key) if state == REST and live[below] <= seq)
    return dict.fromkeys(lacks, False) | dict.fromkeys(has, True)
