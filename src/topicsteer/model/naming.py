"""Names of free topics proposed by a function, such as a question to a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from topicsteer.system.chat import ChatServer
from topicsteer.system.safe_text import visible
from topicsteer.system.values import NONE

# Mark of a name that nobody has confirmed yet.
PROPOSED = " (proposed)"
# Longest name in characters.
LONGEST = 60
# Terms of a topic that are shown to the function.
TERMS = 15
# Characters of an example.
EXAMPLE = 400
# What surrounds a name in answers of language models.
_AROUND = re.compile(r"^[\s\"'`*#>.:-]+|[\s\"'`*.:]+$")


@dataclass(frozen=True)
class TopicToName:
    """A free topic without a proper name.

    Parameters
    ----------
    number : int
        Its number among all topics.
    name : str
        Its present name.
    terms : tuple of str
        Its terms, most typical first.
    examples : tuple of str
        Beginnings of documents that have it.
    taken : tuple of str
        Names of other topics.

    Examples
    --------
    >>> print(TopicToName(3, "milk, cow", ("milk", "cow"), (), ("tea",)).question)
    Name the topic of a group of documents in one to four words, in the language of its terms.
    Terms, most typical first: milk, cow
    Names that are taken: tea
    Answer with the name alone.
    """

    number: int
    name: str
    terms: tuple[str, ...]
    examples: tuple[str, ...]
    taken: tuple[str, ...]

    @property
    def question(self) -> str:
        """The question to a language model, with all that is sent."""
        lines = ["Name the topic of a group of documents in one to four words, in the language of its terms."]
        lines.append(f"Terms, most typical first: {', '.join(self.terms)}")
        lines += [f"Beginning of a document: {text}" for text in self.examples]
        lines += [f"Names that are taken: {'; '.join(self.taken)}"] if self.taken else []
        return "\n".join([*lines, "Answer with the name alone."])


# From a topic to its name.
Namer: TypeAlias = Callable[[TopicToName], str]


def chat_namer(url: str, model: str, *, key: str | None = None, timeout: float = 60.0) -> Namer:
    """A function that asks a server of language models for names, by the chat-completions protocol.

    Parameters
    ----------
    url : str
        Address of the server up to the version, such as ``http://localhost:11434/v1``.
    model : str
        Name of the language model.
    key : str, optional
        The secret that the server asks for.
    timeout : float, default=60
        Seconds to wait for an answer.

    Examples
    --------
    >>> ask = chat_namer("http://localhost:11434/v1", "some-model")
    >>> # model.name_free_topics(ask) shows what would be sent; model.name_free_topics(ask, yes=True) sends it
    """
    server = ChatServer(url, model, key, timeout)
    return lambda topic: server.ask(topic.question)


@dataclass(frozen=True)
class Proposal:
    """A proposed name; None if there is none, with the reason."""

    topic: TopicToName
    name: str | None = None
    note: str = ""


def propose(topics: Sequence[TopicToName], function: Namer, budget: int) -> list[Proposal]:
    """Ask for a name of each topic, and once again if another topic has it; at most ``budget`` questions in all.

    A server that stops to answer leaves the names before that; one that never answers raises its error.
    """
    found: list[Proposal] = []
    left, taken = budget, set[str]()
    for topic in topics:
        note, name = "the budget is spent", None
        topic = replace(topic, taken=(*topic.taken, *sorted(taken)))
        for _ in range(2):
            if not left:
                break
            left -= 1
            try:
                name = clean(function(topic))
            except ConnectionError as error:
                if not taken:
                    raise
                name, note, left = None, str(error), 0
                break
            note = "" if name else "the answer has no name"
            if name and name.casefold() in {one.casefold() for one in topic.taken}:
                name, note = None, f"{name!r} is the name of another topic"
                continue
            break
        taken |= {name} if name else set()
        found.append(Proposal(topic, name, note))
    return found


def clean(answer: str) -> str | None:
    """The name in an answer: its first line without quotes and hidden characters; None if it is empty or too long.

    Examples
    --------
    >>> clean('**"Milk and cream"**'), clean(" "), clean("(none)")
    ('Milk and cream', None, None)
    """
    lines = [line for line in str(answer).splitlines() if line.strip()]
    name = " ".join(_AROUND.sub("", visible(lines[0], 10 * LONGEST)).split()) if lines else ""
    name = name.removesuffix(PROPOSED.strip()).strip()
    return name if 0 < len(name) <= LONGEST and name != NONE else None


def present_name(name: Hashable) -> str:
    """A name without the mark of a proposal."""
    return str(name).removesuffix(PROPOSED)
