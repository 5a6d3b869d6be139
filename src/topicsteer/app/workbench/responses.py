"""The answers that pages read, as typed records; `web.messages` has the requests and writes both as JSON.

A topic has a ``key`` and a ``name``. The key of a known topic is a number that never changes; the key of a free topic
is its number in the last fit, as in "free-3". The key "none" stands for documents with none of the known topics.
"""

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from topicsteer.analysis.agreement import Estimate
from topicsteer.app.workbench.current_model import Key


class Reply(msgspec.Struct, frozen=True):
    """An answer."""


class Piece(NamedTuple):
    """A piece of a document; ``key`` is the topic of a marked word. Written as a JSON array."""

    text: str
    key: Key | None = None
    strength: float = 0.0


class Term(NamedTuple):
    """A term of a topic. Written as a JSON array."""

    text: str
    strength: float


class DocumentLabels(Reply, frozen=True):
    """Labels of a document: states by key, with the key 0 for the whole document.

    ``mine`` are the labels of the person who asks, ``others`` the labels of other people. People differ on the topics
    in ``differing``; ``settled`` has the decisions on such topics. ``permitted`` are the topics that count.
    """

    mine: dict[int, str]
    others: dict[str, dict[int, str]]
    differing: list[int]
    permitted: list[int]
    settled: dict[int, str]
    notes: dict[str, str]


class Likely(Reply, frozen=True):
    """A known topic with its probability in a document, and whether that reaches the threshold."""

    key: int
    probability: float
    yes: bool


class DocumentView(Reply, frozen=True):
    """A document to read and label; ``shown`` of its ``length`` characters are in ``pieces``.

    ``none`` is the probability that it has none of the known topics; ``outside``: no topic reaches its threshold.
    """

    row: int
    id: str
    extra: dict[str, str]
    shown: int
    length: int
    pieces: list[Piece]
    likely: list[Likely]
    none: float
    outside: bool
    labels: DocumentLabels


class TextPart(Reply, frozen=True):
    """A further part of a long document, up to the character ``end``."""

    text: str
    end: int


class DocumentEntry(Reply, frozen=True):
    """A document in a list; ``none`` as in `DocumentView`."""

    row: int
    id: str
    text: str
    likely: list[Likely]
    none: float
    outside: bool
    labels: DocumentLabels


class DocumentPage(Reply, frozen=True):
    """One page of a list of documents."""

    documents: list[DocumentEntry]
    total: int
    page: int
    pages: int


class DocumentRows(Reply, frozen=True):
    """The rows of all documents of a selection."""

    rows: list[int]


class NextDocument(Reply, frozen=True):
    """The next document and the reason for it; without a row, ``why`` explains that none is left.

    ``key`` is the topic that a question is about. The page gets the ``document`` with it, without a second request.
    """

    row: int | None
    why: str
    left: int
    key: int | None = None
    document: DocumentView | None = None


class TopicSummary(Reply, frozen=True):
    """A topic in the last fit: terms, number of documents, and whether its name was found."""

    terms: list[Term]
    documents: int
    found: bool = True


class KnownTopic(Reply, frozen=True):
    """A known topic; ``labels`` is its number of labelled documents, ``fit`` comes from the last fit.

    ``parent`` is the key of the topic above it, and ``level`` counts from 1.
    """

    key: int
    name: str
    description: str
    colour: str
    keywords: tuple[str, ...]
    banned: tuple[str, ...]
    parent: int | None
    level: int
    labels: int
    fit: TopicSummary | None = None


class FreeTopic(Reply, frozen=True):
    """A free topic of the last fit."""

    key: str
    name: str
    fit: TopicSummary


class Beginning(Reply, frozen=True):
    """Id and beginning of a document."""

    row: int
    id: str
    text: str


class GroupView(Reply, frozen=True):
    """A group of the documents of a known topic: terms, number of documents, the surest rows, and three beginnings."""

    terms: list[str]
    documents: int
    rows: list[int]
    surest: list[Beginning]


class Share(NamedTuple):
    """An estimated share of all documents with the ends of its interval. Written as a JSON array."""

    share: float
    low: float
    high: float


class TopicLists(Reply, frozen=True):
    """All topics, whether documents may have none of the known ones, and estimated shares by key.

    Only random labels give shares.
    """

    known: list[KnownTopic]
    free: list[FreeTopic]
    none: bool = False
    shares: dict[Key, Share] = {}


class Progress(Reply, frozen=True):
    """Numbers of documents: labelled, differing, changed since the last fit, and all.

    ``drawn`` of the labelled documents were drawn at random, and ``wanted`` of them are needed for shares.
    ``seq`` is the number of the last event, so that a page keeps the newer of two answers.
    """

    labelled: int
    drawn: int
    wanted: int
    differing: int
    fresh: int
    documents: int
    seq: int


class PointTopic(Reply, frozen=True):
    """A topic on the document map; only known topics have a colour of their own."""

    key: Key
    name: str
    kind: Literal["known", "free", "none"]
    colour: str


class MapPoints(Reply, frozen=True):
    """The points of the document map, as little-endian numbers in base 64.

    Coordinates and topics have 16 bits, memberships and flags 8, rows 32. ``rows`` is empty if the map has every
    document, in order.
    """

    aspect: float
    x: str
    y: str
    topic: str
    membership: str
    labelled: str
    rows: str
    topics: list[PointTopic]
    sample: str


class MapStatus(Reply, frozen=True):
    """Whether there is a document map: it is ready, being made, missing (with the reason), or failed."""

    state: Literal["ready", "making", "missing", "failed"]
    done: int = 0
    total: int = 0
    message: str = ""


class MapPage(Reply, frozen=True):
    """The page "Map"."""

    points: MapPoints | None
    status: MapStatus


class FitStatus(Reply, frozen=True):
    """The state of the fit in the background: its stage, and how far it is."""

    state: Literal["idle", "fitting", "checking"] = "idle"
    stage: str = ""
    error: str = ""
    done: int = 0
    total: int | None = None
    detail: str = ""


class ModelSummary(Reply, frozen=True):
    """The last fit: warnings, seconds and labelled documents."""

    notes: list[str]
    seconds: float
    labelled: int


# --- messages to all open pages ---


class Changed(Reply, frozen=True):
    """Labels or topics changed; ``many``: ``documents`` lists only some of the rows."""

    who: str
    documents: list[int]
    many: bool
    topics: bool
    progress: Progress
    kind: Literal["changed"] = "changed"


class FitMoved(Reply, frozen=True):
    """The fit reached another stage, or ended."""

    status: FitStatus
    kind: Literal["fit"] = "fit"


class Refitted(Reply, frozen=True):
    """A new model is in use."""

    progress: Progress
    kind: Literal["fitted"] = "fitted"


class Advised(Reply, frozen=True):
    """Memberships followed labels, or something about the last fit is ready: advice or shares."""

    kind: Literal["advised"] = "advised"


class Mapped(Reply, frozen=True):
    """The document map moved on, is ready, or failed."""

    status: MapStatus
    kind: Literal["mapped"] = "mapped"


Notice: TypeAlias = Changed | FitMoved | Refitted | Advised | Mapped


# --- people ---


class TopicAgreement(Reply, frozen=True):
    """Agreement on one topic: α of all people, κ of the chosen pair, each with its number of documents."""

    key: int
    name: str
    documents: int
    alpha: Estimate | None
    pair_documents: int
    kappa: Estimate | None


class AgreementPage(Reply, frozen=True):
    """The page "Agreement": documents per person and per pair; ``pair`` is the position of the chosen pair.

    ``overlap`` documents are for several people, ``overlap_done`` of them have all labels. ``differing`` documents
    have open disagreements, and ``settled`` documents have a decision.
    """

    people: dict[str, int]
    pairs: list[tuple[str, str, int]]
    pair: int | None
    topics: list[TopicAgreement]
    overlap: int
    overlap_done: int
    differing: int
    settled: int


class Disagreement(Reply, frozen=True):
    """A document and a topic about which people differ, with the people on each side; ``more``: the text is longer."""

    row: int
    key: int
    id: str
    text: str
    more: bool
    yes: list[str]
    no: list[str]
    notes: dict[str, str]


class DisagreementPage(Reply, frozen=True):
    """Some open disagreements, and the number of all of them."""

    disagreements: list[Disagreement]
    total: int
