"""A check of the indices of sparse matrices, before compiled code follows them."""

from typing import Any

import scipy.sparse as sp


def checked_csr(X: Any, name: str = "X", **options: Any) -> sp.csr_array:
    """Return a sparse matrix as a CSR whose indices are in range; other input is converted by scipy.

    scipy does not check the arrays that a matrix is made of, and compiled code reads or writes wherever they point.

    Parameters
    ----------
    X : sparse matrix or array-like
    name : str
        Name of the matrix in messages.
    **options
        Arguments of ``scipy.sparse.csr_array``.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> import numpy as np
    >>> X = sp.csr_array(np.eye(2))
    >>> X.indices[1] = -1
    >>> checked_csr(X)
    Traceback (most recent call last):
    ValueError: X has the column index -1, but 2 columns: build the matrix again from valid indices.
    """
    given = getattr(X, "format", None)
    if given in ("csr", "csc", "coo", "bsr") and len(X.shape) == 2:
        check_indices(X, name)
    X = sp.csr_array(X, **options)
    if given in ("lil", "dok", "dia"):
        check_indices(X, name)
    return X


def check_indices(X: Any, name: str = "X") -> None:
    """Raise ValueError if a sparse matrix has indices out of range; two passes over the indices."""
    again = "build the matrix again from valid indices."
    if X.format == "coo":
        limits = zip(("row", "column"), (X.row, X.col), X.shape, strict=True)
    else:
        n, m = X.shape if X.format != "csc" else X.shape[::-1]
        rows, columns = X.blocksize if X.format == "bsr" else (1, 1)
        indptr, entries = X.indptr, min(len(X.indices), len(X.data))
        if len(indptr) != n // rows + 1 or indptr[0] != 0 or indptr[-1] > entries or (indptr[1:] < indptr[:-1]).any():
            raise ValueError(f"{name} has limits of rows (indptr) that do not match its {entries:,} entries: {again}")
        used = X.indices[: indptr[-1]]
        limits = zip(("row" if X.format == "csc" else "column",), (used,), (m // columns,), strict=True)
    for kind, indices, limit in limits:
        if indices.size and not (indices.min() >= 0 and indices.max() < limit):
            bad = indices[(indices < 0) | (indices >= limit)][0]
            raise ValueError(f"{name} has the {kind} index {bad}, but {limit:,} {kind}s: {again}")
