"""The schema of a fitted state: requirements on its arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.guidance.latent import block_sizes
from topicsteer.labels.forest import Forest, cycle

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
    Field("weights", "f", ("documents",), 0, about="confidence in each document"),
    Field("guide_basis", "f", ("terms", "directions"), about="latent directions, word weights, log ratios"),
    Field("guide_dense", "f", ("dense", "covered"), about="weights of latent semantics and embeddings"),
    Field("guide_scale", "f", ("covered",)),
    Field("guide_calibration", "f", (6,)),
    Field("guide_rarity", "f", ("covered",)),
    Field("guide_shift", "f", ("covered",)),
    Field("guide_second_shift", "f", ("covered",)),
    Field("guide_mix", "f", (4,), about="weights of the second round; 1 0 0 0 if there is none"),
    Field("guide_settings", "f", (4,), 0, about="weight of embeddings and names, ridge, labels"),
    Field("guide_covered", "i", ("covered",), 0, "guided", about="topics with labels or a useful name"),
    Field("guide_rows", "i", ("learnt",), 0, "documents", about="labelled documents of the training"),
    Field("guide_left_out", "f", ("learnt", "covered"), 0, 1, nan=True, about="leave-one-out probabilities"),
    Field("guide_seen", "f", ("latent", "latent")),
    Field("outside_weights", "f", ("folds", "dense", "judged"), about="evidence of known topics, of a tree the leaves"),
    Field("outside_normal", "f", ("folds", "judged"), 1e-9),
    Field("outside_evidence", "f", ("points",), 0),
    Field("outside_probability", "f", ("points",), 0, 1, about="probability of no known topic"),
    Field("outside_merges", "i", ("merges", 2), 0, "groups", about="groups in the order of merging"),
    Field("outside_costs", "f", ("merges",), 0),
    Field("outside_sizes", "f", ("groups",), 0, about="expected documents of each group"),
    Field("outside_certainty", "f", ("groups",), 0, 1, about="their mean probability in their documents"),
    Field("outside_component_weights", "f", ("dense", "groups"), about="groups that are components"),
    Field("outside_component_levels", "f", ("groups",)),
    Field("outside_component_slopes", "f", ("groups",), 0),
    Field("outside_closed_dense", "f", ("dense", "closed"), about="the guide as if each document had a known topic"),
    *(Field(f"outside_closed_{name}", "f", ("closed",)) for name in ("scale", "rarity", "shift", "second_shift")),
    Field("outside_closed_calibration", "f", (6,)),
    Field("outside_closed_mix", "f", (4,)),
    Field("outside_closed_covered", "i", ("closed",), 0, "base"),
    Field("levels_parents", "i", ("classes",), -1, "guided", about="parent of each topic in the guide"),
    Field("levels_base", "i", (1,), 0, about="level of the tree that `guide` belongs to"),
    Field("levels_sizes", "i", ("levels",), 0, about="topics that the guide of each other level covers"),
    Field("levels_dense", "f", ("dense", "cells")),
    *(Field(f"levels_{name}", "f", ("cells",)) for name in ("scale", "rarity", "shift", "second_shift")),
    Field("levels_calibration", "f", ("levels", 6)),
    Field("levels_mix", "f", ("levels", 4)),
    Field("levels_covered", "i", ("cells",), 0, "classes"),
    Field("levels_left_out", "f", ("learnt", "cells"), 0, 1, nan=True),
    Field("levels_found", "i", ("found",), 0, "classes", about="free topics inside others"),
    Field("levels_component_weights", "f", ("dense", "found")),
    Field("levels_component_levels", "f", ("found",)),
    Field("levels_component_slopes", "f", ("found",), 0),
    Field("reservoir_rows", "i", ("retained",), 0, "documents", about="retained documents"),
    Field("reservoir_keys", "f", ("retained",), 0, about="random sort keys"),
    Field("reservoir_data", "f", ("entries",), 0, about="their terms, as CSR arrays"),
    Field("reservoir_indices", "i", ("entries",), 0, "terms"),
    Field("reservoir_indptr", "i", ("limits",), 0),
    Field("reservoir_embeddings", "f", ("retained", "embedding")),
    Field("origin_kind", "i", ("documents",), 0, 3, about="choice of each labelled document: see `labels.origin`"),
    Field("origin_draw", "i", ("documents",), 0),
    Field("origin_probability", "f", ("documents",), 0, 1, nan=True),
    Field("history_cross", "f", ("terms", "topics"), about="sufficient statistics of all other documents"),
    Field("history_gram", "f", ("topics", "topics")),
    Field("history_penalty", "f", ("topics",)),
    Field("history_totals", "f", (4,)),
    Field("history_scale", "f", ("topics",)),
)
# Prefixes of arrays that are present together or not at all.
GROUPS = ("guide", "outside", "levels", "reservoir", "history", "origin")
# Arrays that may be missing from a group that is present; arrays of a part are present together or not at all.
PARTS = [{f.name for f in SCHEMA if f.name.startswith(prefix)} for prefix in ("outside_component_", "outside_closed_")]
OPTIONAL = {"reservoir_embeddings"}.union(*PARTS)


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
    for part in PARTS:
        if (missing := sorted(part - set(arrays))) and len(missing) < len(part):
            raise StateError(f"the array {missing[0]!r} is missing")
    if "levels" in present:
        _check_levels(arrays, size, "guide" in present)
    if "guide" in present:
        q = size["directions"] - size["covered"] * _rounds(arrays["guide_mix"])
        q -= size["closed"] * _rounds(arrays["outside_closed_mix"]) if "outside_closed_mix" in arrays else 0
        q -= _level_columns(arrays) if "levels" in present else 0
        latent = sum(block_sizes(q)) if q >= 0 else -1
        width = size["dense"] - latent  # width of the embeddings
        known_width = size.get("embedding", width) if arrays["guide_settings"][0] else 0
        if size["latent"] != latent or width != known_width or width < 0:
            raise StateError("the arrays 'guide_basis', 'guide_dense' and 'guide_seen' do not fit each other")
    if "outside" in present:
        if "guide" not in present or not size["points"]:
            raise StateError("an open world needs a guide, and points of evidence")
        _check_merges(arrays["outside_merges"], size["groups"])
    if "reservoir" in present:
        rows, indptr = arrays["reservoir_rows"], arrays["reservoir_indptr"]
        whole = len(indptr) == len(rows) + 1 and indptr[0] == 0 and indptr[-1] == len(arrays["reservoir_data"])
        if not whole or (np.diff(indptr) < 0).any() or (np.diff(rows) <= 0).any():
            raise StateError("the arrays of the retained documents do not fit each other")


def _rounds(mix: NDArray[Any]) -> int:
    """Number of rounds of a guide, from the weights of the second one."""
    return 2 if mix[1:3].any() else 1


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


def _check_merges(merges: NDArray[Any], n_groups: int) -> None:
    """Check that each merge joins two groups that still exist."""
    there = set(range(n_groups))
    for first, second in merges.tolist():
        if first == second or not {first, second} <= there:
            raise StateError("the array 'outside_merges' merges a group twice")
        there.remove(second)


def _check_levels(arrays: Arrays, size: Mapping[str, int], guided: bool) -> None:
    """Check that the levels of a guide belong to one tree: all its topics, and all its cuts."""
    parents, found = arrays["levels_parents"].tolist(), arrays["levels_found"].tolist()
    known = size["base"] if "base" in size else size["guided"]
    named = [k for k in range(len(parents)) if k not in set(found)]
    place = {-1: -1} | {k: position for position, k in enumerate(named)}
    if not guided or len(parents) != known or len(set(found)) != len(found):
        raise StateError("the arrays of the levels do not fit the guide")
    inner = [parent if parent < known else -1 for parent in parents]  # a free topic may be inside a group
    if cycle(inner) or not all(parents[k] in place for k in named) or any(parents[k] < 0 for k in found):
        raise StateError("the array 'levels_parents' is not a tree")
    cuts, sizes = len(Forest(tuple(place[parents[k]] for k in named)).cuts), arrays["levels_sizes"]
    if len(sizes) not in (0, cuts - 1) or not arrays["levels_base"][0] < max(cuts, 1) or sizes.sum() != size["cells"]:
        raise StateError("the array 'levels_sizes' has other levels than the tree")
    if set(arrays["levels_covered"].tolist()) & set(found):
        raise StateError("the array 'levels_covered' has free topics")


def _level_columns(arrays: Arrays) -> int:
    """Columns of the basis that belong to the levels."""
    sizes, mixes = arrays["levels_sizes"].tolist(), arrays["levels_mix"]
    return sum(size * _rounds(mix) for size, mix in zip(sizes, mixes, strict=True))
