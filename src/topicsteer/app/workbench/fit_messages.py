"""Messages between the workbench and the process that fits: one JSON object per line."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec


class FitOrder(msgspec.Struct, frozen=True, tag="fit", tag_field="do"):
    """Fit a project.

    Parameters
    ----------
    project : str
        Path of the project file.
    folder : str
        Folder for the files of the model.
    topics : list
        The codebook as JSON.
    labels, forbidden : dict
        Names of topics by row.
    chosen : dict
        How labelled documents were chosen, by row.
    complete : bool
        Topics that are not among a document's labels are forbidden.
    free : int
        Number of free topics.
    world : "open", "closed" or None
        Whether documents may have none of the topics; None: the fit decides.
    previous : str, optional
        Folder of the last model, for its vocabulary and latent semantics.
    scratch : bool
        Use nothing of earlier models.
    path_separator : str, optional
        Separator of the levels in names that are paths.
    free_inside : dict
        Number of free topics inside topics, by their names.
    segmenter, embeddings : str, optional
        Segmenter of the texts, and the name of their embeddings.
    """

    project: str
    folder: str
    topics: list[dict[str, Any]]
    labels: dict[int, list[str]]
    forbidden: dict[int, list[str]]
    complete: bool
    free: int
    world: str | None = None
    previous: str | None = None
    scratch: bool = False
    chosen: dict[int, str] = {}
    path_separator: str | None = None
    free_inside: dict[str, int] = {}
    segmenter: str | None = None
    embeddings: str | None = None


class SplitTopic(msgspec.Struct, frozen=True, tag="split"):
    """Split a topic by its column: a free topic into its parts, or a known one into free topics inside it."""

    column: int
    parts: int


class CutFree(msgspec.Struct, frozen=True, tag="cut"):
    """Show at most this number of free topics."""

    number: int


class MergeFree(msgspec.Struct, frozen=True, tag="merge"):
    """Merge a free topic into another free topic or into a known one, both by their columns."""

    column: int
    into: int


class AdoptFree(msgspec.Struct, frozen=True, tag="adopt"):
    """Make a free topic known, by its column."""

    column: int
    name: str
    key: int


Edit: TypeAlias = SplitTopic | CutFree | MergeFree | AdoptFree


class EditOrder(msgspec.Struct, frozen=True, tag="edit", tag_field="do"):
    """Edit the free topics of the last model, without a fit.

    Parameters
    ----------
    project : str
        Path of the project file.
    folder : str
        Folder for the files of the edited model.
    previous : str
        Folder of the last model.
    keys : list of int
        Keys of its known topics.
    edit : Edit
        The change.
    embeddings : str, optional
        The name of the embeddings of the texts.
    """

    project: str
    folder: str
    previous: str
    keys: list[int]
    edit: Edit
    embeddings: str | None = None


class CancelOrder(msgspec.Struct, frozen=True, tag="cancel", tag_field="do"):
    """Cancel the fit."""


class Report(msgspec.Struct, frozen=True, tag_field="at"):
    """A message of the worker."""


class Ready(Report, frozen=True, tag="ready"):
    """The worker waits for orders."""


class Progressed(Report, frozen=True, tag="progress"):
    """The fit, or the work after it, moved on."""

    stage: str
    done: int
    total: int | None
    detail: str


class Finished(Report, frozen=True, tag="fitted"):
    """The model is saved; ``objective`` is its history over the iterations.

    ``warm``: vocabulary and latent semantics come from an earlier fit.
    """

    folder: str
    seconds: float
    warm: bool
    notes: list[str]
    objective: list[float]


class Edited(Report, frozen=True, tag="edited"):
    """The edited model is saved."""

    folder: str


class Suggestion(msgspec.Struct, frozen=True):
    """A document to label next."""

    row: int
    why: str


class Suggested(Report, frozen=True, tag="suggested"):
    """Documents to label next, and labels that look wrong as fields of `Doubt`."""

    suggestions: list[Suggestion]
    checks: list[dict[str, Any]]


class StoppingAdvice(Report, frozen=True, tag="stopping"):
    """Advice on whether more labels help."""

    sentence: str


class Point(msgspec.Struct, frozen=True):
    """A point of the learning curve of one fit: average precision on hidden labels, and its standard errors."""

    documents: int
    micro: float
    macro: float
    micro_error: float
    macro_error: float


class Scores(msgspec.Struct, frozen=True):
    """Average precision on hidden labels, with its standard errors and the numbers of documents and topics.

    ``points`` are the averages with fewer labels.
    """

    micro: float
    macro: float
    documents: int
    topics: int
    micro_error: float
    macro_error: float
    points: list[Point]

    @classmethod
    def of(cls, documents: int, topics: int, points: Sequence[Point]) -> "Scores":
        """Scores from the points of a curve; the last one has all labels that were not hidden."""
        last = points[-1]
        own = last.micro, last.macro, documents, topics, last.micro_error, last.macro_error
        return cls(*own, list(points[:-1]))


class Evaluated(Report, frozen=True, tag="judged"):
    """The model was evaluated on hidden labels."""

    scores: Scores


class Shared(Report, frozen=True, tag="shares"):
    """Shares of topics in the groups of columns, as `groups.plain_shares` writes them."""

    shares: dict[str, dict[str, Any]]


class Rested(Report, frozen=True, tag="rest"):
    """All work after the fit is done."""


class Failed(Report, frozen=True, tag="failed"):
    """The fit failed."""

    message: str
    kind: str = ""


class Cancelled(Report, frozen=True, tag="cancelled"):
    """The fit was cancelled."""


class Ended(Report, frozen=True, tag="ended"):
    """The process ended in the middle of a fit; sent by `FitProcess`."""

    code: int


Order: TypeAlias = FitOrder | EditOrder | CancelOrder
AnyReport: TypeAlias = (
    Ready
    | Progressed
    | Finished
    | Edited
    | Suggested
    | StoppingAdvice
    | Evaluated
    | Shared
    | Rested
    | Failed
    | Cancelled
    | Ended
)
read_order = msgspec.json.Decoder(Order).decode
read_report = msgspec.json.Decoder(AnyReport).decode


def line(message: Order | AnyReport) -> str:
    """Return a message as one line of JSON."""
    return msgspec.json.encode(message).decode() + "\n"
