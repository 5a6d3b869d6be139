"""The codebook: topics with descriptions, terms and documents, as one HTML file without a script."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from topicsteer.report.shell import page


@dataclass(frozen=True)
class CodedDocument:
    """A document of a topic, with its membership in the topic."""

    id: Hashable
    text: str
    membership: float


@dataclass(frozen=True)
class Entry:
    """A topic of a codebook.

    Parameters
    ----------
    name, description : str
        As the people who label wrote them.
    facts : sequence of str
        Numbers, such as "12 labels".
    lists : mapping of str to sequence of str
        Keywords and terms, by their title.
    documents : mapping of str to sequence of CodedDocument
        By their title, such as "Typical documents".
    """

    name: str
    description: str = ""
    facts: Sequence[str] = ()
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    documents: Mapping[str, Sequence[CodedDocument]] = field(default_factory=dict)


def render_codebook(title: str, entries: Sequence[Entry]) -> str:
    """The codebook as HTML.

    Examples
    --------
    >>> book = render_codebook("Drinks", [Entry("tea & cake", "With <b>milk</b>.")])
    >>> "<h1>Drinks</h1>" in book, "tea &amp; cake" in book, "With &lt;b&gt;milk" in book
    (True, True, True)
    """
    return page("codebook.html", title, entries=entries)
