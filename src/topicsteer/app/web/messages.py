"""Typed messages between page and server; unknown fields and wrong types are refused with the reason.

Requests and queries are below. Answers are the records in `workbench.answers` and at the end of this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from topicsteer.app.workbench.answers import (
    DocumentLabels,
    FitStatus,
    Key,
    ModelSummary,
    Progress,
    TopicLists,
)
from topicsteer.app.workbench.errors import Invalid, Malformed
from topicsteer.app.workbench.queue import Mode
from topicsteer.app.workbench.selection import Filter, Sort
from topicsteer.app.workbench.settings import ProjectSettings
from topicsteer.app.workbench.text_rules import person

T = TypeVar("T")
Row: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 40)]
# Words to search for.
Words: TypeAlias = Annotated[str, Meta(max_length=500)]
# A key as part of an address: "3" is a known topic, "free-3" a free one, "none" stands for none of the known ones.
KeyText: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9]{1,9}|free-[0-9]{1,6}|none)$")]
FreeKey: TypeAlias = Annotated[str, Meta(pattern=r"^free-[0-9]{1,6}$")]
# Rows as part of an address, separated by commas.
RowsText: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9]{1,9}(,[0-9]{1,9}){0,4999})?$")]
Export: TypeAlias = Literal[
    "labels",
    "labels-excel",
    "labels-by-person",
    "labels-by-person-excel",
    "jsonl",
    "doccano",
    "label-studio",
    "label-studio-config",
    "agreement",
    "agreement-excel",
    "log",
    "log-excel",
    "memberships",
    "memberships-excel",
    "model",
    "report",
    "workbook",
    "codebook",
    "codebook-refi-qda",
    "methods",
]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A request of the page, with the name of the person who uses it."""

    who: str

    @property
    def person(self) -> str:
        """The name of the person on one line."""
        return person(self.who)


# --- actions: POST /api/act ---


class Action(Message, frozen=True, kw_only=True, tag_field="action"):
    """An action. A repeated request of the same name acts once."""

    request: Annotated[str, Meta(min_length=1, max_length=64)] | None = None

    @property
    def kind(self) -> str:
        """The name of the action."""
        return str(self.__struct_config__.tag)

    def values(self) -> dict[str, Any]:
        """Return the arguments of the action that were given."""
        fields = msgspec.structs.asdict(self)
        return {name: v for name, v in fields.items() if name not in ("who", "request") and v is not UNSET}


class Label(Action, frozen=True, kw_only=True, tag="label"):
    """Label documents with a topic."""

    documents: list[Row]
    key: int
    state: Literal["permitted", "forbidden", "rest", "cleared"]


class Answer(Action, frozen=True, kw_only=True, tag="answer"):
    """Answer a question about one topic of a document."""

    document: Row
    key: int
    state: Literal["permitted", "forbidden"]


class NoneOfThese(Action, frozen=True, kw_only=True, tag="none"):
    """Label documents with none of the topics."""

    documents: list[Row]


class Skip(Action, frozen=True, kw_only=True, tag="skip"):
    """Skip documents."""

    documents: list[Row]


class Later(Action, frozen=True, kw_only=True, tag="later"):
    """Put documents aside for later."""

    documents: list[Row]


class Settle(Action, frozen=True, kw_only=True, tag="settle"):
    """Settle a disagreement about one topic of a document, or open it again."""

    document: Row
    key: int
    state: Literal["permitted", "forbidden", "cleared"]


class WriteNote(Action, frozen=True, kw_only=True, tag="note"):
    """Write a note on a document."""

    document: Row
    text: str


class Undo(Action, frozen=True, kw_only=True, tag="undo"):
    """Undo the last action of this person."""


class Redo(Action, frozen=True, kw_only=True, tag="redo"):
    """Redo the last undone action of this person."""


class NewTopic(Action, frozen=True, kw_only=True, tag="new topic"):
    """Create a topic."""

    name: str
    description: str = ""
    documents: list[Row] = []
    parent: int | None = None


class ChangeTopic(Action, frozen=True, kw_only=True, tag="change topic"):
    """Change some fields of a topic."""

    key: int
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    colour: str | UnsetType = UNSET
    keywords: list[str] | UnsetType = UNSET
    banned: list[str] | UnsetType = UNSET


class MoveTopic(Action, frozen=True, kw_only=True, tag="move topic"):
    """Put a topic under another one, or at the top."""

    key: int
    parent: int | None = None


class DeleteTopic(Action, frozen=True, kw_only=True, tag="delete topic"):
    """Delete a topic."""

    key: int


class MergeTopics(Action, frozen=True, kw_only=True, tag="merge topics"):
    """Merge topics into one."""

    keys: list[int]
    into: int


class SplitTopic(Action, frozen=True, kw_only=True, tag="split topic"):
    """Move documents of a topic to a new one."""

    key: int
    name: str
    documents: list[Row]


class OrderTopics(Action, frozen=True, kw_only=True, tag="order topics"):
    """Reorder the topics."""

    keys: list[int]


class ChangeSettings(Action, frozen=True, kw_only=True, tag="settings"):
    """Change some settings."""

    target: int | UnsetType | None = UNSET
    refit_after: int | UnsetType = UNSET
    free_topics: int | UnsetType = UNSET
    complete: bool | UnsetType = UNSET
    world: Literal["open", "closed"] | UnsetType | None = UNSET
    blind: bool | UnsetType = UNSET
    overlap: int | UnsetType = UNSET
    overlap_people: int | UnsetType = UNSET
    path_separator: str | UnsetType | None = UNSET
    free_inside: dict[str, int] | UnsetType = UNSET


AnyAction: TypeAlias = (
    Label
    | Answer
    | NoneOfThese
    | Skip
    | Later
    | Settle
    | WriteNote
    | Undo
    | Redo
    | NewTopic
    | ChangeTopic
    | MoveTopic
    | DeleteTopic
    | MergeTopics
    | SplitTopic
    | OrderTopics
    | ChangeSettings
)


# --- other requests ---


class StartFit(Message, frozen=True, kw_only=True):
    """POST /api/fit: start a fit; ``scratch``: without the vocabulary and latent semantics of earlier fits."""

    scratch: bool = False


# --- free topics: POST /api/free ---


class AdoptFree(Message, frozen=True, kw_only=True, tag_field="edit", tag="adopt"):
    """Make a free topic known."""

    key: FreeKey
    name: str
    description: str = ""


class MergeFree(Message, frozen=True, kw_only=True, tag_field="edit", tag="merge"):
    """Merge a free topic into another topic."""

    key: FreeKey
    into: int | FreeKey


class SplitFree(Message, frozen=True, kw_only=True, tag_field="edit", tag="split"):
    """Split a free topic."""

    key: FreeKey


class SplitKnown(Message, frozen=True, kw_only=True, tag_field="edit", tag="split known"):
    """Find free topics inside a known topic."""

    key: int
    parts: int = 2


class CutFree(Message, frozen=True, kw_only=True, tag_field="edit", tag="cut"):
    """Change the number of free topics."""

    number: int


FreeEdit: TypeAlias = AdoptFree | MergeFree | SplitFree | SplitKnown | CutFree


class CancelFit(Message, frozen=True, kw_only=True):
    """POST /api/cancel: cancel the fit."""


class WriteExport(Message, frozen=True, kw_only=True):
    """POST /api/export: write a file into the export folder."""

    kind: Export
    name: str | None = None


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """POST /login: the password."""

    password: str


# --- queries: the part of an address after "?" ---


class StateQuery(Message, frozen=True, kw_only=True):
    """GET /api/state."""


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
    start: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None


class DocumentsQuery(Message, frozen=True, kw_only=True):
    """GET /api/documents: a page of documents, or all rows of the selection."""

    query: Words = ""
    filter: Filter = "all"
    key: KeyText | None = None
    sort: Sort = "order"
    page: Annotated[int, Meta(ge=0, le=1 << 40)] = 0
    all_rows: bool = False


class ProgressQuery(Message, frozen=True, kw_only=True):
    """GET /api/progress: for a narrow or a wide screen."""

    narrow: bool = False


class GroupsQuery(Message, frozen=True, kw_only=True):
    """GET /api/groups: topics by the groups of a column."""

    column: str


class MapQuery(Message, frozen=True, kw_only=True):
    """GET /api/map: the document map."""


class BeginningsQuery(Message, frozen=True, kw_only=True):
    """GET /api/beginnings: ids and beginnings of at most 100 documents."""

    rows: Annotated[str, Meta(pattern=r"^[0-9]{1,9}(,[0-9]{1,9}){0,99}$")]

    @property
    def numbers(self) -> list[int]:
        """The rows."""
        return [int(row) for row in self.rows.split(",")]


class ImportQuery(Message, frozen=True, kw_only=True):
    """POST /api/import: labels of a file, which is the body of the request."""

    name: str = "labels"


class AgreementQuery(Message, frozen=True, kw_only=True):
    """GET /api/agreement: agreement between people, with κ of one pair."""

    first: str = ""
    second: str = ""


class DisagreementsQuery(Message, frozen=True, kw_only=True):
    """GET /api/disagreements: open disagreements from a position on."""

    start: Annotated[int, Meta(ge=0, le=1 << 40)] = 0


class ImportTopicsQuery(Message, frozen=True, kw_only=True):
    """POST /api/topics: topics of a file, which is the body of the request."""

    name: str = "topics"


class CodersQuery(Message, frozen=True, kw_only=True):
    """GET /api/coders: all coders, compared with the labels."""


class AddCoderQuery(Message, frozen=True, kw_only=True):
    """POST /api/coders: answers of a coder in a file, which is the body of the request."""

    coder: str
    name: str = "answers"


class RemoveCoder(Message, frozen=True, kw_only=True):
    """POST /api/coders/remove: remove a coder and its answers."""

    coder: str


# --- answers ---


@dataclass(frozen=True, slots=True)
class State:
    """The state that a page starts with."""

    version: str
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


@dataclass(frozen=True, slots=True)
class Done:
    """The effect of an action: ``touched`` documents, and the labels of the first of them by row."""

    batch: int
    repeated: bool
    touched: int
    note: str
    documents: dict[int, DocumentLabels]
    progress: Progress
    undo: bool
    redo: bool


@dataclass(frozen=True, slots=True)
class FitStarted:
    """Whether a fit was started; False if one is running, and this one waits for its end."""

    started: bool


@dataclass(frozen=True, slots=True)
class FreeEdited:
    """A free topic was edited; ``key`` is the known topic whose proposed documents can be confirmed."""

    key: int | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """A file in the export folder."""

    name: str
    size: int
    note: str


@dataclass(frozen=True, slots=True)
class Imported:
    """A sentence about imported labels."""

    message: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request was accepted; there is nothing else to report."""

    ok: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
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
        raise Malformed(_reason(error, where)) from error
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
        person(message.who)
    return message


def _reason(error: Exception, where: str) -> str:
    return f"{where}: {error}. Nothing was changed. Reload the page and try again."
