"""What people may ask for: names, descriptions, colours and words, checked."""

from __future__ import annotations

import re

from topicsteer.app.workbench.decisions import FILE
from topicsteer.system.safe_text import visible

LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_PERSON, MOST_WORDS = 80, 4_000, 40, 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


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


def colour(text: object) -> str:
    """A colour in hexadecimal."""
    if not isinstance(text, str) or not re.fullmatch(r"#[0-9a-f]{6}", text):
        raise Refused("A colour is written as #3b7dd8.")
    return text


def words(words: object) -> tuple[str, ...]:
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
