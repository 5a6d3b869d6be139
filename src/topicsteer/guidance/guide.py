"""The guide: from labels on a few documents to a probability for every document and known topic.

The factorisation applies the labels to labelled documents, but nothing in its objective carries them over to unlabelled
documents. The guide does, in two rounds:

1. Kernel ridge regression (`topicsteer.guidance.ridge`) on terms, latent semantics and, if available, embeddings. The
   name of a topic is one more small labelled document. One calibration for all topics turns scores into log odds; it is
   fitted to leave-one-out scores of the labelled documents. A prior shift then adapts the log odds to the frequency of
   each topic among unlabelled documents (`topicsteer.guidance.calibration`).
2. Naive Bayes with pseudo-labels (`topicsteer.guidance.calibration`). The probabilities so far serve as labels of the
   unlabelled documents. Log ratios measure how typical each term is of a topic. Hidden labels determine how much this
   round counts; it is left out if it does not find them better than the first round.

All settings are chosen from the labelled documents. Both rounds are linear in the terms up to row norms, so a new
document costs two small products. `topicsteer.guidance.train` learns a guide; `topicsteer.guidance.apply` applies it to
all documents.

In a tree of topics, each level is a flat guide for its own topics (see `topicsteer.guidance.tree`). `combine_cuts`
makes one consistent probability per topic of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logit

from topicsteer.guidance.calibration import FIXED_CALIBRATION, Calibration, Rounds, WordRound
from topicsteer.guidance.discover import Components, GroupTree
from topicsteer.guidance.latent import dense_features, project, unit_rows
from topicsteer.guidance.outside import Outside
from topicsteer.guidance.ridge import Choice
from topicsteer.labels.forest import Forest
from topicsteer.system.types import Array

# Smallest probability in log odds.
LEAST = 1e-6
# Part of a parent's change of log odds that its children share.
SHARED = 0.5
# Arrays of rounds with one number per topic.
BY_TOPIC = ("scale", "rarity", "shift", "second_shift")
# Arrays of rounds with one row per level, and the lengths of these rows.
BY_LEVEL = {"calibration": 6, "mix": 4}


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a tree of topics that are above the base.

    Parameters
    ----------
    parents : array of int (n_known,)
        Parent of each known topic, -1 without one.
    rounds : tuple of Rounds
        Guides of the cuts of the tree, from the top. The guide of the ``base`` cut is not among them.
    base : int
        Number of the cut with the guide that these levels belong to, usually the last.
    left_out : array (n_rows, number of topics of all rounds)
        Probabilities of labelled documents while their own labels are hidden.
    """

    parents: NDArray[np.int64]
    rounds: tuple[Rounds, ...]
    base: int
    left_out: Array

    @cached_property
    def forest(self) -> Forest:
        """The tree of the topics."""
        return Forest(tuple(self.parents.tolist()))

    @property
    def width(self) -> int:
        """Number of columns of the basis."""
        return sum(own.width for own in self.rounds)

    def odds(self, D: Array, products: Array) -> list[Array]:
        """Log odds of the covered topics of each level, from features and products with terms."""
        ends = np.cumsum([own.width for own in self.rounds])[:-1]
        parts = np.split(products, ends, axis=1)
        return [own.odds(D, part) for own, part in zip(self.rounds, parts, strict=True)]

    def covers(self, base: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each known topic has a probability of its own or from topics below it; ``base``: by the base."""
        found = base.copy()
        for own in self.rounds:
            found[own.covered] = True
        return np.asarray(self.forest.with_ancestors(found[None])[0])

    def combined(self, base: Array, covered: NDArray[np.int64], above: Sequence[Array]) -> NDArray[np.float32]:
        """Probability of each known topic.

        Parameters
        ----------
        base : array (n_documents, n_known or more)
            Probabilities of the topics of the base; groups of an open world follow.
        covered : array of int
            Topics that the base covers.
        above : sequence of arrays (n_documents, covered topics of the level)
            Probabilities of each level.
        """
        given, known = [], []
        levels = zip(self.rounds, above, strict=True)
        for number, cut in enumerate(self.forest.cuts):
            topics = list(cut)
            numbers, P = (covered, base[:, covered]) if number == self.base else _of_level(*next(levels))
            every = np.zeros_like(base)
            every[:, numbers] = P
            given.append(every[:, topics])
            known.append(np.isin(topics, numbers))
        found = np.array(base, dtype=np.float32)
        found[:, : len(self.parents)] = combine_cuts(self.forest, given, known)
        return found

    def left_out_probabilities(self, base: Array, covered: NDArray[np.int64]) -> Array:
        """As :meth:`combined`, for the labelled documents without their own labels."""
        ends = np.cumsum([len(own.covered) for own in self.rounds])[:-1]
        own = np.split(self.left_out, ends, axis=1)
        found = self.combined(np.nan_to_num(base), covered, [np.nan_to_num(part) for part in own])
        # The only document of a topic cannot be left out. The topics above it then have the values of their own level.
        lost = np.zeros(found.shape, dtype=np.bool_)
        known = len(self.parents)
        lost[:, :known] = self.forest.with_ancestors(np.isnan(base[:, :known]))
        for part, rounds in zip(own, self.rounds, strict=True):
            found[:, rounds.covered] = np.where(lost[:, rounds.covered], part, found[:, rounds.covered])
        return np.where(np.isnan(base), np.nan, found)

    # --- files ---

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields as arrays under their names in files."""
        own = [rounds.arrays() for rounds in self.rounds]
        return {
            "parents": self.parents,
            "base": np.array([self.base], dtype=np.int64),
            "sizes": np.array([len(rounds.covered) for rounds in self.rounds], dtype=np.int64),
            "left_out": self.left_out,
            "dense": np.hstack([arrays["dense"] for arrays in own]),
            "covered": np.concatenate([np.zeros(0, dtype=np.int64), *(arrays["covered"] for arrays in own)]),
            **{name: np.concatenate([np.zeros(0), *(arrays[name] for arrays in own)]) for name in BY_TOPIC},
            **{
                name: np.array([arrays[name] for arrays in own], dtype=np.float64).reshape(len(own), size)
                for name, size in BY_LEVEL.items()
            },
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Levels:
        """The levels of these :meth:`arrays`."""
        rounds, start = [], 0
        for level, size in enumerate(arrays["sizes"].tolist()):
            own = slice(start, start + size)
            parts = {name: arrays[name][own] for name in (*BY_TOPIC, "covered")}
            parts |= {name: arrays[name][level] for name in BY_LEVEL}
            rounds.append(Rounds.from_arrays(parts | {"dense": arrays["dense"][:, own]}))
            start += size
        return cls(arrays["parents"], tuple(rounds), int(arrays["base"][0]), arrays["left_out"])


def empty_rounds(width: int) -> Rounds:
    """Rounds of a level without labels and names."""
    none = np.zeros(0)
    calibration = Calibration(FIXED_CALIBRATION, none, none)
    return Rounds(np.zeros((width, 0), dtype=np.float32), none, calibration, None, np.zeros(0, dtype=np.int64))


def _of_level(own: Rounds, P: Array) -> tuple[NDArray[np.int64], Array]:
    return own.covered, P


def combine_cuts(
    forest: Forest, probabilities: Sequence[Array], covered: Sequence[NDArray[np.bool_]]
) -> NDArray[np.float32]:
    """One probability per topic from the probabilities of all cuts; no child has more than its parent.

    Parameters
    ----------
    forest : Forest
        The tree of the topics.
    probabilities : sequence of arrays (n_documents, size of the cut)
        Probabilities of the topics of each cut.
    covered : sequence of arrays of bool (size of the cut,)
        Whether the guide of the cut covers each topic; other probabilities are ignored.

    Returns
    -------
    float32 array (n_documents, n_topics)

    Examples
    --------
    >>> forest = Forest((-1, 0, 0, -1))
    >>> P = [np.array([[0.8, 0.1]]), np.array([[0.5, 0.2, 0.1]])]
    >>> combine_cuts(forest, P, [np.array([True] * 2), np.array([True] * 3)]).round(2)
    array([[0.71, 0.56, 0.24, 0.1 ]], dtype=float32)
    """
    odds = np.zeros((probabilities[0].shape[0], len(forest)))
    times = np.zeros(len(forest), dtype=np.int64)
    for cut, P, known in zip(forest.cuts, probabilities, covered, strict=True):
        numbers = np.asarray(cut)[known]
        odds[:, numbers] += _odds(P[:, known])
        times[numbers] += 1
    odds /= np.maximum(times, 1)  # a leaf above the last cut is in several cuts
    change = np.zeros_like(odds)
    for k in reversed(forest.order):
        below = [child for child in forest.children[k] if times[child]]
        if not below:
            continue
        joint = _odds(-np.expm1(np.log1p(-np.clip(expit(odds[:, below]), LEAST, 1 - LEAST)).sum(axis=1)))
        odds[:, k] = (odds[:, k] + joint) / 2 if times[k] else joint
        change[:, k], times[k] = odds[:, k] - joint, max(times[k], 1)
    for k in forest.order:
        parent = forest.parents[k]
        if parent >= 0 and times[k]:
            moved = SHARED * change[:, parent]
            odds[:, k] = np.minimum(odds[:, k] + moved, odds[:, parent])
            change[:, k] += moved
    return np.where(times > 0, expit(odds), 0).astype(np.float32)


def _odds(P: Array) -> Array:
    return np.asarray(logit(np.clip(P, LEAST, 1 - LEAST, dtype=np.float64)))


# Fields that are arrays, and the fields of the parts of an open world.
PLAIN_ARRAYS = ("basis", "dense", "scale", "covered", "rows", "left_out", "seen")
OUTSIDE_ARRAYS = ("weights", "normal", "evidence", "probability")
TREE_ARRAYS = ("merges", "costs", "sizes", "certainty")
# Fields of components, and their prefix in files.
COMPONENT_ARRAYS, COMPONENT = ("weights", "levels", "slopes"), "component_"
# Prefix of the rounds of a closed world in files.
CLOSED = "closed_"


@dataclass(frozen=True, eq=False)
class Guide:
    """From documents to probabilities of the known topics.

    Parameters
    ----------
    basis : array (n_terms, q + n_covered or q + 2 n_covered)
        Matrices side by side, so that one product with a document's terms is enough: q directions of the latent
        semantics, term weights of the first round, and log ratios of the second round, if there is one. Columns of
        ``closed`` and ``levels`` follow.
    dense : array (dimensions of the latent semantics and the embeddings, n_covered)
        Weights of the latent semantics and of the embeddings.
    scale : array (n_covered,)
        Factor that maps scores to a range from about 0 (no evidence for the topic) to 1 (all evidence).
    calibration : Calibration
        From scores to log odds.
    word_round : WordRound or None
        The second round.
    choice : Choice
        The chosen settings of the ridge regression.
    chosen_from : int
        Number of labelled documents from which settings and calibrations were learnt.
    covered : array of int (n_covered,)
        Numbers of the known topics with labels or a useful name; the others have probability 0.
    rows : array of int (n_rows,)
        The labelled documents that the guide was learnt from.
    left_out : array (n_rows, n_covered)
        Probabilities of these documents while their own labels are hidden; NaN for the only document of a topic.
    seen : array (dimensions, dimensions)
        DᵀD of the latent semantics D of the labelled documents: the region that labels cover.
    n_known : int
        Number of known topics.
    open : bool
        Whether documents may have none of the known topics.
    outside : Outside or None
        The probability of no known topic; only in an open world.
    n_groups : int
        Number of groups of documents without a known topic. They are further classes, after the known topics.
    tree : GroupTree or None
        The order in which the groups merge.
    components : Components or None
        The groups of a corpus with several topics per document; other groups are classes like the known topics.
    closed : Rounds or None
        The rounds under the assumption that every document has a known topic. They separate known topics, while groups
        as further classes keep other documents out: memberships of known topics are the geometric mean of both. Names
        alone give little evidence, so without labels one of both is enough: 1 - (1 - a)(1 - b).
    levels : Levels or None
        Further levels of a tree of topics. The rounds above are of the leaves.
    """

    basis: Array
    dense: Array
    scale: Array
    calibration: Calibration
    word_round: WordRound | None
    choice: Choice
    chosen_from: int
    covered: NDArray[np.int64]
    rows: NDArray[np.int64]
    left_out: Array
    seen: Array
    n_known: int
    open: bool = False
    outside: Outside | None = None
    n_groups: int = 0
    tree: GroupTree | None = None
    components: Components | None = None
    closed: Rounds | None = None
    levels: Levels | None = None

    def probabilities(
        self,
        X: sp.csr_array,
        threads: int | None = None,
        *,
        embeddings: Array | None = None,
        latent: Array | None = None,
        plain: bool = False,
    ) -> NDArray[np.float32]:
        """Probability of each known topic and group in each document, without regard to labels.

        In an open world, a document that seems to have no known topic has less of all of them. ``latent``: the latent
        semantics of the documents, if they are known. ``plain``: without compiled kernels, for a few documents.
        """
        out = np.zeros((X.shape[0], self.n_known + self.n_groups), dtype=np.float32)
        E = self._weighed(embeddings)

        def write(rows: slice, D: Array, products: Array) -> None:
            self._write(out[rows], D, products)

        project(X, self.basis, self._dimensions, write, threads, embeddings=E, latent=latent, plain=plain)
        if embeddings is None:
            out[np.diff(X.indptr) == 0] = 0  # a document without terms gives no evidence
        return out

    def _write(self, out: Array, D: Array, products: Array) -> None:
        """Probabilities of documents with these dense features and products of terms."""
        out[:, self.covered] = expit(self.rounds.odds(D, products))
        if self.outside is not None:
            inside = (1 - self.outside.none(D))[:, None]
            # Groups that are classes already take their part of a document from the known topics.
            out[:, : self.n_known] *= np.sqrt(inside) if self.group_classes else inside
            if self.closed is not None:
                alone = expit(self.closed.odds(D, products[:, self.rounds.width :]))
                both = out[:, self.closed.covered]
                if self.by_labels:
                    out[:, self.closed.covered] = np.sqrt(both * alone * inside)
                else:
                    out[:, self.closed.covered] = 1 - (1 - both) * (1 - alone * np.sqrt(inside))
        if self.components is not None:
            out[:, self.n_known :] = self.components.probabilities(D)
        if self.levels is not None:
            above = [expit(odds) for odds in self.levels.odds(D, products[:, products.shape[1] - self.levels.width :])]
            if self.outside is not None:
                above = [(1 - self.outside.none(D))[:, None] * own for own in above]
            out[:] = self.levels.combined(out, self._base, above)

    def left_out_probabilities(self) -> Array:
        """Probability of each known topic in the labelled documents ``rows``, each without its own labels."""
        found = np.zeros((len(self.rows), self.n_known + self.n_groups), dtype=np.float32)
        found[:, self.covered] = self.left_out
        if self.levels is not None:
            found = self.levels.left_out_probabilities(found, self._base)
        return found

    def features(self, X: sp.csr_array, threads: int | None = None, *, embeddings: Array | None = None) -> Array:
        """Latent semantics of documents, followed by their weighted embeddings."""
        D, E = dense_features(X, self.directions, threads), self._weighed(embeddings)
        return D if E is None else np.hstack([D, E.astype(D.dtype)])

    def positions(self, X: sp.csr_array, threads: int | None = None) -> Array:
        """Latent semantics of documents: rows of equal length, and the product of two rows is their similarity."""
        return dense_features(X, self.directions, threads)

    @property
    def covers(self) -> NDArray[np.bool_]:
        """Whether the guide covers each known topic and group."""
        numbers = np.arange(self.n_known + self.n_groups)
        found = np.isin(numbers, self.covered) | ((numbers >= self.n_known) & (self.components is not None))
        if self.levels is not None:
            found[: self.n_known] |= self.levels.covers(found[: self.n_known])
        return found

    @property
    def rounds(self) -> Rounds:
        """Both rounds for known topics and groups."""
        return Rounds(self.dense, self.scale, self.calibration, self.word_round, self.covered)

    @property
    def by_labels(self) -> bool:
        """Whether there are labels, and not names alone."""
        return bool(len(self.rows))

    @property
    def group_classes(self) -> bool:
        """Whether there are groups that are classes like the known topics."""
        return bool(self.n_groups) and self.components is None

    @property
    def believes_open(self) -> bool:
        """Whether documents seem to have none of the known topics; free topics that were asked for do not show it."""
        return self.open and (self.outside is not None or self.components is None)

    @property
    def embedding(self) -> float:
        """Weight of the embeddings, 0 if there are none."""
        return self.choice.embedding

    @property
    def directions(self) -> Array:
        """The directions of the latent semantics (n_terms, q); they do not depend on labels."""
        return np.ascontiguousarray(self.basis[:, : self._dimensions])

    def renumbered(self, rows: NDArray[np.int64], n_terms: int | None = None) -> Guide:
        """The same guide with new row numbers of its documents, and zeros for new terms."""
        more = 0 if n_terms is None else n_terms - len(self.basis)
        return replace(self, rows=rows, basis=np.pad(self.basis, ((0, more), (0, 0))))

    @property
    def _base(self) -> NDArray[np.int64]:
        """The covered known topics, without groups."""
        return self.covered[self.covered < self.n_known]

    @property
    def _dimensions(self) -> int:
        others = sum(part.width for part in (self.closed, self.levels) if part is not None)
        return int(self.basis.shape[1] - self.rounds.width - others)

    def _weighed(self, embeddings: Array | None) -> Array | None:
        if (embeddings is None) == bool(self.embedding):
            wanted = "needs the embeddings of documents" if self.embedding else "was learnt without embeddings"
            raise ValueError(f"This guide {wanted}.")
        return None if embeddings is None else unit_rows(embeddings) * np.sqrt(self.embedding)

    # --- files ---

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields but ``n_known``, as arrays under their names in files."""
        choice = self.choice
        return {
            **self.rounds.arrays(),
            "settings": np.array([choice.embedding, choice.name, choice.ridge, self.chosen_from]),
            **{name: getattr(self, name) for name in PLAIN_ARRAYS},
        }

    def outside_arrays(self) -> dict[str, NDArray[Any]] | None:
        """All fields of an open world as arrays; None in a closed world."""
        if not self.open:
            return None
        width = len(self.dense)
        outside = self.outside or Outside(
            np.zeros((0, width, self.n_known)), np.zeros((0, self.n_known)), np.zeros(1), np.zeros(1)
        )
        tree = self.tree or GroupTree(np.zeros((0, 2), dtype=np.int64), *np.zeros((3, 0)))
        return {
            "counts": np.array([self.n_known, self.n_groups], dtype=np.int64),
            **{name: getattr(outside, name) for name in OUTSIDE_ARRAYS},
            **{name: getattr(tree, name) for name in TREE_ARRAYS},
            **{COMPONENT + name: getattr(self.components, name) for name in COMPONENT_ARRAYS if self.components},
            **{CLOSED + name: array for name, array in (self.closed.arrays() if self.closed else {}).items()},
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        n_known: int,
        outside: Mapping[str, NDArray[Any]] | None = None,
        levels: Mapping[str, NDArray[Any]] | None = None,
    ) -> Guide:
        """The guide of these :meth:`arrays` and :meth:`outside_arrays`, which contain the number of known topics."""
        embedding, name, ridge, labels = arrays["settings"].tolist()
        rounds, n_groups, closed = Rounds.from_arrays(arrays), 0, {}
        if outside is not None:
            n_known, n_groups = outside["counts"].tolist()
            closed = {name.removeprefix(CLOSED): own for name, own in outside.items() if name.startswith(CLOSED)}
        return cls(
            calibration=rounds.calibration,
            word_round=rounds.word_round,
            choice=Choice(embedding, name, ridge),
            chosen_from=int(labels),
            n_known=n_known,
            open=outside is not None,
            outside=Outside(*(outside[name] for name in OUTSIDE_ARRAYS))
            if outside is not None and len(outside["weights"])
            else None,
            n_groups=n_groups,
            tree=GroupTree(*(outside[name] for name in TREE_ARRAYS)) if outside is not None and n_groups else None,
            components=Components(*(outside[COMPONENT + name] for name in COMPONENT_ARRAYS))
            if outside is not None and COMPONENT + "weights" in outside
            else None,
            closed=Rounds.from_arrays(closed) if closed else None,
            levels=None if levels is None else Levels.from_arrays(levels),
            **{name: arrays[name] for name in PLAIN_ARRAYS},
        )


def side_by_side(
    guides: Sequence[Guide], X: sp.csr_array, threads: int | None = None, *, embeddings: Array | None = None
) -> list[NDArray[np.float32]]:
    """The probabilities of several guides with the same latent semantics, which are computed once."""
    first = guides[0]
    q = first._dimensions
    basis = np.hstack([first.directions, *(guide.basis[:, q:] for guide in guides)])
    ends = np.cumsum([guide.basis.shape[1] - q for guide in guides])
    found = [np.zeros((X.shape[0], guide.n_known + guide.n_groups), dtype=np.float32) for guide in guides]
    E = None if embeddings is None else unit_rows(embeddings)

    def write(rows: slice, D: Array, products: Array) -> None:
        for guide, out, own in zip(guides, found, np.split(products, ends[:-1], axis=1), strict=True):
            latent = D.shape[1] - (0 if E is None else E.shape[1])
            dense = D if E is None else np.hstack([D[:, :latent], D[:, latent:] * np.float32(np.sqrt(guide.embedding))])
            guide._write(out[rows], dense, own)

    project(X, basis, q, write, threads, embeddings=E)
    if embeddings is None:
        for out in found:
            out[np.diff(X.indptr) == 0] = 0
    return found
