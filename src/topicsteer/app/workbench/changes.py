"""Results of actions on labels and topics."""

from typing import NamedTuple


class Change(NamedTuple):
    """The effect of an action: its batch, the rows of changed documents, and whether topics changed.

    ``repeated``: the same request was granted before, so nothing was done.
    """

    batch: int
    documents: tuple[int, ...] = ()
    topics: bool = False
    repeated: bool = False
    note: str = ""


class UndoState(NamedTuple):
    """Whether a person can undo an action, and redo one."""

    undo: bool
    redo: bool
