"""How the documents of labels were chosen, and with which probability.

A table may have two columns for it. ``chosen`` is "random", "doubt" (drawn with a known probability, doubtful documents
more often) or "suggested" (by a rule or a person). A number gives the order of rounds: "random", then "suggested 2",
then "doubt 3". ``probability`` is the probability of a draw by doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.system.values import is_missing

# Names of the two columns.
CHOSEN, PROBABILITY = "chosen", "probability"


class Kind(IntEnum):
    """How a document was chosen."""

    UNKNOWN = 0
    RANDOM = 1
    SUGGESTED = 2
    DOUBT = 3


@dataclass(frozen=True, eq=False)
class Origin:
    """Origin of the labels of each document.

    Parameters
    ----------
    kind : int8 array (n_documents,)
        A :class:`Kind`; unlabelled documents are UNKNOWN.
    draw : int32 array (n_documents,)
        Number of the round in which the document was chosen, from 1; 0 without one.
    probability : array (n_documents,)
        Probability with which the document was drawn; NaN if it is unknown or the same for all documents.

    Notes
    -----
    Labels of unknown origin next to others count as chosen before them.
    """

    kind: NDArray[np.int8]
    draw: NDArray[np.int32]
    probability: NDArray[np.float64]

    @classmethod
    def unknown(cls, n: int) -> Origin:
        """Labels of unknown origin."""
        return cls(np.zeros(n, dtype=np.int8), np.zeros(n, dtype=np.int32), np.full(n, np.nan))

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]], n: int) -> Origin | None:
        """The origin in the columns ``chosen`` and ``probability`` of a table; None if the first is about other things.

        Raises
        ------
        ValueError
            If a value is not as expected; the message has the row.

        Examples
        --------
        >>> found = Origin.of({"chosen": ["random", None, "doubt 2"], "probability": [None, None, 0.2]}, 3)
        >>> found.kind.tolist(), found.draw.tolist(), found.probability.tolist()
        ([1, 0, 3], [1, 0, 2], [nan, nan, 0.2])
        """
        if CHOSEN not in columns or not any(_kind(str(value)) for value in columns[CHOSEN]):
            return None
        found, given = cls.unknown(n), columns.get(PROBABILITY, [None] * n)
        for row, (chosen, probability) in enumerate(zip(columns[CHOSEN], given, strict=True)):
            if not is_missing(chosen):
                kind, draw = _read(str(chosen), row)
                found.kind[row], found.draw[row] = kind, draw
                found.probability[row] = _probability(probability, kind, row)
        return found

    def arrays(self) -> dict[str, NDArray[Any]] | None:
        """The fields as arrays; None if nothing is known."""
        return vars(self).copy() if self.kind.any() else None

    def names(self) -> list[str | None]:
        """The column ``chosen``."""
        return [_name(Kind(kind), draw) for kind, draw in zip(self.kind.tolist(), self.draw.tolist(), strict=True)]

    @property
    def rounds(self) -> int:
        """Number of the last round."""
        return int(self.draw.max(initial=0))

    def take(self, rows: NDArray[np.integer[Any]]) -> Origin:
        """The origin of some documents."""
        return Origin(self.kind[rows], self.draw[rows], self.probability[rows])

    def extend(
        self,
        columns: Mapping[str, Sequence[Any]],
        rows: NDArray[np.integer[Any]],
        n: int,
        labelled: NDArray[np.bool_] | None = None,
    ) -> Origin:
        """Extend to n documents, and replace the origin of some rows where the columns of their table have one.

        ``labelled`` has the rows with a label now. First labels without an origin are later than all draws, so they
        are a round of their own that somebody chose.
        """
        other = Origin.of(columns, len(rows)) or Origin.unknown(len(rows))
        more = n - len(self.kind)
        kind, draw = np.pad(self.kind, (0, more)), np.pad(self.draw, (0, more))
        probability = np.pad(self.probability, (0, more), constant_values=np.nan)
        known = other.kind != Kind.UNKNOWN
        kind[rows[known]], draw[rows[known]] = other.kind[known], other.draw[known]
        probability[rows[known]] = other.probability[known]
        if labelled is not None and self.kind.any():
            late = rows[labelled & (kind[rows] == Kind.UNKNOWN)]
            kind[late], draw[late] = Kind.SUGGESTED, max(self.rounds, other.rounds) + 1
        return Origin(kind, draw, probability)


def _name(kind: Kind, draw: int) -> str | None:
    if kind == Kind.UNKNOWN:
        return None
    return kind.name.lower() + (f" {draw}" if draw > 1 else "")


def _read(text: str, row: int) -> tuple[Kind, int]:
    """Kind and number of a draw, from a cell."""
    kind, number = _kind(text), text.strip().partition(" ")[2] or "1"
    if kind is None or not (number.isdecimal() and len(number) < 9):
        raise ValueError(
            f"row {row + 1}: the column {CHOSEN!r} has {text[:40]!r}; expected random, doubt, suggested or nothing."
        )
    return kind, int(number)


def _kind(text: str) -> Kind | None:
    """The kind that a cell names, if any."""
    name = text.strip().upper().partition(" ")[0]
    return Kind[name] if name in ("RANDOM", "SUGGESTED", "DOUBT") else None


def _probability(value: object, kind: Kind, row: int) -> float:
    """The probability of a draw, from a cell."""
    if is_missing(value):
        if kind == Kind.DOUBT:
            raise ValueError(f"row {row + 1}: drawn by doubt, but the column {PROBABILITY!r} is empty.")
        return float("nan")
    try:
        found = float(str(value))
    except ValueError:
        found = 0.0
    if not 0 < found <= 1:
        raise ValueError(f"row {row + 1}: the column {PROBABILITY!r} has {str(value)[:40]!r}; expected 0 to 1.")
    return found
