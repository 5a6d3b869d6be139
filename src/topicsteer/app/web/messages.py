"""Typed messages between page and server; unknown fields and wrong types are refused with the reason.

Requests and queries are below. `workbench.actions` has the actions of people. Answers are the records in
`workbench.responses` and at the end of this module.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from topicsteer.app.workbench.actions import Message, Row
from topicsteer.app.workbench.current_model import Key
from topicsteer.app.workbench.errors import Invalid, Refused, person_name
from topicsteer.app.workbench.label_queue import Mode
from topicsteer.app.workbench.project import ProjectSettings
from topicsteer.app.workbench.responses import DocumentLabels, FitStatus, ModelSummary, Progress, Reply, TopicLists
from topicsteer.app.workbench.views import Filter, Sort

T = TypeVar("T")
# A position in a list or in a text.
Place: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 40)]
# Words to search for.
Words: TypeAlias = Annotated[str, Meta(max_length=500)]
# A key as part of an address: "3" is a known topic, "free-3" a free one, "none" stands for none of the known ones.
KeyText: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9]{1,9}|free-[0-9]{1,6}|none)$")]
FreeKey: TypeAlias = Annotated[str, Meta(pattern=r"^free-[0-9]{1,6}$")]
# Rows as part of an address, separated by commas.
RowsText: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9]{1,9}(,[0-9]{1,9}){0,4999})?$")]


# --- requests ---


class Adopt(Message, frozen=True, kw_only=True):
    """POST /api/adopt: make a topic of a free topic, or of documents below another topic."""

    name: str
    description: str = ""
    source: FreeKey | Sequence[Row]
    parent: int | None = None


class Split(Message, frozen=True, kw_only=True):
    """POST /api/split: find groups of the documents of a known topic."""

    key: int
    parts: int = 2


class WriteExport(Message, frozen=True, kw_only=True):
    """POST /api/export: write a file into the export folder."""

    kind: str


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST /login: the password."""

    password: str


# --- queries: the part of an address after "?" ---


class NextQuery(Message, frozen=True, kw_only=True):
    """GET /api/next: the next document, without the rows that the person has seen."""

    mode: Mode = "suggested"
    query: Words = ""
    key: KeyText | None = None
    seen: RowsText = ""

    @property
    def rows(self) -> list[int]:
        """The rows that the person has seen."""
        return [int(row) for row in self.seen.split(",") if row]


class DocumentQuery(Message, frozen=True, kw_only=True):
    """GET /api/documents/{row}: a document, or its text from the character ``start``."""

    row: Row
    start: Place | None = None


class DocumentsQuery(Message, frozen=True, kw_only=True):
    """GET /api/documents: a page of documents, or all rows of the selection."""

    query: Words = ""
    filter: Filter = "all"
    key: KeyText | None = None
    sort: Sort = "order"
    page: Place = 0
    all_rows: bool = False


class BeginningsQuery(Message, frozen=True, kw_only=True):
    """GET /api/beginnings: ids and beginnings of at most 100 documents."""

    rows: Annotated[str, Meta(pattern=r"^[0-9]{1,9}(,[0-9]{1,9}){0,99}$")]

    @property
    def numbers(self) -> list[int]:
        """The rows."""
        return [int(row) for row in self.rows.split(",")]


class AgreementQuery(Message, frozen=True, kw_only=True):
    """GET /api/agreement: agreement between people, with κ of one pair."""

    first: str = ""
    second: str = ""


class DisagreementsQuery(Message, frozen=True, kw_only=True):
    """GET /api/disagreements: open disagreements from a position on."""

    start: Place = 0


class UploadQuery(Message, frozen=True, kw_only=True):
    """POST /api/import and /api/topics: labels or topics of a file, which is the body of the request."""

    name: str = "file"


# --- answers ---


class State(Reply, frozen=True):
    """The state that a page starts with."""

    project: str
    folder: str
    notice: str
    who: str
    people: list[str]
    undo: bool
    redo: bool
    settings: ProjectSettings
    topics: TopicLists
    progress: Progress
    fit: FitStatus
    model: ModelSummary | None


class Done(Reply, frozen=True):
    """The effect of an action: ``touched`` documents, and the labels of the first of them by row."""

    batch: int
    repeated: bool
    touched: int
    note: str
    documents: dict[int, DocumentLabels]
    progress: Progress
    undo: bool
    redo: bool


class FitStarted(Reply, frozen=True):
    """Whether a fit was started; False if one is running."""

    started: bool


class Adopted(Reply, frozen=True):
    """The key of the new topic, whose proposed documents can be confirmed."""

    key: int


class Exported(Reply, frozen=True):
    """A file in the export folder."""

    name: str
    size: int
    note: str


class Imported(Reply, frozen=True):
    """A sentence about imported labels."""

    message: str


class Accepted(Reply, frozen=True):
    """A request was accepted; there is nothing else to report."""

    ok: bool = True


class Problem(Reply, frozen=True):
    """The reason why a request was refused."""

    error: str


# --- reading and writing ---


def read_body(body: bytes, kind: type[T], where: str) -> T:
    """Return the message in the body of a request.

    Parameters
    ----------
    body : bytes
        JSON.
    kind : type
        The expected message.
    where : str
        The request, for the error message.
    """
    try:
        message = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Invalid(_reason(error, where)) from error
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
        raise Refused(_reason(error, where)) from error
    return _with_person(message)


def read_query(values: Mapping[str, Any], kind: type[T], where: str) -> T:
    """Return the message in the query and path of an address."""
    try:
        message = msgspec.convert(values, type=kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:  # before 0.20 it was no ValueError
        raise Invalid(_reason(error, where)) from error
    return _with_person(message)


def topic_key(text: str | None) -> Key | None:
    """Return a key from an address."""
    return int(text) if text and text.isascii() and text.isdigit() else text


def write(answer: object) -> bytes:
    """Return an answer or notice as JSON."""
    return msgspec.json.encode(answer)


def _with_person(message: T) -> T:
    """Return a message, or refuse it if the name of the person is missing or unsuitable."""
    if isinstance(message, Message):
        person_name(message.who)
    return message


def _reason(error: Exception, where: str) -> str:
    return f"{where}: {error}. Nothing was changed. Reload the page and try again."
