"""The fitted state: all arrays and plain values of a model in one frozen record with a schema, and its folder.

Writers hold the lock of the folder. A new version has files of its own and appears by one rename, that of
``model.json``. Readers need no lock: if a new version removes files that they are about to read, they read that one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.topics import Topics
from topicsteer.guidance.apply import Memberships
from topicsteer.guidance.features import block_sizes
from topicsteer.labels.codebook import Codebook, TopicRecord
from topicsteer.labels.forest import cycle
from topicsteer.labels.supervision import Kind, Origin, Supervision
from topicsteer.system import arrays as storage
from topicsteer.system.files import locked
from topicsteer.system.types import JSON, Array
from topicsteer.system.values import plain_id
from topicsteer.text.words import is_weak

if TYPE_CHECKING:
    from topicsteer.corpora import Documents


# Values of a setting.
Scalar: TypeAlias = str | int | float | bool | None
# Words of each topic.
Words: TypeAlias = dict[str, list[str] | str] | None


class VectorizerOptions(msgspec.Struct, forbid_unknown_fields=True):
    """Options of a vectoriser."""

    max_features: int | str | None = None
    min_df: int | float | str = 1
    max_df: int | float | str = 1
    stop_words: list[str] | str | None = None
    sublinear_tf: bool | str = True
    min_length: int | str = 1
    segmented: bool = False
    threads: int | None = None
    weak_stop_words: bool = False


class FittedVectorizer(msgspec.Struct):
    """A fitted vectoriser, without its terms."""

    parameters: VectorizerOptions
    languages: list[str]
    stop_words: list[str]
    n_texts: int | float = 0


class GivenTopics(msgspec.Struct, forbid_unknown_fields=True):
    """Topics that were given as a codebook."""

    codebook: list[TopicRecord]


class Parameters(msgspec.Struct):
    """Arguments of a `TopicModel`."""

    complete: bool
    random_state: int
    free_topics: int | str | None = None
    world: str | None = None
    topics: list[str | int | float | bool] | GivenTopics | None = None
    parents: dict[str, str] | None = None
    path_separator: str | None = None
    embeddings: Literal["words"] | None = None
    keywords: Words = None
    banned: Words = None
    descriptions: dict[str, str] | None = None
    vectorizer: VectorizerOptions | None = None
    threads: int | None = None


class Encoder(msgspec.Struct, forbid_unknown_fields=True):
    """The origin of embeddings."""

    source: str = ""
    digest: str = ""
    column: str = ""


class Reading(msgspec.Struct, forbid_unknown_fields=True):
    """Columns of the training documents; see `topicsteer.corpora.ReadOptions`."""

    text: list[str] | str = ""
    labels: list[str] | str | bool = ""
    id: str | bool = ""
    forbidden: str | bool = ""
    separator: str = ""
    encoding: str = ""
    delimiter: str = ""
    sheet: str = ""


class Ended(msgspec.Struct):
    """The end of a factorisation."""

    n_iter: int
    ended: str
    error: int | float = 0


class PlainState(msgspec.Struct):
    """All plain values of a state."""

    parameters: Parameters
    codebook: list[TopicRecord]
    free_names: list[str]
    groups: list[list[int]]
    free_groups: list[list[int]]
    vectorizer: FittedVectorizer
    vocabulary: list[str]
    lemmatized: bool
    estimator: dict[str, Scalar]
    fingerprint: str
    ids: list[str | int | bool]
    texts: list[str] | None
    learnt_from: int
    seconds: dict[str, int | float]
    frames: str
    encoder: Encoder
    reading: Reading
    missed: list[int] = []


def check_plain(plain: dict[str, Any]) -> None:
    """Raise ValueError, with the path of the value, if a plain value has another type.

    Examples
    --------
    >>> check_plain({"parameters": {"complete": True, "random_state": "x"}})
    Traceback (most recent call last):
    msgspec.ValidationError: Expected `int`, got `str` - at `$.parameters.random_state`
    """
    msgspec.convert(plain, PlainState)
    msgspec.convert(plain["estimator"], Ended)


Arrays = Mapping[str, NDArray[Any]]


class StateError(ValueError):
    """An invalid state; the message names the array and the problem."""


@dataclass(frozen=True)
class Field:
    """Requirements on one array of a state.

    Parameters
    ----------
    name : str
        Name of the array. Arrays with one prefix of :data:`GROUPS` are present together or not at all.
    kinds : str
        Permitted kinds of dtype in numpy's notation: "f" for real numbers, "i" and "u" for integers.
    shape : tuple of str or int
        Named dimensions, each with one size throughout the state, or fixed sizes.
    low, high : float or str, optional
        Range of the values; a name stands for the last index of that dimension.
    nan : bool
        Whether NaN is permitted, for unknown values.
    about : str
        Description.
    """

    name: str
    kinds: str
    shape: tuple[str | int, ...]
    low: float = -np.inf
    high: float | str = np.inf
    nan: bool = False
    about: str = ""


SCHEMA = (
    Field("outside_counts", "i", (2,), 0, about="known topics and groups of an open world"),
    Field("components", "f", ("topics", "terms"), 0, about="H, the terms of each topic"),
    Field("document_topics", "f", ("documents", "topics"), 0, about="W, 0 where a label forbids the topic"),
    Field("idf", "f", ("terms",), 1e-6, 1e6, about="weights of the terms"),
    Field("profiles", "f", ("known", "terms"), 0, about="mean terms of the documents labelled with each topic"),
    Field("pattern", "i", ("documents",), 0, "patterns", about="row of `patterns` for each document"),
    Field("patterns", "i", ("patterns", "known"), -1, 1, about="1 permitted, 0 forbidden, -1 unknown"),
    Field("objectives", "f", ("iterations",), about="objective after each iteration"),
    Field(
        "memberships",
        "f",
        ("documents", "columns"),
        0,
        1,
        about="probabilities, 1 or 0 where a label decides; in an open world free topics and none follow",
    ),
    Field("thresholds", "f", ("known",), 0, 1, about="membership threshold of each topic"),
    Field("digests", "u", ("documents",), about="hash of each document's id and text"),
    Field("guide_directions", "f", ("terms", "directions"), about="directions of the latent semantics"),
    Field("guide_vectors", "f", ("terms", "size"), about="word vectors over term weights"),
    Field("guide_rotation", "f", ("embedding", "meaning"), about="principal components of vectors"),
    Field("guide_centre", "f", ("meaning",), about="mean vector of the documents"),
    Field("guide_softmax", "f", ("inputs", "classes"), about="softmax regression"),
    Field("guide_dense", "f", ("dimensions", "classes"), about="ridge regression and centroids"),
    Field("guide_ratios", "f", ("terms", "classes"), about="log ratios of terms"),
    Field("guide_offset", "f", ("classes",)),
    Field("guide_mix", "f", (3,), about="weight of the softmax regression, coupling, intercept"),
    Field("guide_settings", "f", (4,), 0, about="share of meaning, ridge, sharpness, labels"),
    Field("guide_covered", "i", ("covered",), 0, "parents", about="topics with labels or a useful name"),
    Field("guide_parents", "i", ("parents",), -1, "parents", about="parent of each topic in the guide"),
    Field("guide_rows", "i", ("learnt",), 0, "documents", about="labelled documents of the training"),
    Field("guide_left_out", "f", ("learnt", "covered"), 0, 1, nan=True, about="probabilities without their labels"),
    Field("guide_seen", "f", ("positions", "positions")),
    Field("outside_softmax", "f", ("inputs", "every"), about="the same for known topics and groups"),
    Field("outside_dense", "f", ("dimensions", "every")),
    Field("outside_ratios", "f", ("terms", "every")),
    Field("outside_offset", "f", ("every",)),
    Field("outside_mix", "f", (3,)),
    Field("outside_none", "f", (2,), about="slope and intercept of the log odds of P(none)"),
    Field("reservoir_rows", "i", ("retained",), 0, "documents", about="retained documents"),
    Field("reservoir_keys", "f", ("retained",), 0, about="random sort keys"),
    Field("reservoir_data", "f", ("entries",), 0, about="their terms, as CSR arrays"),
    Field("reservoir_indices", "i", ("entries",), 0, "terms"),
    Field("reservoir_indptr", "i", ("limits",), 0),
    Field("reservoir_embeddings", "f", ("retained", "embedding")),
    Field("origin_kind", "i", ("documents",), 0, 3, about="choice of each labelled document: see `labels.supervision`"),
    Field("origin_draw", "i", ("documents",), 0),
    Field("origin_probability", "f", ("documents",), 0, 1, nan=True),
    Field("history_cross", "f", ("terms", "topics"), about="sufficient statistics of all other documents"),
    Field("history_gram", "f", ("topics", "topics")),
    Field("history_penalty", "f", ("topics",)),
    Field("history_totals", "f", (4,)),
    Field("history_scale", "f", ("topics",)),
)
# Prefixes of arrays that are present together or not at all.
GROUPS = ("guide", "outside", "reservoir", "history", "origin")
# Arrays of an open world with groups are present together or not at all.
WITH_GROUPS = {f.name for f in SCHEMA if f.name.startswith("outside_")} - {"outside_counts"}
# Arrays that may be missing from a group that is present.
OPTIONAL = {"reservoir_embeddings"} | WITH_GROUPS


def check(arrays: Arrays, sizes: Mapping[str, int]) -> None:
    """Check arrays against :data:`SCHEMA`, before any kernel reads them.

    Parameters
    ----------
    arrays : mapping of str to array
    sizes : mapping of str to int
        Dimensions with a known size.

    Raises
    ------
    StateError
    """
    known = {f.name: f for f in SCHEMA}
    if unknown := sorted(set(arrays) - set(known)):
        raise StateError(f"the array {unknown[0]!r} is not part of a model")
    counts = arrays.get("outside_counts")
    if counts is not None and counts.shape == (2,) and counts.dtype.kind == "i" and counts.min() >= 0:
        n_known, n_groups = counts.tolist()
        if n_known > sizes["guided"]:  # each known topic of the guide belongs to a topic of the model
            raise StateError(f"the array 'outside_counts' has {n_known:,} topics; expected up to {sizes['guided']:,}")
        sizes = dict(sizes) | {"base": n_known, "groups": n_groups, "guided": n_known + n_groups}
    present = {group for group in GROUPS if any(name.startswith(f"{group}_") for name in arrays)}
    size = dict(sizes)
    for f in SCHEMA:
        group = f.name.partition("_")[0]
        if f.name not in arrays:
            if f.name not in OPTIONAL and (group not in GROUPS or group in present):
                raise StateError(f"the array {f.name!r} is missing")
            continue
        array = arrays[f.name]
        if array.dtype.kind not in f.kinds or array.ndim != len(f.shape) or not _usual(array.dtype):
            raise StateError(f"the array {f.name!r} has dtype {array.dtype} and {array.ndim} dimensions")
        for dimension, found in zip(f.shape, array.shape, strict=True):
            wanted = dimension if isinstance(dimension, int) else size.setdefault(dimension, found)
            if found != wanted:
                raise StateError(f"the array {f.name!r} has {found:,} {dimension}; expected {wanted:,}")
    for f in SCHEMA:
        if f.name in arrays:
            _check_range(f, arrays[f.name], size)
    if (missing := sorted(WITH_GROUPS - set(arrays))) and len(missing) < len(WITH_GROUPS):
        raise StateError(f"the array {missing[0]!r} is missing")
    if "guide" in present:
        _check_guide(arrays, size)
    if "outside" in present:
        if "guide" not in present or size["parents"] != counts_known(arrays):
            raise StateError("the arrays of an open world do not fit the guide")
        if "outside_none" in arrays and size["every"] != size["covered"] + int(arrays["outside_counts"][1]):
            raise StateError("the arrays of an open world do not fit each other")
    if "reservoir" in present:
        rows, indptr = arrays["reservoir_rows"], arrays["reservoir_indptr"]
        whole = len(indptr) == len(rows) + 1 and indptr[0] == 0 and indptr[-1] == len(arrays["reservoir_data"])
        if not whole or (np.diff(indptr) < 0).any() or (np.diff(rows) <= 0).any():
            raise StateError("the arrays of the retained documents do not fit each other")


def counts_known(arrays: Arrays) -> int:
    """Number of known topics of an open world."""
    return int(arrays["outside_counts"][0])


def _check_guide(arrays: Arrays, size: Mapping[str, int]) -> None:
    """Check that the arrays of a guide have the dimensions of its features."""
    latent = sum(block_sizes(size["directions"]))
    fits = size["dimensions"] == latent + size["meaning"] and size["inputs"] == size["dimensions"] + 1
    fits &= size["size"] in (0, size["meaning"]) and size["covered"] <= size["classes"] <= size["covered"] + 1
    fits &= size["positions"] in (latent, size["dimensions"]) and arrays["guide_settings"][0] <= 1
    if not fits:
        raise StateError("the arrays of the guide do not fit each other")
    if cycle(arrays["guide_parents"].tolist()):
        raise StateError("the array 'guide_parents' is not a tree")


def _usual(dtype: np.dtype[Any]) -> bool:
    """Whether the kernels read a dtype: numbers of this machine's byte order, real ones of 4 or 8 bytes."""
    return dtype.isnative and (dtype.kind != "f" or dtype.itemsize in (4, 8))


def _check_range(f: Field, array: NDArray[Any], size: Mapping[str, int]) -> None:
    if not array.size:
        return
    if f.nan:
        array = array[~np.isnan(array)]
    low, high = (array.min(), array.max()) if array.size else (f.low, f.low)
    most = size[f.high] - 1 if isinstance(f.high, str) else f.high
    if not (low >= f.low and high <= most) or (
        array.dtype.kind == "f" and not (np.isfinite(low) and np.isfinite(high))
    ):
        raise StateError(f"the array {f.name!r} has values from {low} to {high}; expected {f.low:g} to {most:g}")


@dataclass(frozen=True, eq=False, repr=False)
class FittedState:
    """A fitted model.

    Parameters
    ----------
    parameters : mapping
        The arguments of the `TopicModel`, as plain values; see `topicsteer.model.predictor`.
    codebook : Codebook
        The known topics.
    free_names : tuple of str
        Names of the free topics, which come after the known ones.
    groups : tuple of tuples of int
        Classes of the guide that make up each known topic: several after a merge.
    free_groups : tuple of tuples of int
        The same for free topics; empty if the guide does not know them.
    vectorizer, vocabulary, lemmatized
        Options and terms of the vectoriser, and whether the fit used a lemmatizer, which is not stored.
    estimator : mapping
        Parameters of the factorisation, number of iterations and reason for the end.
    fingerprint : str
        Hash of all documents.
    ids, texts
        Ids and texts of the documents; texts may be None.
    learnt_from : int
        Number of retained documents when the latent semantics were computed.
    seconds : mapping of str to float
        Seconds of each stage of the fit.
    frames : str
        Kind of tables that the fit got: "pandas" or "polars".
    reading : mapping
        Columns of the training documents, from `ReadOptions.to_json`.
    encoder : mapping
        Where the embeddings of the fit came from; see `topicsteer.model.predictor`.
    missed : sequence of int
        Keys of topics whose names the fit did not find.
    components ... digests : arrays
        See :data:`SCHEMA`.
    guide, outside, reservoir, history, origin : mapping of arrays or None
        Arrays of the guide, an open world and the retained documents. Then the statistics of all
        other documents, and the origin of labels.
    """

    parameters: Mapping[str, JSON]
    codebook: Codebook
    free_names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    free_groups: tuple[tuple[int, ...], ...]
    vectorizer: Mapping[str, JSON]
    vocabulary: Sequence[str]
    lemmatized: bool
    estimator: Mapping[str, JSON]
    fingerprint: str
    ids: Sequence[Hashable]
    texts: Sequence[str] | None
    learnt_from: int
    components: Array
    document_topics: Array
    idf: NDArray[np.float64]
    profiles: Array
    pattern: NDArray[np.int32]
    patterns: NDArray[np.int8]
    objectives: Array
    memberships: Array
    thresholds: Array
    digests: NDArray[np.uint64]
    guide: Arrays | None = field(default=None)
    outside: Arrays | None = field(default=None)
    reservoir: Arrays | None = field(default=None)
    history: Arrays | None = field(default=None)
    origin: Arrays | None = field(default=None)
    seconds: Mapping[str, float] = field(default_factory=dict)
    frames: str = "polars"
    reading: Mapping[str, JSON] = field(default_factory=dict)
    encoder: Mapping[str, JSON] = field(default_factory=dict)
    missed: Sequence[int] = field(default_factory=list)

    @cached_property
    def supervision(self) -> Supervision:
        """The labels."""
        return Supervision(self.codebook.names, self.pattern, self.patterns, self.codebook.forest)

    @property
    def label_origin(self) -> Origin:
        """How the labelled documents were chosen; a corpus whose documents are all labelled needs no draw."""
        if self.origin is not None:
            return Origin(**self.origin)
        return (
            Origin.random(len(self.pattern)) if self.supervision.labelled.all() else Origin.unknown(len(self.pattern))
        )

    @property
    def drawn(self) -> bool:
        """Whether some labels are known to be drawn at random, so that shares have intervals."""
        return bool((self.supervision.labelled & (self.label_origin.kind == Kind.RANDOM)).any())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all topics as text, known ones first."""
        return (*map(str, self.codebook.names), *self.free_names)

    @cached_property
    def topics(self) -> Topics:
        """Names, terms, documents and shares of the topics; weak stop words are no terms of a topic."""
        weak = is_weak(self.idf)
        return Topics(
            self.names,
            len(self.codebook),
            np.array(self.vocabulary, dtype=object),
            np.where(weak, 0, self.components) if weak.any() else self.components,
            self.document_topics,
            self.ids,
            self.supervision.counts,
            self.memberships,
            self.supervision.outsiders,
            self.codebook.forest,
            tuple(k for k, key in enumerate(self.codebook.keys) if key in self.missed),
        )

    @property
    def known_memberships(self) -> Array:
        """Memberships of the documents in the known topics; a label makes them 1 or 0."""
        return self.memberships[:, : len(self.codebook)]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the fit, or the last update, before its time."""
        return self.estimator.get("ended") == "interrupted"

    def accepts(self, documents: Documents) -> bool:
        """Whether these are the documents of the model."""
        return fingerprint(digests(documents)) == self.fingerprint

    @property
    def open(self) -> bool:
        """Whether documents may have none of the known topics; memberships have free topics and none then."""
        return self.topics.open

    def judge(self, memberships: Array) -> Memberships:
        """Decide on the topics of documents from their memberships, by the thresholds and the tree of this model."""
        return Memberships(memberships, np.asarray(self.thresholds), self.open, self.codebook.forest)

    @property
    def judged(self) -> Memberships:
        """Memberships of the training documents in all topics, which decide on the topics of each."""
        return self.judge(self.topics.all_memberships())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by their names in :data:`SCHEMA`."""
        single = {f.name: getattr(self, f.name) for f in SCHEMA if f.name.partition("_")[0] not in GROUPS}
        for group in GROUPS:
            single |= {f"{group}_{name}": array for name, array in (getattr(self, group) or {}).items()}
        return single

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], arrays: Arrays) -> FittedState:
        """A checked state from JSON values, with the types of `PlainState`, and from arrays.

        Raises
        ------
        StateError
            If a value has another form, or as in :meth:`build`.
        """
        try:
            check_plain(dict(plain))
            ready = dict(plain) | {
                "codebook": Codebook.from_json(plain["codebook"]),
                "free_names": tuple(plain["free_names"]),
                **{name: tuple(map(tuple, plain[name])) for name in ("groups", "free_groups")},
            }
        except ValueError as error:
            raise StateError(str(error)) from error
        return cls.build(ready, arrays)

    @classmethod
    def build(cls, plain: Mapping[str, Any], arrays: Arrays) -> FittedState:
        """A checked state from plain values and from arrays by their names in :data:`SCHEMA`.

        Raises
        ------
        StateError
            If an array is missing or violates the schema.
        """
        check(arrays, {"guided": sum(map(len, plain["groups"]))})
        groups: dict[str, Any] = {}
        single: dict[str, Any] = {}
        for name, array in arrays.items():
            group, _, rest = name.partition("_")
            if group in GROUPS:
                groups.setdefault(group, {})[rest] = array
            else:
                single[name] = array
        state = cls(**plain, **single, **groups)
        width = len(state.groups) + len(state.free_groups) + (state.outside is not None)
        for name, size, wanted in (
            ("vocabulary", len(state.vocabulary), state.components.shape[1]),
            ("names of topics", len(state.names), len(state.components)),
            ("codebook", len(state.codebook), state.patterns.shape[1]),
            ("groups", len(state.groups), state.patterns.shape[1]),
            ("columns of memberships", state.memberships.shape[1], width),
            ("ids", len(state.ids), len(state.pattern)),
            ("texts", len(state.pattern if state.texts is None else state.texts), len(state.pattern)),
        ):
            if size != wanted:
                raise StateError(f"there are {size:,} {name}, but {wanted:,} in the arrays")
        _check_numbers(state)
        return state


def digests(documents: Documents) -> NDArray[np.uint64]:
    """Hash of the id and text of each document."""
    found = b"".join(
        hashlib.sha256(f"{name}\x00{text}".encode("utf-8", "surrogatepass")).digest()[:8]
        for name, text in zip(documents.ids, documents.texts, strict=True)
    )
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)


def fingerprint(numbers: NDArray[np.uint64]) -> str:
    """A short hash of a sequence of documents, from their :func:`digests`."""
    return hashlib.sha256(numbers.astype("<u8").tobytes()).hexdigest()[:16]


def _check_numbers(state: FittedState) -> None:
    """Check that terms, ids and keys are unique, and that topics are made up of existing classes of the guide."""
    for name, values in (("terms", state.vocabulary), ("keys of topics", state.codebook.keys)):
        if len(set(values)) != len(values):
            raise StateError(f"two {name} are equal")
    known, free = sum(map(len, state.groups)), 0
    if state.outside is not None:
        n_known, free = state.outside["counts"].tolist()
        known = n_known + free
    for name, groups, most in (("groups", state.groups, known), ("free_groups", state.free_groups, free)):
        classes = [k for group in groups for k in group]
        if not all(0 <= k < most for k in classes):
            raise StateError(f"{name} has classes that the guide does not have")
        if len(set(classes)) != len(classes):
            raise StateError(f"{name} has one class in two topics")
    # The guide does not know a topic that was adopted from a split; it knows all free topics of an open world or none.
    if not all(state.free_groups):
        raise StateError("free_groups has a topic without a class of the guide")


PLAIN = tuple(f.name for f in fields(FittedState) if f.name not in {s.name for s in SCHEMA} | set(GROUPS))


# --- the folder of a model ---

KIND = "TopicModel"
# Attempts to read a model without a lock while others write it.
ATTEMPTS = 5

# Version of a model in its folder: inode, size and time of its model.json. None without a model.
Version = tuple[int, ...] | None


@contextmanager
def writing(path: str | Path, *, new: bool = False) -> Iterator[None]:
    """Hold the lock of a model folder, from reading a model to writing its next version; others wait.

    A folder that does not exist is created if it is ``new``. Otherwise there is nothing to lose, and no lock.
    """
    folder = Path(path)
    storage.check_folder(folder)
    if not new and not folder.is_dir():
        yield
        return
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder / storage.LOCK, folder))
        except OSError as error:
            raise storage.StorageError(
                f"could not save to {folder}: {error.strerror or error}; make room or choose another folder"
            ) from error
        yield


def version(path: str | Path) -> Version:
    """The present version of the model in a folder."""
    try:
        found = os.stat(Path(path) / "model.json")
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def write_state(path: str | Path, state: FittedState, *, expected: Version = None) -> Version:
    """Write a model to a folder; an existing model is replaced only once everything is written.

    Parameters
    ----------
    path : str or Path
    state : FittedState
    expected : Version, optional
        The version that the state comes from. If another one is there now, nothing is written.

    Returns
    -------
    Version
        The version that was written.
    """
    with writing(path, new=True):
        if expected is not None and version(path) not in (expected, None):
            raise storage.StorageError(
                f"{path} was changed by another program after this model was loaded from it; nothing was written. "
                "Load the model again and repeat your change, or save to another folder."
            )
        _write(path, state)
        return version(path)


def _write(path: str | Path, state: FittedState) -> None:
    plain = {name: getattr(state, name) for name in PLAIN}
    meta: dict[str, Any] = (
        {"kind": KIND}
        | plain
        | {
            "codebook": state.codebook.to_json(),
            "free_names": list(state.free_names),
            "groups": [list(group) for group in state.groups],
            "free_groups": [list(group) for group in state.free_groups],
            "vocabulary": list(state.vocabulary),
            "ids": [plain_id(key) for key in state.ids],
            "texts": None if state.texts is None else list(state.texts),
        }
    )
    storage.save(path, meta, state.arrays())


def read_state(path: str | Path, *, mapped: int = storage.MAPPED) -> tuple[FittedState, Version]:
    """Read a model, and its version in the folder.

    Another program may write to the folder meanwhile. The result is always one whole version. Arrays of at least
    ``mapped`` bytes are mapped from their file.
    """
    for _ in range(ATTEMPTS):
        before = version(path)
        try:
            state = _read(path, mapped)
        except storage.StorageError:
            if version(path) == before:
                raise
        else:
            if version(path) == before:
                return state, before
    with writing(path):
        return _read(path, mapped), version(path)


def _read(path: str | Path, mapped: int) -> FittedState:
    meta, found = storage.load(path, mapped=mapped)
    try:
        if meta["kind"] != KIND:
            raise storage.StorageError(f"{path} holds a {meta['kind']}, not a TopicModel.")
        return FittedState.from_plain({name: meta[name] for name in PLAIN}, found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, storage.StorageError):
            raise
        why = str(error) if isinstance(error, StateError) else repr(error)
        raise storage.StorageError(f"{path} is not a complete model: {why}. Save it again.") from error
