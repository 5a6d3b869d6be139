"""Refusals: errors with a message for the person who asked, and the rules for text that people type."""

import re
from collections.abc import Sequence

from topicsteer.system.templates import visible
from topicsteer.system.values import NONE, fold, tidy


class Refused(ValueError):
    """A request that cannot be read or granted; nothing was changed."""

    status = 400

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status or self.status


class Invalid(Refused):
    """A value that is not allowed: an unknown field, a wrong type, a name that is too long."""

    status = 422


class NotFound(Refused):
    """A document, topic, column or file that does not exist, or no longer exists."""

    status = 404


class Conflict(Refused):
    """A request that contradicts the current state: a name in use, nothing to undo, no model yet."""

    status = 409


# --- names of people and topics, descriptions, words ---

# Labels that came with a file belong to a person with this prefix and the name of the file.
FILE = "file: "
# Owner of decisions on topics about which people differ. Nobody can have this name.
DECISION = "(decision)"
# Limits in characters.
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_PERSON, LONGEST_NOTE = 80, 4_000, 40, 2_000
# Limit for a name that is a path through several levels.
LONGEST_PATH = 320
# Limit for the keywords of one topic, and for its banned words.
MOST_WORDS = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def topic_name(name: str, separator: str | None = None) -> str:
    """Return the name of a topic on one line, or refuse it; a name with the separator of paths may be longer."""
    plain = tidy(_one_line(name))
    if not plain:
        raise Invalid("The topic needs a name.")
    if fold(plain) == NONE:
        raise Invalid(f"A topic cannot have the name {NONE!r}: this label marks documents with none of the topics.")
    longest = LONGEST_PATH if separator is not None and separator in plain else LONGEST_NAME
    if len(plain) > longest:
        raise Invalid(f"A topic name has at most {longest} characters. Put the rest into the description.")
    return visible(plain, longest)


def topic_description(text: str) -> str:
    """Return the description of a topic without spaces around it, or refuse it."""
    if len(text) > LONGEST_DESCRIPTION:
        raise Invalid(f"A description has at most {LONGEST_DESCRIPTION:,} characters.")
    return text.strip()


def document_note(text: str) -> str:
    """Return a note on a document without spaces around it, or refuse it."""
    if len(text) > LONGEST_NOTE:
        raise Invalid(f"A note has at most {LONGEST_NOTE:,} characters.")
    return visible(text.strip(), 8 * LONGEST_NOTE)


def is_person(owner: str) -> bool:
    """Return whether the owner of a label is a person, not a file or a decision.

    Examples
    --------
    >>> is_person("ann"), is_person("file: labels.csv"), is_person("(decision)")
    (True, False, False)
    """
    return owner != DECISION and not owner.startswith(FILE)


def topic_words(given: Sequence[str]) -> tuple[str, ...]:
    """Return keywords or banned words, each once, or refuse them."""
    if len(given) > MOST_WORDS:
        raise Invalid(f"A topic has at most {MOST_WORDS} keywords and {MOST_WORDS} banned words.")
    plain = (_one_line(word)[:LONGEST_NAME] for word in given)
    return tuple(dict.fromkeys(word for word in plain if word))


def person_name(name: str) -> str:
    """Return the name of a person on one line, or refuse it."""
    plain = _one_line(name)
    if not plain:
        raise Invalid("Enter your name: each person has their own labels.")
    if len(plain) > LONGEST_PERSON or plain.startswith(FILE):
        raise Invalid(f"Choose a name of at most {LONGEST_PERSON} characters that does not begin with {FILE!r}.")
    if plain == DECISION:
        raise Invalid(f"Choose another name: {DECISION!r} stands for settled disagreements.")
    return visible(plain, LONGEST_PERSON)


def _one_line(text: str) -> str:
    """Replace control characters and runs of spaces by one space."""
    return " ".join(_CONTROL.sub(" ", text).split())
