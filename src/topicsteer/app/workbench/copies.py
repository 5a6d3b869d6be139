"""Near-duplicates in a project: a document that is nearly the same as a labelled one is not suggested."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topicsteer.app.workbench.project import Project, read_documents
from topicsteer.text.near_duplicates import near_duplicates

# Up to this number of documents, near-duplicates are found before the first page opens; otherwise in the background.
AT_ONCE = 2_000


class Copies:
    """The near-duplicates of each document; until they are found, there are none.

    Parameters
    ----------
    project : Project
        The documents.
    """

    def __init__(self, project: Project) -> None:
        self._path = project.path
        # For each document the row of the first one that is nearly the same.
        self._first: NDArray[np.int64] | None = None
        if len(project) <= AT_ONCE:
            self._find()
        else:
            threading.Thread(target=self._find, daemon=True).start()

    def _find(self) -> None:
        self._first = near_duplicates(read_documents(self._path).texts)

    def mask(self, rows: Sequence[int] | NDArray[np.int64], n: int) -> NDArray[np.bool_]:
        """Return which of all documents are near-duplicates of these rows, or these rows themselves."""
        mask = np.zeros(n, dtype=np.bool_)
        mask[rows] = True
        if self._first is None or not len(rows):
            return mask
        return mask | np.isin(self._first, self._first[rows])

    def any(self) -> bool:
        """Return whether any two documents are nearly the same."""
        return self._first is not None and bool((self._first != np.arange(len(self._first))).any())

    def number(self, row: int) -> int:
        """Return the number of other documents that are nearly the same."""
        return 0 if self._first is None else int((self._first == self._first[row]).sum()) - 1
