"""What people may say, and what is held of a document when they, and the files that labels came with, have said it.

People count before files, and the majority of people counts; nothing is held where they stand against each other.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from topicsteer.app.workbench.log import CLEARED, FORBIDDEN, NONE, PERMITTED, WHOLE, Topic
from topicsteer.system.safe_text import visible

FILE = "file: "  # how the person is called whose labels came with the documents
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_PERSON, MOST_WORDS = 80, 4_000, 40, 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
# What a person said of a document last: for each topic the state and the number of the event
Slots: TypeAlias = Mapping[int, tuple[str, int]]


class Refused(ValueError):
    """Something that was asked for cannot be done; the message is for the person who asked.

    Parameters
    ----------
    message : str
    status : int, default=400
        Of the answer, where it was asked for over HTTP.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Decision(NamedTuple):
    """What is held of a document: topics it has, topics it does not have, topics on which people differ."""

    permitted: frozenset[int] = frozenset()
    forbidden: frozenset[int] = frozenset()
    differing: frozenset[int] = frozenset()


class Training(NamedTuple):
    """The labels as a fit takes them; ``complete`` says that what is not listed beside a label is forbidden."""

    topics: tuple[Topic, ...]
    labels: Mapping[int, list[str]]
    forbidden: Mapping[int, list[str]]
    complete: bool
    seq: int


def decide(people: Mapping[str, Slots], live: Mapping[int, int], complete: bool) -> Decision:
    """What is held of a document.

    Parameters
    ----------
    people : mapping of person to slots
        What each of them said of it.
    live : mapping of int to int
        The topics that there are, and for each the event that made it.
    complete : bool
        A label speaks of all topics.
    """
    views = {person: _view(slots, live, complete) for person, slots in people.items()}
    heard = [view for person, view in views.items() if view and not person.startswith(FILE)] or list(views.values())
    votes: Counter[int] = Counter()
    voters: Counter[int] = Counter()
    for view in heard:
        voters.update(view.keys())
        votes.update({topic: 1 if has else -1 for topic, has in view.items()})
    return Decision(
        frozenset(topic for topic in voters if votes[topic] > 0),
        frozenset(topic for topic in voters if votes[topic] < 0),
        frozenset(topic for topic, n in voters.items() if abs(votes[topic]) < n),
    )


def standing(slots: Slots, live: Mapping[int, int]) -> dict[int, str]:
    """What a person said of a document, as far as it still stands: of topics, and of the whole under `WHOLE`."""
    said = ((topic, state) for topic, (state, _) in slots.items() if topic == WHOLE or topic in live)
    return {topic: state for topic, state in said if state != CLEARED}


def merged_state(slots: Slots, topics: Sequence[Topic]) -> str | None:
    """What a person says of several topics that become one; None if nothing.

    Forbidden counts only where each of them was: "not tea" does not mean "not tea or coffee".
    """
    states = [slots.get(topic.key, (CLEARED, 0))[0] for topic in topics]
    if PERMITTED in states:
        return PERMITTED
    if FORBIDDEN in states:
        return FORBIDDEN if all(state == FORBIDDEN for state in states) else CLEARED
    return None


def training(topics: Sequence[Topic], decisions: Mapping[int, Decision], seq: int) -> Training:
    """The labels for a fit, by row, after the event ``seq``."""
    name = {topic.key: topic.name for topic in topics}
    rows = {row: d for row, d in sorted(decisions.items()) if d.permitted or d.forbidden}
    whole = all(len(d.permitted) + len(d.forbidden) == len(topics) for d in rows.values() if d.permitted)
    labels = {row: sorted(name[t] for t in d.permitted) for row, d in rows.items() if d.permitted}
    open_rows = {row: d for row, d in rows.items() if d.forbidden and not (whole and d.permitted)}
    forbidden = {row: sorted(name[t] for t in d.forbidden) for row, d in open_rows.items()}
    return Training(tuple(topics), labels, forbidden, whole, seq)


def _view(slots: Slots, live: Mapping[int, int], complete: bool) -> dict[int, bool]:
    """What one person holds of a document, topic by topic.

    A complete label speaks of all topics that were there when it was given, and not of those made later.
    """
    view = {t: s == PERMITTED for t, (s, _) in slots.items() if t in live and s in (PERMITTED, FORBIDDEN)}
    none = slots.get(WHOLE, (CLEARED, 0))[0] == NONE
    if none or (complete and any(view.values())):
        last = max(seq for _, seq in slots.values())
        view |= {topic: False for topic, born in live.items() if born <= last and topic not in view}
    return view


# --- what people may write ---


def topic_name(name: object) -> str:
    """The name of a topic."""
    tidy = _one_line(name)
    if not tidy:
        raise Refused("A topic needs a name.")
    if len(tidy) > LONGEST_NAME:
        raise Refused(f"A name has at most {LONGEST_NAME} characters; put the rest into the description.")
    return visible(tidy, LONGEST_NAME)


def description(text: object) -> str:
    """What a topic is about."""
    if not isinstance(text, str) or len(text) > LONGEST_DESCRIPTION:
        raise Refused(f"A description is a text of at most {LONGEST_DESCRIPTION:,} characters.")
    return text.strip()


def _colour(text: object) -> str:
    """A colour in hexadecimal."""
    if not isinstance(text, str) or not re.fullmatch(r"#[0-9a-f]{6}", text):
        raise Refused("A colour is written as #3b7dd8.")
    return text


def _words(words: object) -> tuple[str, ...]:
    """Words that a topic must have, or must not have."""
    if not isinstance(words, list | tuple) or len(words) > MOST_WORDS or not all(isinstance(w, str) for w in words):
        raise Refused(f"Expected a list of at most {MOST_WORDS} words.")
    tidy = (_one_line(word)[:LONGEST_NAME] for word in words)
    return tuple(dict.fromkeys(word for word in tidy if word))


def person(name: object) -> str:
    """A person's name, checked."""
    tidy = _one_line(name)
    if not tidy:
        raise Refused("Say who you are: a name is missing.")
    if len(tidy) > LONGEST_PERSON or tidy.startswith(FILE):
        raise Refused(f"Choose a name of at most {LONGEST_PERSON} characters that does not begin with {FILE!r}.")
    return visible(tidy, LONGEST_PERSON)


def _one_line(text: object) -> str:
    """Without control characters and needless spaces; what is not a text is empty."""
    return " ".join(_CONTROL.sub(" ", text).split()) if isinstance(text, str) else ""


# How the fields of a topic are checked that people may change, by the names that they have in the file
TOPIC_FIELDS: dict[str, Callable[[object], object]] = {
    "name": topic_name, "description": description, "colour": _colour, "pinned": _words, "banned": _words,
}  # fmt: skip
