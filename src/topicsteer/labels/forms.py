"""Convert labels in any form to a :class:`Supervision`, with all checks of labels."""

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.labels.codebook import Lineage, check_topic_name
from topicsteer.labels.spelling import near_miss
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.arrays import checked_csr
from topicsteer.system.failures import warn_user
from topicsteer.system.values import NONE, check_none, is_missing, label_name, listed, plain

# Types that hold several labels of one document.
_SEVERAL = (list, tuple, set, frozenset, np.ndarray)
# Advice in messages about labels of a wrong form.
_FORMS = (
    "Pass one label per document (None, NaN or -1 = unlabelled); one list of labels per document ([] = unlabelled); "
    "a dict {row: labels}; or an indicator matrix (1 permitted, 0 forbidden, NaN unknown). "
    f"The label {NONE!r} marks a document that has none of the topics."
)
# Topics below which there is nothing, by the number of a pattern.
Ended = dict[int, frozenset[Hashable]]
# The parents of topics in a flat list.
NO_PARENTS = Lineage()
# An indicator gets a warning if at least this many rows, and more than half of them, are all 0.
MANY_OUTSIDERS = 20
# Unknown labels in an error message.
UNKNOWN_SHOWN = 10


def supervise(
    y: Any,
    n_documents: int,
    *,
    topics: Sequence[Hashable] | None = None,
    complete: bool = True,
    lineage: Lineage = NO_PARENTS,
) -> Supervision:
    """Read labels in any accepted form.

    Parameters
    ----------
    y : None, array-like, list of lists, dict, indicator matrix, or Supervision
        One label per document (None, NaN or -1 = unlabelled); one list of labels per document ([] = unlabelled);
        ``{row: label or labels}``; or an indicator matrix (n_documents, n_topics), dense, sparse or DataFrame, with
        1 permitted, 0 forbidden, NaN unknown. The label "(none)", or a row of zeros, marks a document that has none of
        the topics: all of them are forbidden, also if labels are not complete.
    n_documents : int
        Number of documents.
    topics : sequence, optional
        Names and order of the known topics, also of topics without a label. Default: the names found in ``y``,
        sorted; for an indicator its columns. The columns of a DataFrame are found by name.
    complete : bool, default=True
        Whether the labels of a labelled document are all its known topics. False: it may have others.
        A dense indicator marks this itself with 0 and NaN. In a sparse one, entries that are not stored mean 0 if
        complete, else unknown.
    lineage : Lineage, optional
        The parents of topics. A label then permits the topics above it, and leaves the topics below it unknown. Topics
        above others are added.

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
    >>> supervise({2: "tea", 3: "(none)"}, 4, complete=False).outsiders
    array([False, False, False,  True])
    >>> tree = supervise(["sport/tennis", "sport"], 2, lineage=Lineage(separator="/"))
    >>> tree.topics, tree.patterns[tree.pattern].tolist()
    (('sport', 'sport/tennis'), [[1, 1], [1, -1]])
    """
    if isinstance(y, Supervision):
        _check_length(len(y.pattern), n_documents)
        return y
    if topics is not None:
        topics = _check_topics(_path_topics(topics, lineage))
    ended: Ended = {}
    found = _read_labels(y, n_documents, topics, complete, lineage, ended)
    # A dense indicator forbids topics one by one.
    dense = (getattr(y, "ndim", 1) == 2 or hasattr(y, "columns")) and not sp.issparse(y)
    return _planted(found, topics, complete, lineage, ended, explicit=dense) if lineage else found


def _path_topics(names: Iterable[Hashable], lineage: Lineage) -> list[Hashable]:
    """The topics of names; other spellings of a path, and "sport/(none)", do not name a topic again."""
    pairs = [(name, lineage.topic(name)) for name in names]
    found: list[Hashable] = []
    literal = {topic for name, topic in pairs if topic == name}
    for name, topic in pairs:
        if topic == name or topic not in (*literal, *found):
            found.append(topic)
    return found


def _planted(
    found: Supervision,
    topics: Sequence[Hashable] | None,
    complete: bool,
    lineage: Lineage,
    ended: Ended,
    *,
    explicit: bool,
) -> Supervision:
    """The labels with the tree of their topics; without given topics, parents and children in order."""
    names = joined(found.topics, lineage.with_ancestors(found.topics))
    if topics is None:
        more = _sorted({name: None for pair in lineage.parents.items() for name in pair})
        names = lineage.with_ancestors(joined(names, more))
        names = [names[k] for k in lineage.forest(names).order]
    forest = lineage.forest(names)
    nothing = (found.patterns == FORBIDDEN).all(axis=1) & (np.arange(len(found.patterns)) > 0)
    found = found.among(names, complete)
    if forest.flat:
        return found
    patterns = found.patterns.copy()
    patterns[nothing] = FORBIDDEN
    patterns = forest.closed(patterns, explicit=explicit)
    for p, parents in ended.items():
        for parent in parents:
            patterns[p, list(forest.descendants(names.index(parent)))] = FORBIDDEN
    return replace(found, patterns=patterns, forest=forest)


def _read_labels(
    y: Any, n_documents: int, topics: Sequence[Hashable] | None, complete: bool, lineage: Lineage, ended: Ended
) -> Supervision:
    """Labels as they are written, without regard to a tree."""
    if y is None or isinstance(y, Mapping):
        return _from_lists(_dict_rows(y or {}, n_documents), n_documents, topics, complete, lineage, ended)
    import narwhals.stable.v2 as nw

    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        y, columns = frame.to_numpy(), _check_topics(map(lineage.topic, frame.columns))
        topics = topics or columns
        y = y[:, _places(topics, columns)]
    if not hasattr(y, "__len__") and hasattr(y, "__array__"):
        y = np.asarray(y)
    if sp.issparse(y):
        y = checked_csr(y, "y")
    if sp.issparse(y) or (isinstance(y, np.ndarray) and y.ndim == 2):
        return _from_indicator(y, n_documents, topics, complete)
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise ValueError(f"y is {y!r}: these are not labels. {_FORMS}")
    _check_length(len(y), n_documents)
    if hasattr(y, "tolist"):
        y = y.tolist()
    elif hasattr(y, "to_list"):
        y = y.to_list()
    return _from_lists(enumerate(y), n_documents, topics, complete, lineage, ended)


def extend(
    known: Sequence[Hashable],
    y: Any,
    n_documents: int,
    *,
    topics: Sequence[Hashable] | None = None,
    complete: bool = True,
    lineage: Lineage = NO_PARENTS,
) -> Supervision:
    """Read labels of further documents; new topics come after the known ones.

    Examples
    --------
    >>> extend(["tea", "coffee"], [["milk"], ["tea"]], 2).topics
    ('tea', 'coffee', 'milk')
    """
    nameless = getattr(y, "ndim", 1) == 2 and not hasattr(y, "columns")
    names = known if topics is None and nameless else topics
    found = supervise(y, n_documents, topics=names, complete=complete, lineage=lineage)
    known_form = {str(name): name for name in known}
    found = replace(found, topics=tuple(known_form.get(str(name), name) for name in found.topics))
    every = joined(known, found.topics)
    given = found.among(every, complete, lineage.forest(every))
    indicator = getattr(y, "ndim", 1) == 2 or hasattr(y, "columns") or isinstance(y, Supervision)
    if indicator or not found.outsiders.any():
        return given  # a row of zeros is about the columns of its own matrix
    patterns = given.patterns.copy()
    patterns[found.pattern[found.outsiders]] = FORBIDDEN
    return replace(given, patterns=patterns)


def joined(known: Sequence[Hashable], names: Iterable[Hashable]) -> list[Hashable]:
    """The known names, followed by the new ones. Names are compared as text: "3" is the known topic 3.

    Examples
    --------
    >>> joined([3, "tea"], ["3", "milk"])
    [3, 'tea', 'milk']
    """
    texts = set(map(str, known))
    return [*known, *(name for name in names if str(name) not in texts)]


def label_counts(y: Any) -> Counter[str]:
    """Count the spellings of labels; the columns of an indicator are no spellings.

    Examples
    --------
    >>> label_counts([["US"], [], ["us", "tea"], ["US"]])
    Counter({'US': 2, 'us': 1, 'tea': 1})
    """
    listed = getattr(y, "ndim", 1) == 1 and hasattr(y, "__iter__") and not hasattr(y, "columns")
    if not listed or isinstance(y, str | bytes):
        return Counter()
    rows = y.values() if isinstance(y, Mapping) else y
    names = (name for value in rows for name in (value if isinstance(value, _SEVERAL) else (value,)))
    return Counter(name for name in names if isinstance(name, str))


def refuse_new_topics(known: Sequence[Hashable], given: Supervision, ids: Sequence[Hashable]) -> None:
    """Raise an error if labels of documents name topics beyond the known ones, which come first in ``given``."""
    new = range(len(known), len(given.topics))
    if not new:
        return
    found = []
    for k in new[:UNKNOWN_SHOWN]:
        rows, near = np.flatnonzero(given.patterns[given.pattern, k] == PERMITTED), near_miss(given.topics[k], known)
        hints = [f"document {ids[int(rows[0])]}"] if rows.size else []  # a topic may occur as forbidden only
        hints += [f"did you mean {near!r}?"] if near else []
        found.append(f"{str(given.topics[k])!r}" + (f" ({'; '.join(hints)})" if hints else ""))
    rest = f" and {len(new) - len(found):,} more" if len(new) > len(found) else ""
    raise ValueError(
        f"{len(new):,} label{'s are' if len(new) > 1 else ' is'} not a known topic: {', '.join(found)}{rest}. Nothing "
        "was changed: correct the labels, or permit new topics (--new-topics, or new_topics=True in Python)."
    )


def forbid(
    supervision: Supervision, forbidden: Sequence[Iterable[Hashable]], lineage: Lineage = NO_PARENTS
) -> Supervision:
    """Add forbidden topics: one list per document, often empty. Topics below a forbidden one are forbidden too.

    Examples
    --------
    >>> supervision = forbid(supervise(["tea", None, "milk"], 3), [[], ["tea"], []])
    >>> supervision.patterns[supervision.pattern]
    array([[ 0,  1],
           [-1,  0],
           [ 1,  0]], dtype=int8)
    """
    _check_length(len(forbidden), len(supervision.pattern))
    column = {str(name): k for k, name in enumerate(supervision.topics)}
    forest = supervision.forest

    def states() -> Iterator[NDArray[np.int8]]:
        for row, (p, names) in enumerate(zip(supervision.pattern, forbidden, strict=True)):
            state = supervision.patterns[p].copy()
            for name in map(lineage.topic, names or ()):
                if name == NONE:
                    raise ValueError(f"row {row} forbids {NONE!r}, which is not a topic: name the topics it lacks.")
                if str(name) not in column:
                    raise ValueError(_unknown_label(name, row, supervision.topics))
                k = column[str(name)]
                state[[k, *forest.descendants(k)]] = FORBIDDEN
            yield state

    if not any(forbidden):
        return supervision
    return replace(_from_states(states(), len(supervision.pattern), supervision.topics), forest=forest)


def _from_lists(
    rows: Iterable[tuple[int, object]],
    n_documents: int,
    topics: Sequence[Hashable] | None,
    complete: bool,
    lineage: Lineage,
    ended: Ended,
) -> Supervision:
    """Convert pairs of a row and its label or labels."""
    # Labels, and the topics among them below which there is nothing; both together have a pattern.
    label_sets: dict[tuple[frozenset[Hashable], frozenset[Hashable]], int] = {(frozenset(), frozenset()): 0}
    # Labels read so far, in their original form. Most documents repeat one.
    seen: dict[object, int] = {None: 0, (): 0}
    first_row: dict[Hashable, int] = {}
    pattern = np.zeros(n_documents, dtype=np.int32)
    for row, value in rows:
        value = value.tolist() if isinstance(value, np.ndarray) else value  # None for masked entries
        written = tuple(value) if isinstance(value, _SEVERAL) else value
        try:
            pattern[row] = seen[written]
        except (KeyError, TypeError):
            each = written if isinstance(written, tuple) else (written,)
            names = [_name(one, row) for one in each if not is_missing(one, cell=False)]
            try:
                labels = frozenset(map(lineage.topic, names))
                rests = frozenset(lineage.topic(name) for name in names if lineage.ends_here(name))
                check_none(labels)
            except ValueError as error:
                raise ValueError(f"row {row} has {error}.") from None
            for name in labels - {NONE}:
                first_row.setdefault(name, row)
            if labels:
                p = pattern[row] = seen[written] = label_sets.setdefault((labels, rests), len(label_sets))
                ended[p] = rests
    if topics is None:
        topics = _check_topics(_sorted(first_row))
    elif lineage:
        topics = joined(topics, lineage.with_ancestors(topics))
    column = {str(name): k for k, name in enumerate(topics)}
    for name, row in first_row.items():
        if str(name) not in column:
            raise ValueError(_unknown_label(name, row, topics))
    patterns = np.full((len(label_sets), len(topics)), FORBIDDEN if complete else UNKNOWN, dtype=np.int8)
    patterns[0] = UNKNOWN
    for (labels, _), p in label_sets.items():
        if NONE in labels:
            patterns[p] = FORBIDDEN
        else:
            patterns[p, [column[str(name)] for name in labels]] = PERMITTED
    return Supervision(tuple(topics), pattern, patterns)


def _from_indicator(
    y: NDArray[np.generic] | sp.csr_array, n_documents: int, topics: Sequence[Hashable] | None, complete: bool
) -> Supervision:
    """Convert a matrix of 1, 0 and NaN; entries that a sparse one does not store are 0 if complete, else NaN."""
    n_topics = y.shape[1]
    _check_length(y.shape[0], n_documents)
    if topics is not None and len(topics) != n_topics:
        raise ValueError(
            f"y is an indicator matrix with {n_topics} columns, but {len(topics)} topics are named: "
            "it needs one column per topic, in the same order."
        )
    dense = isinstance(y, np.ndarray)
    states = _indicator_states(y) if dense else _sparse_states(y, FORBIDDEN if complete else UNKNOWN)
    supervision = _from_states(states, n_documents, range(n_topics) if topics is None else topics)
    _warn_of_outsiders(supervision)
    return supervision


def _places(topics: Sequence[Hashable], columns: Sequence[Hashable]) -> list[int]:
    """Return the column of each topic in an indicator DataFrame."""
    place = {str(name): k for k, name in enumerate(columns)}
    missing, unknown = [name for name in topics if str(name) not in place], place.keys() - set(map(str, topics))
    if unknown or missing:
        raise ValueError(
            f"y is an indicator DataFrame, whose columns are found by name. Topics without a column: "
            f"{listed(missing) or 'none'}. Columns without a topic: {listed(sorted(unknown)) or 'none'}."
        )
    return [place[str(name)] for name in topics]


def _warn_of_outsiders(supervision: Supervision) -> None:
    """Warn if most rows of an indicator are zeros and none has a NaN: they may be meant as unlabelled."""
    n, outsiders = len(supervision.pattern), int(supervision.outsiders.sum())
    knows_nan = not supervision.labelled.all() or (supervision.patterns[1:] == UNKNOWN).any()
    if supervision.topics and outsiders >= MANY_OUTSIDERS and 2 * outsiders > n and not knows_nan:
        warn_user(
            f"{outsiders:,} of the {n:,} rows of the indicator matrix are all 0, which means that these documents have "
            "none of the topics. If they are unlabelled, fill their rows with NaN, or pass one list of labels per "
            "document ([] = unlabelled)."
        )


def _sparse_states(y: sp.csr_array, elsewhere: int) -> Iterator[NDArray[np.int8]]:
    """Rows of a sparse indicator; entries that are not stored get the state ``elsewhere``."""
    stored = _indicator_states(y.data)
    for start, stop in itertools.pairwise(y.indptr):
        state = np.full(y.shape[1], elsewhere, dtype=np.int8)
        state[y.indices[start:stop]] = stored[start:stop]
        yield state


def _from_states(states: Iterable[NDArray[np.int8]], n_documents: int, topics: Sequence[Hashable]) -> Supervision:
    """Convert one row of states per document to shared patterns."""
    seen = {np.full(len(topics), UNKNOWN, dtype=np.int8).tobytes(): 0}
    pattern = np.empty(n_documents, dtype=np.int32)
    for i, state in enumerate(states):
        pattern[i] = seen.setdefault(state.tobytes(), len(seen))
    patterns = np.frombuffer(b"".join(seen), dtype=np.int8).reshape(len(seen), len(topics))
    return Supervision(tuple(topics), pattern, patterns)


def _dict_rows(y: Mapping[object, object], n_documents: int) -> Iterator[tuple[int, object]]:
    """Check the row numbers of {row: labels}."""
    for row, labels in y.items():
        if not isinstance(row, int | np.integer) or not 0 <= row < n_documents:
            raise ValueError(
                f"y has labels for row {row!r}, but the rows are the numbers 0 to {n_documents - 1}: "
                "the keys of a dict of labels are positions of documents in X."
            )
        yield int(row), labels


def _check_topics(names: Iterable[Hashable]) -> list[Hashable]:
    """The names of topics as plain values, each once; names are compared as text."""
    topics = [plain(name) for name in names]
    seen: dict[str, object] = {}
    for name in topics:
        check_topic_name(name)
        if str(name) in seen:
            other = seen[str(name)]
            both = f"{name!r} twice" if other == name else f"{other!r} and {name!r}, which read the same"
            raise ValueError(f"topics names {both}: each known topic needs its own name.")
        seen[str(name)] = name
    return topics


def _sorted(names: Iterable[Hashable]) -> list[Hashable]:
    """Names in order, numbers first."""
    return sorted(names, key=lambda name: (isinstance(name, str), name))


def _check_length(length: int, n_documents: int) -> None:
    if length != n_documents:
        raise ValueError(f"y has labels for {length} documents, but X has {n_documents}. {_FORMS}")


def _indicator_states(entries: NDArray[np.generic]) -> NDArray[np.int8]:
    """Convert the entries of an indicator to states."""
    missing = np.ma.getmaskarray(entries)
    if entries.dtype == object:  # nullable columns of a DataFrame
        missing = missing | np.vectorize(is_missing, otypes=[np.bool_])(np.ma.getdata(entries))
    try:
        values = np.where(missing, np.nan, np.ma.getdata(entries)).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y is a matrix with values other than numbers ({error}). {_FORMS}") from None
    wrong = ~(np.isnan(values) | (values == 0) | (values == 1))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"row {where[0]}, column {where[1]}" if values.ndim == 2 else "a stored entry"
        raise ValueError(f"y is an indicator matrix with {values[wrong][0]:g} at {place}. {_FORMS}")
    return np.where(np.isnan(values), UNKNOWN, values).astype(np.int8)


def _unknown_label(name: Hashable, row: int, topics: Sequence[Hashable]) -> str:
    near = near_miss(name, topics)
    guess = f" Did you mean {near!r}?" if near else ""
    known = ", ".join(str(topic) for topic in topics[:8]) + (", ..." if len(topics) > 8 else "")
    return f"row {row} has the label {name!r}, which is not one of the {len(topics)} topics ({known}).{guess}"


def _name(value: object, row: int) -> Hashable:
    try:
        return label_name(value, cell=False)
    except ValueError:
        wrong = f"{plain(value)!r} ({type(plain(value)).__name__})"
        raise ValueError(f"row {row} has the label {wrong}: labels are strings or integers.") from None
