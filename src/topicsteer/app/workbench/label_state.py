"""The state of a document's labels: the decision that follows from the labels of people and of files.

Labels of people count before labels of files, and the majority of people decides. A tie leaves the topic open. Once
a disagreement is settled, the decision counts, and the labels of people stay as they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from topicsteer.app.workbench.event_log import CLEARED, CONFIRMED, FORBIDDEN, NONE, PERMITTED, PRESENT, WHOLE, Topic
from topicsteer.app.workbench.text_rules import DECISION, FILE

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


def decide(people: Mapping[str, PersonLabels], live: Mapping[int, int], complete: bool) -> Decision:
    """Decide on the topics of a document.

    Parameters
    ----------
    people : mapping of person to labels
        The labels of each person.
    live : mapping of int to int
        The keys of existing topics, each with the number of the event that created it.
    complete : bool
        A label excludes all other topics.
    """
    settled = votes(people.get(DECISION, {}), live, complete=False)
    given = {person: votes(labels, live, complete) for person, labels in people.items() if person != DECISION}
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


def denies_all(labels: PersonLabels, live: Mapping[int, int]) -> bool:
    """Return whether a document has none of the existing topics, according to one person."""
    own = votes(labels, live, complete=False)
    return bool(live) and own.keys() == live.keys() and not any(own.values())


def merged_state(labels: PersonLabels, topics: Sequence[Topic]) -> str | None:
    """Return a person's label for several topics that become one; None without any label.

    The merged topic is forbidden only if each of them was: "not tea" does not mean "neither tea nor coffee".
    """
    states = [labels.get(topic.key, (CLEARED, 0))[0] for topic in topics]
    for state in (PERMITTED, CONFIRMED):
        if state in states:
            return state
    if FORBIDDEN in states:
        return FORBIDDEN if all(state == FORBIDDEN for state in states) else CLEARED
    return None


def training_labels(topics: Sequence[Topic], decisions: Mapping[int, Decision], seq: int) -> Training:
    """Return the labels for a fit, as they are after the event ``seq``."""
    name = {topic.key: topic.name for topic in topics}
    rows = {row: d for row, d in sorted(decisions.items()) if d.permitted or d.forbidden}
    complete = all(len(d.permitted) + len(d.forbidden) == len(topics) for d in rows.values() if d.permitted)
    labels = {row: sorted(name[key] for key in d.permitted) for row, d in rows.items() if d.permitted}
    open_rows = {row: d for row, d in rows.items() if d.forbidden and not (complete and d.permitted)}
    forbidden = {row: sorted(name[key] for key in d.forbidden) for row, d in open_rows.items()}
    return Training(tuple(topics), labels, forbidden, complete, seq)


def votes(labels: PersonLabels, live: Mapping[int, int], complete: bool) -> dict[int, bool]:
    """Return one person's vote per topic: True if the document has it.

    A complete label also votes against all other topics that existed at the time, but not against later topics. The
    answer to a question is a single fact: it votes on its own topic only.
    """
    own = {key: s in PRESENT for key, (s, _) in labels.items() if key in live and (s in PRESENT or s == FORBIDDEN)}
    none = labels.get(WHOLE, (CLEARED, 0))[0] == NONE
    if none or (complete and any(labels[key][0] == PERMITTED for key in own)):
        last = max(seq for key, (_, seq) in labels.items() if key >= WHOLE)
        own |= {key: False for key, born in live.items() if born <= last and key not in own}
    return own
