"""The document map in numbers: one point per document, close to documents with similar words.

The layout comes from the latent semantics of the documents and, if they are given, from their memberships. UMAP
(umap-learn, the extra ``map``) lays out at most `LAID_OUT` documents. The other documents are placed between their
nearest neighbours among them. Without umap-learn, and for tiny corpora, there is no map.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.features import unit_rows
from topicsteer.nmf.blocks import slices
from topicsteer.nmf.latent import leading_directions
from topicsteer.system.machine_code import keep
from topicsteer.system.threads import OrderedMap, workers
from topicsteer.system.types import Array, Progress

# Greatest number of documents on a map; of a larger corpus it shows a sample.
MOST = 100_000
# Documents that UMAP lays out; the others are placed between their neighbours.
LAID_OUT = 20_000
# Fewest documents that UMAP lays out.
FEWEST = 50
# Leading directions of the latent semantics that the layout uses.
DIMENSIONS = 100
# Weight of the memberships, relative to the latent semantics.
WEIGHT = 0.5
# Neighbours of a document in the layout, and of a document that is placed afterwards.
NEIGHBOURS, NEAREST = 15, 4
# Passes of UMAP over all pairs of neighbours.
EPOCHS = 300
# Greatest width of a map, relative to its height.
WIDEST = 2.0
# Documents per block of distances.
ROWS = 1_024

Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layout:
    """The place of each document on the map.

    Parameters
    ----------
    rows : array of int (n_points,)
        Row numbers of the documents, ascending.
    places : array (n_points, 2)
        Coordinates: x to the right, y downwards, both between 0 and 1.
    aspect : float
        Width of the map, relative to its height.
    documents : int
        Number of documents of the corpus; more than points if the map shows a sample.
    """

    rows: Rows
    places: NDArray[np.float32]
    aspect: float
    documents: int


@dataclass(frozen=True, eq=False)
class DocumentMap:
    """A layout with the likeliest topic of each document.

    Parameters
    ----------
    layout : Layout
        The places.
    names : tuple of str
        Names of the topics, known ones first. The last name stands for none of the known topics.
    n_known : int
        Number of known topics.
    topic : array of int (n_points,)
        Number of the likeliest topic of each point.
    membership : array (n_points,)
        Membership in it.
    labelled : array of bool (n_points,)
        Whether the document has a label.
    """

    layout: Layout
    names: tuple[str, ...]
    n_known: int
    topic: NDArray[np.int64]
    membership: Array
    labelled: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.topic)


# --- the documents on the map ---


def chosen_rows(n: int, labelled: NDArray[np.bool_], seed: int = 0, most: int | None = None) -> Rows:
    """Return rows of the documents on the map: all, or a sample with all labelled documents, as far as there is room.

    Examples
    --------
    >>> chosen_rows(6, np.array([0, 0, 0, 0, 1, 1], dtype=bool), most=3)
    array([3, 4, 5])
    """
    most = MOST if most is None else most
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[np.argsort(~labelled[order], kind="stable")][:most])


def sample_note(layout: Layout) -> str:
    """Return a sentence about a map that shows only some documents; empty if it shows all.

    Examples
    --------
    >>> sample_note(Layout(np.arange(2), np.zeros((2, 2), dtype=np.float32), 1.0, 5))
    'The map shows 2 of 5 documents: all labelled ones, and others at random.'
    """
    if len(layout.rows) == layout.documents:
        return ""
    shown = f"{len(layout.rows):,} of {layout.documents:,} documents"
    return f"The map shows {shown}: all labelled ones, and others at random."


# --- layouts ---


def obstacle(n: int) -> str:
    """Return the reason why there is no map of n documents; empty if there can be one."""
    if find_spec("umap") is None:
        return "The document map needs umap-learn: pip install umap-learn."
    return "" if n >= FEWEST else f"A document map needs {FEWEST} documents or more."


def latent_semantics(
    X: sp.csr_array, directions: Array | None = None, seed: int = 0, threads: int | None = None
) -> Array:
    """Coordinates of documents along the leading directions of the latent semantics.

    Parameters
    ----------
    X : CSR (n_documents, n_terms)
        The documents.
    directions : array (n_terms, q), optional
        Directions, strongest first. Default: the directions of these documents.
    seed, threads : int
        As for :func:`topicsteer.nmf.latent.leading_directions`.
    """
    if directions is None or not directions.shape[1]:
        directions = leading_directions(X, min(DIMENSIONS, *X.shape), seed, threads)
    return np.asarray(X @ directions[:, :DIMENSIONS])


def features(latent: Array, memberships: Array | None = None) -> NDArray[np.float32]:
    """Coordinates of documents for the layout: latent semantics of length 1, and roots of the memberships.

    Parameters
    ----------
    latent : array (n_documents, directions)
        Coordinates along the directions of the latent semantics, strongest direction first.
    memberships : array (n_documents, n_topics + 1), optional
        Default: the layout does not depend on labels.
    """
    unit = unit_rows(latent[:, :DIMENSIONS])
    if memberships is None:
        return np.asarray(unit, dtype=np.float32)
    roots = np.sqrt(np.clip(memberships, 0, 1, dtype=np.float32))
    return np.hstack([unit, np.float32(WEIGHT) * roots])


def lay_out(
    points: NDArray[np.float32],
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    laid_out: int = LAID_OUT,
) -> tuple[NDArray[np.float32], float]:
    """Return places of documents by UMAP, and the width of the map relative to its height.

    The same points and seed give the same places, with any number of threads.

    Parameters
    ----------
    points : array (n_documents, n_features)
        From :func:`features`.
    seed : int
        Seed of UMAP, and of the choice of documents that it lays out.
    threads : int, optional
        Threads that find neighbours; UMAP itself uses one. Default: all cores.
    progress : callable, optional
        Called with the stage "map", the number of documents that have a place, and the number of documents.
    laid_out : int
        Number of documents that UMAP lays out. The others are placed between them.
    """
    n, tell = len(points), progress or (lambda *_: None)
    base = np.arange(n)
    if n > laid_out:
        base = np.sort(np.random.default_rng(seed).choice(n, laid_out, replace=False))
    found = np.empty((n, 2), dtype=np.float32)
    with workers(threads) as run:
        tell("map", 0, n, "neighbours")
        pairs = list(nearest(points[base], points[base], NEIGHBOURS, run))
        near, square = (np.concatenate(some) for some in zip(*pairs, strict=True))
        tell("map", 0, n, "layout")
        found[base] = _umap(points[base], near, np.sqrt(square), seed)
        others = np.setdiff1d(np.arange(n), base, assume_unique=True)
        parts = slices(len(others), ROWS)
        for part, (near, square) in zip(parts, nearest(points[others], points[base], NEAREST, run), strict=True):
            weight = 1 / np.maximum(square, 1e-6)
            places = (found[base][near] * weight[:, :, None]).sum(axis=1)
            found[others[part]] = places / weight.sum(axis=1, keepdims=True)
            tell("map", len(base) + part.stop, n, "places")
    return _upright(found)


def nearest(
    points: NDArray[np.float32], base: NDArray[np.float32], k: int, run: OrderedMap
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """For each block of points their nearest neighbours in the base, nearest first, and squared distances."""
    k, size = min(k, len(base)), (base**2).sum(axis=1)

    def one(part: slice) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        # The squared length of a point adds the same to all its distances, so it can wait.
        square = size - 2 * (points[part] @ base.T)
        near = np.argpartition(square, k - 1, axis=1)[:, :k]
        order = np.lexsort((near, np.take_along_axis(square, near, axis=1)), axis=1)
        near = np.take_along_axis(near, order, axis=1)
        found = np.take_along_axis(square, near, axis=1) + (points[part] ** 2).sum(axis=1)[:, None]
        return near, np.maximum(found, 0)

    yield from run(one, slices(len(points), ROWS))


def _umap(
    points: NDArray[np.float32], near: NDArray[np.int64], distance: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """UMAP, started from the two strongest directions; one thread, since the timing of several changes the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tensorflow is not installed; documents without terms have no neighbours
        from umap import UMAP, layouts, umap_

        keep(umap_, ("smooth_knn_dist", "compute_membership_strengths"))  # six seconds per process otherwise
        keep(layouts, ("_nb_optimize_layout_euclidean_single_epoch",))
        centred = points - points.mean(axis=0)
        _, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))
        start = centred @ axes[:, :-3:-1].astype(np.float32)
        start *= 10 / max(float(np.abs(start).max()), 1e-9)
        start += np.random.default_rng(seed).normal(scale=1e-3, size=start.shape).astype(np.float32)
        method = UMAP(
            n_neighbors=near.shape[1],
            n_epochs=EPOCHS,
            min_dist=0.1,
            init=start,
            random_state=seed,
            n_jobs=1,
            precomputed_knn=(near.astype(np.int32), distance, None),
        )
        return np.asarray(method.fit_transform(points), dtype=np.float32)


def _upright(found: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Turn a layout so that it is widest from left to right, and fill the unit square; also return its aspect."""
    centred = found.astype(np.float64) - np.median(found, axis=0)
    spread, axes = np.linalg.eigh(np.cov(centred.T))
    turned = centred @ axes[:, ::-1]
    turned *= np.where((turned**3).sum(axis=0) < 0, -1, 1)  # the longer tail to the right and downwards
    return filling(turned).astype(np.float32), float(np.clip(np.sqrt(spread[1] / max(spread[0], 1e-12)), 1, WIDEST))


def filling(places: Array) -> Array:
    """Return places in the unit square: the mean of position and rank, since a few distant ones would leave no room."""
    spread = np.ptp(places, axis=0)
    unit = (places - places.min(axis=0)) / np.maximum(spread, 1e-12)
    rank = np.argsort(np.argsort(places.round(9), axis=0, kind="stable"), axis=0, kind="stable")
    unit = (unit + rank / max(len(places) - 1, 1)) / 2
    return np.where(spread > 1e-9, unit, 0.5)
