"""Any form of labels -> :class:`Supervision`; every check and message about labels."""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

UNKNOWN, FORBIDDEN, PERMITTED = -1, 0, 1

_SEVERAL = (list, tuple, set, frozenset, np.ndarray)
_FORMS = (
    "Give one label a document (None, NaN or -1 = unlabelled), a list of labels a document ([] = unlabelled), "
    "a dict {row: labels}, or an indicator matrix (1 permitted, 0 forbidden, NaN unknown)."
)


@dataclass(frozen=True, eq=False)
class Supervision:
    """What is known of the topics of each document.

    Documents with the same labels share a pattern, so that a million labelled documents cost four bytes each.

    Parameters
    ----------
    topics : tuple of str or int
        Names of the known topics, in the user's order.
    pattern : int32 array of shape (n_documents,)
        For each document the row of ``patterns`` that holds for it; 0 = unlabelled.
    patterns : int8 array of shape (n_patterns, n_topics)
        1 the topic is permitted, 0 it is forbidden, -1 unknown. The first row is all unknown.

    Examples
    --------
    >>> supervision = supervise(["tea", None, "coffee"], 3)
    >>> supervision.topics
    ('coffee', 'tea')
    >>> supervision.counts
    array([1, 1])
    """

    topics: tuple[Hashable, ...]
    pattern: NDArray[np.int32]
    patterns: NDArray[np.int8]

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """For each document whether anything is known of it."""
        return np.asarray(self.pattern != 0)

    @property
    def permits(self) -> NDArray[np.bool_]:
        """For each document whether it is labelled with a topic."""
        return np.asarray((self.patterns == PERMITTED).any(axis=1)[self.pattern])

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of documents labelled with each topic."""
        uses = np.bincount(self.pattern, minlength=len(self.patterns))
        return np.asarray(uses @ (self.patterns == PERMITTED), dtype=np.int64)

    def indicator(self) -> sp.csr_array:
        """Sparse 0/1 matrix (n_documents, n_topics) of the labels that were given."""
        return sp.csr_array((self.patterns == PERMITTED).astype(np.float64))[self.pattern]

    def merge(self, group: Sequence[int]) -> Supervision:
        """Several topics as one, at the place of the first: permitted if one is, forbidden if all are."""
        states = self.patterns[:, list(group)]
        rest = np.where((states == FORBIDDEN).all(axis=1), FORBIDDEN, UNKNOWN)
        patterns = self.patterns.copy()
        patterns[:, group[0]] = np.where((states == PERMITTED).any(axis=1), PERMITTED, rest)
        topics = tuple(name for k, name in enumerate(self.topics) if k not in group[1:])
        return Supervision(topics, self.pattern, np.delete(patterns, list(group[1:]), axis=1))

    def among(self, topics: Sequence[Hashable], complete: bool) -> Supervision:
        """The same among more topics: what is labelled lacks the others if labels are complete, else nobody knows."""
        if tuple(topics) == self.topics:
            return self
        patterns = np.full((len(self.patterns), len(topics)), UNKNOWN, dtype=np.int8)
        if complete:
            patterns[(self.patterns == PERMITTED).any(axis=1)] = FORBIDDEN
        place = {name: k for k, name in enumerate(topics)}
        patterns[:, [place[name] for name in self.topics]] = self.patterns
        return Supervision(tuple(topics), self.pattern, patterns)

    def relabel(self, rows: NDArray[np.int64], states: NDArray[np.int8], n_documents: int) -> Supervision:
        """The same for more documents, and with what is newly said of some: it counts where it is not "unknown".

        Examples
        --------
        >>> old = supervise(["tea", None], 2, topics=["tea", "milk"])
        >>> now = old.relabel(np.array([1, 2]), np.array([[-1, 0], [1, 1]], dtype=np.int8), 3)
        >>> now.patterns[now.pattern].tolist()
        [[1, 0], [-1, 0], [1, 1]]
        """
        pattern = np.zeros(n_documents, dtype=np.int32)
        pattern[: len(self.pattern)] = self.pattern
        seen: dict[bytes, int] = {}
        for state in self.patterns:
            seen.setdefault(state.tobytes(), len(seen))
        kept = np.array([seen[state.tobytes()] for state in self.patterns], dtype=np.int32)
        pattern = kept[pattern]
        known = list(seen)
        for row, state in zip(rows, states, strict=True):
            before = np.frombuffer(known[pattern[row]], dtype=np.int8)
            key = np.where(state == UNKNOWN, before, state).astype(np.int8).tobytes()
            if key not in seen:
                seen[key] = len(seen)
                known.append(key)
            pattern[row] = seen[key]
        patterns = np.frombuffer(b"".join(known), dtype=np.int8).reshape(len(known), len(self.topics))
        return Supervision(self.topics, pattern, patterns)

    def permitted(self, n_components: int, free_in_labelled: bool) -> NDArray[np.bool_]:
        """For each pattern the components, known and free, that it permits.

        Where only something is forbidden, free topics are always permitted: nothing else might be left.
        """
        mask = np.ones((len(self.patterns), n_components), dtype=np.bool_)
        mask[:, : len(self.topics)] = self.patterns != FORBIDDEN
        if not free_in_labelled:
            mask[(self.patterns == PERMITTED).any(axis=1), len(self.topics) :] = False
        return mask


def supervise(
    y: Any, n_documents: int, *, topics: Sequence[Hashable] | None = None, complete: bool = True
) -> Supervision:
    """Read labels in any accepted form.

    Parameters
    ----------
    y : None, array-like, list of lists, dict, indicator matrix, or Supervision
        One label a document with None, NaN or -1 for unlabelled; a list of labels a document with [] for
        unlabelled; ``{row: label or labels}``; or an indicator matrix (n_documents, n_topics), dense, sparse or
        DataFrame, with 1 permitted, 0 forbidden, NaN unknown.
    n_documents : int
        Number of rows of the matrix that the labels belong to.
    topics : sequence, optional
        Names and order of the known topics; may name topics that have no label yet. Default: the names found in
        ``y``, sorted; for an indicator its columns.
    complete : bool, default=True
        A labelled document contains no other known topic than those listed. False: others may be present.
        An indicator says so itself with 0 and NaN; in a sparse one the entries not stored are 0 if complete, else
        unknown.

    Returns
    -------
    Supervision

    Examples
    --------
    >>> supervise([["tea", "milk"], [], ["coffee"]], 3, topics=["tea", "coffee", "milk"]).patterns
    array([[-1, -1, -1],
           [ 1,  0,  1],
           [ 0,  1,  0]], dtype=int8)
    >>> supervise({2: "tea"}, 4).pattern
    array([0, 0, 1, 0], dtype=int32)
    """
    if isinstance(y, Supervision):
        _check_length(len(y.pattern), n_documents)
        return y
    if topics is not None:
        topics = [_plain(name) for name in topics]
        if len(set(topics)) < len(topics):
            raise ValueError(f"topics names {_first_double(topics)!r} twice: each known topic needs its own name.")
    if y is None:
        y = {}
    if sp.issparse(y):
        return _from_sparse(y, n_documents, topics, complete)
    if isinstance(y, Mapping):
        return _from_lists(_dict_rows(y, n_documents), n_documents, topics, complete)
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_indicator(frame.to_numpy(), n_documents, topics or [_plain(name) for name in frame.columns])
    if not hasattr(y, "__len__") and hasattr(y, "__array__"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return _from_indicator(y, n_documents, topics)
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise ValueError(f"y is {y!r}, which is no labels. {_FORMS}")
    _check_length(len(y), n_documents)
    values = y.tolist() if hasattr(y, "tolist") else y.to_list() if hasattr(y, "to_list") else y
    return _from_lists(enumerate(values), n_documents, topics, complete)


def extend(
    known: Sequence[Hashable],
    y: Any,
    n_documents: int,
    *,
    topics: Sequence[Hashable] | None = None,
    complete: bool = True,
) -> Supervision:
    """Read labels of further documents: topics that are not known yet come behind those that are.

    Examples
    --------
    >>> extend(["tea", "coffee"], [["milk"], ["tea"]], 2).topics
    ('tea', 'coffee', 'milk')
    """
    nameless = getattr(y, "ndim", 1) == 2 and not hasattr(y, "columns")
    found = supervise(y, n_documents, topics=known if topics is None and nameless else topics, complete=complete)
    return found.among([*known, *(name for name in found.topics if name not in known)], complete)


def forbid(supervision: Supervision, forbidden: Sequence[Iterable[Hashable]]) -> Supervision:
    """Add what documents do not contain: for each a list of topics, often empty.

    Examples
    --------
    >>> supervision = forbid(supervise(["tea", None, "milk"], 3), [[], ["tea"], []])
    >>> supervision.patterns[supervision.pattern]
    array([[ 0,  1],
           [-1,  0],
           [ 1,  0]], dtype=int8)
    """
    _check_length(len(forbidden), len(supervision.pattern))
    column = {name: k for k, name in enumerate(supervision.topics)}
    rows = {row: list(names) for row, names in enumerate(forbidden) if names}

    def states() -> Iterator[NDArray[np.int8]]:
        for row, p in enumerate(supervision.pattern):
            state = supervision.patterns[p].copy()
            for name in rows.get(row, ()):
                if name not in column:
                    raise ValueError(_unknown_label(name, row, supervision.topics))
                state[column[name]] = FORBIDDEN
            yield state

    return _from_states(states(), len(supervision.pattern), supervision.topics) if rows else supervision


def _from_lists(
    rows: Iterable[tuple[int, Any]], n_documents: int, topics: Sequence[Hashable] | None, complete: bool
) -> Supervision:
    """Labels as (row, one label or several)."""
    label_sets: dict[frozenset[Hashable], int] = {frozenset(): 0}
    seen: dict[Any, int] = {None: 0, (): 0}  # what was read before, as it was written: most documents repeat it
    first_row: dict[Hashable, int] = {}
    pattern = np.zeros(n_documents, dtype=np.int32)
    for row, value in rows:
        several = isinstance(value, _SEVERAL)
        written = tuple(value) if several else value
        try:
            pattern[row] = seen[written]
        except (KeyError, TypeError):
            labels = frozenset(_name(v, row) for v in (written if several else (value,)) if not _missing(v))
            for name in labels:
                first_row.setdefault(name, row)
            if labels:
                pattern[row] = seen[written] = label_sets.setdefault(labels, len(label_sets))
    if topics is None:
        topics = sorted(first_row, key=lambda name: (isinstance(name, str), name))
    column = {name: k for k, name in enumerate(topics)}
    for name, row in first_row.items():
        if name not in column:
            raise ValueError(_unknown_label(name, row, topics))
    patterns = np.full((len(label_sets), len(topics)), FORBIDDEN if complete else UNKNOWN, dtype=np.int8)
    patterns[0] = UNKNOWN
    for labels, p in label_sets.items():
        patterns[p, [column[name] for name in labels]] = PERMITTED
    return Supervision(tuple(topics), pattern, patterns)


def _from_indicator(y: Any, n_documents: int, topics: Sequence[Hashable] | None) -> Supervision:
    """Labels as a dense matrix of 1, 0 and NaN."""
    _check_length(len(y), n_documents)
    topics = _indicator_topics(y.shape[1], topics)
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y is a matrix that holds more than numbers ({error}). {_FORMS}") from None
    _check_indicator(values)
    states = np.where(np.isnan(values), UNKNOWN, values).astype(np.int8)
    return _from_states((states[i] for i in range(n_documents)), n_documents, topics)


def _from_sparse(y: Any, n_documents: int, topics: Sequence[Hashable] | None, complete: bool) -> Supervision:
    """Labels as a sparse matrix of 1 and NaN (and, when incomplete, stored zeros)."""
    y = sp.csr_array(y)
    _check_length(y.shape[0], n_documents)
    topics = _indicator_topics(y.shape[1], topics)
    values = np.asarray(y.data, dtype=np.float64)
    _check_indicator(values)

    def rows() -> Iterator[NDArray[np.int8]]:
        for i in range(n_documents):
            entries = slice(y.indptr[i], y.indptr[i + 1])
            state = np.full(y.shape[1], FORBIDDEN if complete else UNKNOWN, dtype=np.int8)
            state[y.indices[entries]] = np.where(np.isnan(values[entries]), UNKNOWN, values[entries])
            yield state

    return _from_states(rows(), n_documents, topics)


def _from_states(states: Iterable[NDArray[np.int8]], n_documents: int, topics: Sequence[Hashable]) -> Supervision:
    """One row of states a document -> shared patterns."""
    seen = {np.full(len(topics), UNKNOWN, dtype=np.int8).tobytes(): 0}
    pattern = np.empty(n_documents, dtype=np.int32)
    for i, state in enumerate(states):
        pattern[i] = seen.setdefault(state.tobytes(), len(seen))
    patterns = np.frombuffer(b"".join(seen), dtype=np.int8).reshape(len(seen), len(topics))
    return Supervision(tuple(topics), pattern, patterns)


def _dict_rows(y: Mapping[Any, Any], n_documents: int) -> Iterator[tuple[int, Any]]:
    """Labels as {row: labels}, with the row numbers checked."""
    for row, labels in y.items():
        if not isinstance(row, int | np.integer) or not 0 <= row < n_documents:
            raise ValueError(
                f"y has labels for row {row!r}, but the rows are the numbers 0 to {n_documents - 1}: "
                "the keys of a dict of labels are positions of documents in X."
            )
        yield int(row), labels


def _indicator_topics(n_columns: int, topics: Sequence[Hashable] | None) -> Sequence[Hashable]:
    if topics is None:
        return range(n_columns)
    if len(topics) != n_columns:
        raise ValueError(
            f"y is an indicator matrix with {n_columns} columns, but {len(topics)} topics are named: "
            "it needs one column a topic, in the same order."
        )
    return topics


def _check_length(length: int, n_documents: int) -> None:
    if length != n_documents:
        raise ValueError(f"y has labels for {length} documents, but X has {n_documents}. {_FORMS}")


def _check_indicator(values: NDArray[np.float64]) -> None:
    wrong = ~(np.isnan(values) | (values == 0) | (values == 1))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"row {where[0]}, column {where[1]}" if values.ndim == 2 else "a stored entry"
        raise ValueError(f"y is an indicator matrix with {values[wrong][0]:g} at {place}. {_FORMS}")


def _unknown_label(name: Hashable, row: int, topics: Sequence[Hashable]) -> str:
    near = difflib.get_close_matches(str(name), [str(topic) for topic in topics], n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    known = ", ".join(str(topic) for topic in topics[:8]) + (", ..." if len(topics) > 8 else "")
    return f"row {row} has the label {name!r}, which is not one of the {len(topics)} topics ({known}).{guess}"


def _first_double(names: Sequence[Hashable]) -> Hashable:
    return next(name for i, name in enumerate(names) if name in names[:i])


def _missing(value: Any) -> bool:
    """None, NaN, -1, an empty string, or a data frame's own missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return not value
    return isinstance(value, int | float | np.number) and (value != value or value == -1)


def _plain(value: Any) -> Any:
    """A numpy scalar as a Python one."""
    return value.item() if isinstance(value, np.generic) else value


def _name(value: Any, row: int) -> Hashable:
    """A label as str or int; 3.0 is 3, because a column of integers with gaps is read as floats."""
    value = _plain(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, str | int):
        return value
    raise ValueError(f"row {row} has the label {value!r} ({type(value).__name__}): labels are strings or integers.")


def hidden_parts(truth: sp.csr_array, folds: int, seed: int) -> NDArray[np.int64]:
    """The part in which each labelled document is hidden, -1 for those that never are.

    Each document goes with its rarest topic, and a topic's documents are dealt out in turn, so that every topic keeps
    some labels; of a topic with a single document nothing is hidden.
    """
    counts = np.asarray(truth.sum(axis=0)).ravel()
    part = np.full(truth.shape[0], -1, dtype=np.int64)
    rng = np.random.default_rng(seed)
    rarest = rarest_topics(truth)
    for k in np.unique(rarest[rarest >= 0]):
        own = rng.permutation(np.flatnonzero(rarest == k))
        if counts[k] > 1:
            part[own] = np.arange(len(own)) % max(2, min(folds, len(own)))
    return part


def rarest_topics(truth: sp.csr_array) -> NDArray[np.int64]:
    """The rarest topic of each document, -1 where there is none."""
    counts = np.asarray(truth.sum(axis=0)).ravel()
    rarest = np.full(truth.shape[0], -1, dtype=np.int64)
    for i in np.flatnonzero(np.diff(truth.indptr)):
        rarest[i] = min(truth.indices[truth.indptr[i] : truth.indptr[i + 1]], key=lambda k: counts[k])
    return rarest
