"""TSNMF: topic-supervised NMF as a scikit-learn estimator."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import BlockFolder, as_blocks, write_blocks
from topicsteer.backends.dask import ClusterBlocks, OnCluster, is_distributed
from topicsteer.backends.disk import OnDisk, block_rows, problem_of
from topicsteer.backends.memory import InMemory
from topicsteer.backends.weight_folder import StoredWeights, WeightFolder
from topicsteer.labels.supervision import Supervision, extend, supervise
from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf import loop as solvers
from topicsteer.nmf.blocks import Block, Matrix, SoftMask, cut, mask_weights, row_sizes
from topicsteer.nmf.checks import (
    check_error_weight,
    check_matrix,
    check_penalties,
    check_sample_weight,
    check_start,
)
from topicsteer.nmf.loop import Callback, Result, factorise
from topicsteer.nmf.rules import RULES, Penalty
from topicsteer.nmf.start import INITS, FirstWeights, label_profiles, start
from topicsteer.nmf.statistics import Beside, Past, insert
from topicsteer.nmf.term_constraints import Words
from topicsteer.system.files import Scratch
from topicsteer.system.memory import refuse_beyond_memory
from topicsteer.system.types import Array

NOT_OF_THE_PROBLEM = ("tol", "max_iter", "threads", "verbose")  # an interrupted fit may go on with others


class TSNMF(TransformerMixin, BaseEstimator):
    """Topic-supervised non-negative matrix factorisation.

    Factorises documents × terms as ``X ≈ (W∘L) H`` with ``W, H ≥ 0``, where ``L`` forbids a labelled document every
    known topic that it was not labelled with (MacMillan & Wilson, 2017). Without labels it is plain NMF.

    The objective is ``D = Σ_ij E_ij (X - WH)²_ij``, where row i of ``E`` is the weight of document i. The paper
    prints E inside the norm, which would weight the squared error by E²; its update rules are those of this D.

    Parameters
    ----------
    n_components : int, default=None
        Number of topics. None: just the known ones. What exceeds the known ones are free topics.
    topics : sequence of str or int, default=None
        Names and order of the known topics; may name topics without a label. Default: the names in ``y``, sorted.
    complete : bool, default=True
        A document's labels are all its known topics; the others are forbidden there. False: others may occur too.
    free_in_labelled : bool, default=True
        Whether documents labelled with a known topic may use free topics too. False is what the authors' code does: a
        labelled document then consists of its known topics only, and background that they share ends up in these.
    init : {"labels", "acol", "random", "nndsvd"} or tuple (W, H), default="labels"
        "labels": each known topic starts as the mean of its documents, the others by Random Acol. "acol": all topics
        are means of random documents and W is uniform, as in the paper. "random": both uniform. "nndsvd": by SVD,
        each known topic taking the component nearest to its documents.
    solver : {"hals", "mu"}, default="hals"
        "hals": coordinate descent. "mu": the paper's multiplicative rules, exactly.
    label_weight : "balanced", float or None, default="balanced"
        How much more the error of a labelled document counts. "balanced": the inverse of the labelled share, as in
        the paper. None: no more than any other.
    tol : float, default=1e-4
        Stop when an iteration lowers the objective by less than this share of it.
    max_iter : int, default=200
        Maximum number of iterations.
    alpha_W, alpha_H : float, default=0
        Strength of the penalties on W and H, scaled as in scikit-learn's NMF: by the number of terms for W, and for
        H by the total weight of the documents. A document's penalty counts by its weight, as its error does.
    l1_ratio : float, default=0
        0: the penalty is on squares, 1: on absolute values.
    warm_start : bool, default=False
        Start from the last fit: known topics are found again by name, free ones by position.
    forget_factor : float, default=1.0
        What earlier documents are multiplied with at each :meth:`partial_fit`: 1 forgets nothing, 0 all but the topics.
    threads : int, default=None
        Number of threads, None = all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed for Random Acol, uniform starts and the SVD.
    verbose : int, default=0
        1 prints a line an iteration.

    Attributes
    ----------
    components_ : array (n_topics, n_features)
        H, the terms of each topic.
    document_topics_ : array (n_documents, n_topics)
        W of the training documents, exactly 0 where a label forbids the topic. After a fit to blocks it is on disk:
        ``document_topics_[rows]`` reads some of it, ``np.asarray(document_topics_)`` all.
    topic_names_ : array of object (n_topics,)
        Known topics in their order, then "free 1", "free 2", ...
    n_known_ : int
        Number of known topics; they come first.
    objective_history_ : array (n_iter_ + 1,)
        D with its penalties, at the start and after each iteration; it never rises.
    reconstruction_err_ : float
        Square root of the weighted squared error Σ E (X - WH)².
    n_iter_ : int
        Number of iterations.
    ended_ : str
        Why the fit ended: "tol", "max_iter", "callback" or "interrupted".
    past_ : Past
        Sums over all documents so far, from which :meth:`partial_fit` goes on; see `topicsteer.nmf.statistics`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from topicsteer import TSNMF
    >>> X = np.array([[3, 1, 0, 0], [0, 0, 2, 1], [2, 1, 0, 0], [0, 0, 1, 1], [2, 0, 2, 1]])
    >>> model = TSNMF().fit(X, ["fruit", "tools", None, None, None])
    >>> model.topic_names_.tolist()
    ['fruit', 'tools']
    >>> model.document_topics_.round(1)
    array([[1. , 0. ],
           [0. , 1. ],
           [0.7, 0. ],
           [0. , 0.6],
           [0.6, 1. ]])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        topics: Sequence[Hashable] | None = None,
        complete: bool = True,
        free_in_labelled: bool = True,
        init: str | tuple[ArrayLike, ArrayLike] = "labels",
        solver: str = "hals",
        label_weight: str | float | None = "balanced",
        tol: float = 1e-4,
        max_iter: int = 200,
        alpha_W: float = 0.0,
        alpha_H: float = 0.0,
        l1_ratio: float = 0.0,
        warm_start: bool = False,
        forget_factor: float = 1.0,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.topics = topics
        self.complete = complete
        self.free_in_labelled = free_in_labelled
        self.init = init
        self.solver = solver
        self.label_weight = label_weight
        self.tol = tol
        self.max_iter = max_iter
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.warm_start = warm_start
        self.forget_factor = forget_factor
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        error_weight: Any = None,
        penalties: Any = None,
        words: Any = None,
        folder: str | os.PathLike[str] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Factorise X under the labels y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_terms), or blocks of its rows
            Non-negative; float32 and float64 are kept, anything else becomes float64. What does not fit into memory
            comes in blocks: a :class:`~topicsteer.backends.block_folder.BlockFolder`, the path of one, or an iterable
            of sparse matrices, which are written to disk. W is then kept on disk as well.
        y : labels in any form, default=None
            One label a document (None, NaN or -1 = unlabelled), a list of labels a document, a dict
            ``{row: labels}``, or an indicator matrix (1 permitted, 0 forbidden, NaN unknown).
        sample_weight : array of shape (n_documents,), default=None
            Confidence in each document; multiplies its label weight.
        error_weight : array or sparse matrix of shape (n_documents, n_terms), default=None
            The paper's full E, with ``solver="mu"``; multiplies the weights of the rows. What a sparse one does
            not store counts for nothing.
        penalties : sparse matrix or array of shape (n_documents, n_topics), default=None
            A soft mask: what a topic's weight costs in a document, so that ``D + 2 Σ penalty w`` is minimised, with
            rows of H of length 1. Infinity forbids the topic. A row of a sparse matrix permits only the topics that it
            stores, at no cost where it stores 0, so that a million rows with a few likely topics each stay small; a
            row that stores nothing is not restricted. Labels hold in any case. A document's penalty counts by its
            weight, as its error does.
        words : sparse matrix or array of shape (n_topics or fewer, n_terms), default=None
            Above zero the term is pinned to the topic: it starts with it, and weighs at least as much as its tenth
            term, which may raise the objective a little. Below zero it is banned: its entry of H is 0 throughout.
        folder : path, default=None
            Where blocks keep their weights: a fit that was interrupted goes on from its last complete iteration if it
            is called again with the same data and folder. Default: a temporary folder, which goes with the estimator.
        callback : callable, default=None
            Called as ``callback(iteration, objective, seconds)`` after each iteration; return True to stop.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, folder, owner = self._open(X, folder, error_weight is not None)
        n, t = X.shape
        supervision = supervise(y, n, topics=self.topics, complete=self.complete)
        d = self._count_components(y, supervision)
        sample = check_sample_weight(sample_weight, n)
        weight = self._weigh(supervision, sample)
        penalty = self._penalty(t, float(weight.sum()))
        permitted = supervision.permitted(d, self.free_in_labelled)
        self._warn_of_labels(X, supervision, permitted)
        E = check_error_weight(error_weight, X, self.solver)
        soft = self._soft(penalties, n, d, X.dtype)
        chosen = Words.read(words, d, t)

        _compile(X.dtype)
        first, HT = self._start(X, supervision, weight, d)
        if chosen is not None:
            chosen.seed(HT, np.pad(supervision.counts > 0, (0, d - len(supervision.topics))))
        light, earlier = weight.astype(X.dtype), None
        place: InMemory | OnDisk | OnCluster
        W: Any
        if isinstance(X, sp.csr_array):
            refuse_beyond_memory(n * d * X.dtype.itemsize, f"The topic weights of {n} documents and {d} topics")
            W = np.zeros((n, d), dtype=X.dtype) if first is None else np.ascontiguousarray(first(slice(0, n)))
            place = InMemory(cut(X, W, light, supervision.pattern, soft=soft, E=E))
            for block in place.blocks:
                mask_weights(block.W, block.pattern, block.soft, permitted)
        else:
            settings = {k: v for k, v in self.get_params().items() if k not in NOT_OF_THE_PROBLEM}
            labels = supervision.topics, supervision.patterns, supervision.pattern, light, words
            problem = None if owner.temporary else problem_of(settings, d, X.shape, X.sizes, *labels)
            rows = block_rows(X.starts, light, supervision.pattern, soft)
            kind = OnDisk if isinstance(X, BlockFolder) else OnCluster
            place = kind(X, WeightFolder.make(folder, X.starts, d, X.dtype), rows, problem)
            earlier = place.recall()
            if earlier is None and first is not None:
                place.begin(first, permitted)
        beside = Beside(place, Past.nothing(t, d, X.dtype))
        result = factorise(
            beside,
            HT if earlier is None else earlier.HT,
            permitted,
            solver=self.solver,
            penalty=penalty,
            tol=self.tol,
            max_iter=self.max_iter,
            weighted=E is not None,
            threads=self.threads,
            unit=soft is not None,
            words=chosen,
            earlier=earlier,
            callback=_reporting(callback) if self.verbose else callback,
        )
        if not isinstance(place, InMemory):
            W = StoredWeights(place.weights, place.version, owner)
        free = [f"free {k + 1}" for k in range(d - len(supervision.topics))]
        self.past_ = None if E is not None else beside.conclude(_weights(supervision, sample, weight))
        self.topic_names_ = np.array([*supervision.topics, *free], dtype=object)
        self.n_known_ = len(supervision.topics)
        self._conclude(result, W)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        penalties: Any = None,
        words: Any = None,
        callback: Callback | None = None,
    ) -> Self:
        """Go on with new documents; the first call, without a fit before it, is a fit.

        Of earlier documents only sums are left (``past_``), with the weights that they had last; each call multiplies
        these with ``forget_factor``, then finds the weights of the new documents and improves the topics for all. A
        document that is given twice counts twice.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_terms)
            The new documents, with the terms of the earlier ones.
        y : labels in any form, default=None
            As in :meth:`fit`. Labels that were not known before become known topics, behind the older ones and before
            the free ones: a known topic keeps its name and its place for ever. If ``topics`` is given, it has to name
            them. Known topics that ``n_components`` does not count are added to it.
        sample_weight, penalties, words, callback
            As in :meth:`fit`, for the new documents and all topics.

        Returns
        -------
        self
            ``document_topics_`` holds the weights of the new documents; the history is that of all, from this call on.

        Examples
        --------
        >>> import numpy as np
        >>> from topicsteer import TSNMF
        >>> model = TSNMF().partial_fit(np.array([[3.0, 1, 0, 0], [0, 0, 2, 1]]), ["fruit", "tools"])
        >>> model.partial_fit(np.array([[2.0, 1, 0, 0], [0, 0, 0, 3]]), [None, "dishes"]).topic_names_.tolist()
        ['fruit', 'tools', 'dishes']
        """
        if not hasattr(self, "past_"):
            if hasattr(self, "components_"):
                raise ValueError("This estimator was loaded without the sums that partial_fit needs: fit it again.")
            return self.fit(X, y, sample_weight=sample_weight, penalties=penalties, words=words, callback=callback)
        if self.past_ is None:
            raise ValueError("partial_fit cannot go on after a fit with error_weight: use sample_weight there.")
        self._check_parameters()
        X = check_matrix(self, X, reset=False)
        n, t = X.shape
        old = self.n_known_
        supervision = extend(tuple(self.topic_names_[:old]), y, n, topics=self.topics, complete=self.complete)
        more = len(supervision.topics) - old
        past = self.past_.widen(old, more, 0).fade(self.forget_factor)
        d = len(past.charge)
        sample = check_sample_weight(sample_weight, n)
        weight = self._weigh(supervision, sample, *past.totals[2:])
        penalty = self._penalty(t, float(weight.sum() + past.totals[1]))
        permitted = supervision.permitted(d, self.free_in_labelled)
        self._warn_of_labels(X, supervision, permitted, old)
        soft = self._soft(penalties, n, d, X.dtype)
        chosen = Words.read(words, d, t)

        _compile(X.dtype)
        HT = np.ascontiguousarray(insert(self.components_, old, more, 0).T, dtype=X.dtype)
        if more:
            HT[:, old : old + more] = label_profiles(as_rows(X), supervision, weight)[old:].T
        positive = self.solver == "mu"
        if positive:
            HT[:, old : old + more] += 0.01 * HT.mean()
        if chosen is not None:
            chosen.seed(HT, np.ones(d, dtype=np.bool_))
        refuse_beyond_memory(n * d * X.dtype.itemsize, f"The topic weights of {n} documents and {d} topics")
        if soft is not None:  # a price is meant for rows of H of length 1
            lengths = np.maximum(np.linalg.norm(HT, axis=0), _kernels.TINY)
            HT, past = HT / lengths, past.times(lengths)
        W = np.full((n, d), float(positive), dtype=X.dtype)
        place = InMemory(cut(X, W, weight.astype(X.dtype), supervision.pattern, soft=soft))
        for block in place.blocks:
            mask_weights(block.W, block.pattern, block.soft, permitted)
            if not positive:
                solvers.transform(block, HT, permitted, penalty, self.threads)
        beside = Beside(place, past)
        share = weight.sum() / (weight.sum() + past.totals[1])  # an iteration can do no more for those that are gone
        result = factorise(
            beside,
            HT,
            permitted,
            solver=self.solver,
            penalty=penalty,
            tol=self.tol * share,
            max_iter=self.max_iter,
            threads=self.threads,
            unit=soft is not None,
            words=chosen,
            callback=_reporting(callback) if self.verbose else callback,
        )
        names = self.topic_names_.tolist()
        self.past_ = beside.conclude(_weights(supervision, sample, weight))
        self.topic_names_ = np.array([*supervision.topics, *names[old:]], dtype=object)
        self.n_known_ = len(supervision.topics)
        self._conclude(result, W)
        return self

    def transform(self, X: Any, *, penalties: Any = None) -> Array:
        """Topic weights of documents for the fitted topics; a document's weights depend on nothing but its own row.

        Labels are not looked at: for the weights of the training documents under their labels see
        ``document_topics_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_terms)
        penalties : sparse matrix or array of shape (n_documents, n_topics), default=None
            A soft mask, as in :meth:`fit`.

        Returns
        -------
        W : array of shape (n_documents, n_topics)
        """
        check_is_fitted(self)
        blocks = as_blocks(X)
        if blocks is not None:
            return np.concatenate([self.transform(block) for block in blocks if block.shape[0]])
        X = check_matrix(self, X, reset=False)
        n, d = X.shape[0], len(self.components_)
        HT = np.ascontiguousarray(self.components_.T, dtype=X.dtype)
        W = np.zeros((n, d), dtype=X.dtype)
        _compile(X.dtype)
        everything = np.ones((1, d), dtype=np.bool_)
        pattern = np.zeros(n, dtype=np.int32)
        soft = self._soft(penalties, n, d, X.dtype)
        if soft is None:
            soft = SoftMask.silent(n, X.dtype)
        else:  # a price is meant for rows of H of length 1
            soft = replace(soft, price=soft.price * np.linalg.norm(HT, axis=0)[soft.topics])
        block = Block(X.indptr.astype(np.int64), X.indices, X.data, W, np.ones(n, X.dtype), pattern, soft)
        solvers.transform(block, HT, everything, self._penalty(X.shape[1], 0.0), self.threads)
        return W

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Documents as the topics see them: W H.

        Parameters
        ----------
        X : array of shape (n_documents, n_topics)
            Topic weights.

        Returns
        -------
        X : array of shape (n_documents, n_terms)
        """
        check_is_fitted(self)
        return np.asarray(X) @ self.components_

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the topics, as strings.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : array of object (n_topics,)
        """
        check_is_fitted(self)
        return np.array([str(name) for name in self.topic_names_], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _conclude(self, result: Result, W: Any) -> None:
        self.components_ = np.ascontiguousarray(result.HT.T)
        self.document_topics_ = W
        self.objective_history_ = np.array(result.history)
        self.reconstruction_err_ = float(np.sqrt(max(result.error, 0.0)))
        self.n_iter_ = result.n_iter
        self.ended_ = result.ended
        self._warn_of_result(result.lost)

    # --- from parameters and labels to what the solver takes ---

    def _open(self, X: Any, folder: Any, full_weight: bool) -> tuple[Any, Path, Any]:
        """X as CSR, or as blocks on disk with the folder of their weights and what is to live as long as these."""
        blocks: Any = ClusterBlocks.open(X) if is_distributed(X) else as_blocks(X)
        if blocks is None:
            if folder is not None:
                raise ValueError("folder is where blocks on disk keep their weights; X is a matrix in memory.")
            return check_matrix(self, X, reset=True), Path(), None
        owner = Scratch(folder)
        path = owner.path
        if not isinstance(blocks, BlockFolder | ClusterBlocks):
            blocks = write_blocks(path / "blocks", blocks)
        if isinstance(blocks, BlockFolder):
            blocks.check()
        if isinstance(self.init, tuple) or full_weight:
            what = "init=(W, H)" if isinstance(self.init, tuple) else "error_weight, the full E,"
            raise ValueError(f"{what} needs X in memory, not in blocks.")
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = blocks.shape[1]
        return blocks, path / "weights", owner

    def _start(
        self, X: Matrix, supervision: Supervision, weight: NDArray[np.float64], d: int
    ) -> tuple[FirstWeights | None, Array]:
        """First W and Hᵀ, in X's precision."""
        n, t = X.shape
        if isinstance(self.init, str):
            first, H = start(
                as_rows(X),
                supervision,
                d,
                init=self.init,
                weight=weight,
                positive=self.solver == "mu",
                rng=check_random_state(self.random_state),
            )
            if self.warm_start and hasattr(self, "components_"):
                first, H = self._continue(first, H, n, supervision)
        else:
            W, H = check_start(self.init, n, d, t, X.dtype)
            first = W.__getitem__
        return first, np.ascontiguousarray(H.T, dtype=X.dtype)

    def _continue(
        self, first: FirstWeights | None, H: Array, n: int, supervision: Supervision
    ) -> tuple[FirstWeights | None, Array]:
        """Put the topics of the last fit into a start: known ones by name, free ones by position."""
        if self.components_.shape[1] != H.shape[1]:
            return first, H
        old_known = {name: k for k, name in enumerate(self.topic_names_[: self.n_known_])}
        pairs = [(k, old_known[name]) for k, name in enumerate(supervision.topics) if name in old_known]
        free = min(len(H) - len(supervision.topics), len(self.components_) - self.n_known_)
        pairs += [(len(supervision.topics) + k, self.n_known_ + k) for k in range(free)]
        if not pairs:
            return first, H
        new, old = np.array(pairs).T
        H[new] = self.components_[old]
        earlier = self.document_topics_
        if len(earlier) != n:
            return first, H

        def weights(rows: slice) -> Array:
            W = np.zeros((rows.stop - rows.start, len(H)), dtype=H.dtype) if first is None else first(rows)
            W[:, new] = earlier[rows][:, old]
            return W

        return weights, H

    def _count_components(self, y: Any, supervision: Supervision) -> int:
        known = len(supervision.topics)
        if self.n_components is None:
            if known == 0:
                raise ValueError(
                    "TSNMF with n_components=None requires y to be passed, but the target y is None or names no topic. "
                    "Give labels, or topics=[...], or n_components for plain NMF."
                )
            return known
        if self.n_components < known:
            message = f"n_components={self.n_components} is less than the {known} known topics"
            if self.n_components > 1 or self.topics is not None or not _is_class_vector(y):
                raise ValueError(f"{message}. Give n_components >= {known}, or None for just the known ones.")
            # scikit-learn's checks set n_components = 1 whatever classes there are, and expect a fit.
            _warn(f"{message}: all {known} are kept, and there is no free topic.")
            return known
        return int(self.n_components)

    def _weigh(
        self, supervision: Supervision, sample: NDArray[np.float64], seen: float = 0.0, marked: float = 0.0
    ) -> NDArray[np.float64]:
        """The weight e of each document; ``seen`` and ``marked`` are what all and labelled ones weighed before."""
        weight, labelled = sample.copy(), supervision.labelled
        if isinstance(self.label_weight, str):
            marked += weight[labelled].sum()
            weight[labelled] *= (seen + weight.sum()) / marked if marked else 1.0
        elif self.label_weight is not None:
            weight[labelled] *= self.label_weight
        return weight

    def _soft(self, penalties: Any, n: int, d: int, dtype: Any) -> Any:
        if isinstance(penalties, BlockFolder):
            return penalties
        prices = check_penalties(penalties, n, d)
        if prices is None:
            return None
        if self.alpha_H:
            raise ValueError("penalties keep the rows of H at length 1, so alpha_H has no meaning: leave it at 0.")
        return SoftMask.of(prices, dtype)

    def _penalty(self, n_terms: int, total_weight: float) -> Penalty:
        on_W, on_H = self.alpha_W * n_terms, self.alpha_H * total_weight
        return Penalty(
            l1_W=on_W * self.l1_ratio,
            l2_W=on_W * (1 - self.l1_ratio),
            l1_H=on_H * self.l1_ratio,
            l2_H=on_H * (1 - self.l1_ratio),
        )

    # --- checks ---

    def _check_parameters(self) -> None:
        table: list[tuple[str, bool, str]] = [
            ("n_components", self.n_components is None or _whole(self.n_components, 1), "None or an integer >= 1"),
            ("init", not isinstance(self.init, str) or self.init in INITS, f"one of {INITS} or a pair (W, H)"),
            ("solver", self.solver in RULES, f"one of {tuple(RULES)}"),
            (
                "label_weight",
                self.label_weight is None or self.label_weight == "balanced" or _number(self.label_weight),
                '"balanced", a number >= 0 or None',
            ),
            ("tol", _number(self.tol), "a number >= 0"),
            ("max_iter", _whole(self.max_iter, 0), "an integer >= 0"),
            ("forget_factor", _number(self.forget_factor) and self.forget_factor <= 1, "a number from 0 to 1"),
            ("alpha_W", _number(self.alpha_W), "a number >= 0"),
            ("alpha_H", _number(self.alpha_H), "a number >= 0"),
            ("l1_ratio", _number(self.l1_ratio) and self.l1_ratio <= 1, "a number from 0 to 1"),
            ("threads", self.threads is None or _whole(self.threads, 1), "None or an integer >= 1"),
        ]
        for name, good, expected in table:
            if not good:
                raise ValueError(f"{name} must be {expected}; got {getattr(self, name)!r}.")

    def _warn_of_labels(self, X: Matrix, supervision: Supervision, permitted: NDArray[np.bool_], old: int = 0) -> None:
        unlabelled = [supervision.topics[k] for k in np.flatnonzero(supervision.counts == 0) if k >= old]
        if unlabelled and supervision.topics:
            _warn(
                f"No document is labelled with {_listed(unlabelled)}: "
                f"{'this topic starts' if len(unlabelled) == 1 else 'these topics start'} like a free one."
            )
        spellings: dict[str, list[Any]] = {}
        for name in supervision.topics:
            spellings.setdefault(str(name).casefold(), []).append(name)
        twice = [" and ".join(map(repr, names)) for names in spellings.values() if len(names) > 1]
        if twice and not old:
            _warn(f"Topics that differ only in capital letters: {_listed(twice)}. If they are one, spell them alike.")
        empty = np.flatnonzero((row_sizes(X) == 0) & supervision.labelled)
        if empty.size:
            rows = _listed(empty.tolist())
            _warn(f"Labelled, but without any term, so of no use: document {rows} (rows counted from 0).")
        nothing = np.flatnonzero(permitted.sum(axis=1)[supervision.pattern] == 0)
        if nothing.size:
            _warn(
                f"No topic at all is permitted in document {_listed(nothing.tolist())} (rows counted from 0), so it "
                "has no weights. Add free topics (n_components), or give NaN in place of 0 where nothing is known."
            )

    def _warn_of_result(self, without_weight: Any) -> None:
        lost = self.topic_names_[without_weight].tolist()
        if lost:
            _warn(
                f"No weight is left in topic {_listed(lost)}: what its documents contain is "
                f"explained by other topics. Fewer topics{', free_in_labelled=False' * self.free_in_labelled} or other "
                "labels may help."
            )
        if self.ended_ == "interrupted":
            _warn(f"Interrupted: the estimator holds the result of iteration {self.n_iter_}, the last complete one.")
        elif self.ended_ == "max_iter" and self.tol > 0 and self.max_iter > 0:
            warnings.warn(
                f"The objective still fell by more than tol={self.tol:g} in iteration {self.n_iter_}; "
                "raise max_iter for a closer fit.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _weights(supervision: Supervision, sample: Array, weight: Array) -> tuple[float, float, float]:
    """What `topicsteer.nmf.statistics.Past` has to know of the weights of some documents."""
    return float(weight.sum()), float(sample.sum()), float(sample[supervision.labelled].sum())


def _is_class_vector(y: Any) -> bool:
    """Whether the labels are nameless numbers, as scikit-learn passes them round."""
    return isinstance(y, np.ndarray) and y.ndim == 1 and np.issubdtype(y.dtype, np.number)


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def _number(value: Any) -> bool:
    return isinstance(value, Real) and np.isfinite(float(value)) and float(value) >= 0


def _listed(names: Sequence[Any]) -> str:
    """Up to eight names in a row."""
    return ", ".join(map(str, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)


def _reporting(callback: Callback | None) -> Callback:
    """Print a line an iteration, then call the user's callback."""

    def report(iteration: int, objective: float, seconds: float) -> object:
        print(f"iteration {iteration:4d}   objective {objective:.6g}   {seconds:.1f} s")
        return callback(iteration, objective, seconds) if callback is not None else None

    return report


def _compile(dtype: Any) -> None:
    """Compile the kernels where this has not been done, with a word to the user when it takes long."""
    if _kernels.compiled(dtype):
        return
    message = "topicsteer: compiling its kernels, once after installation; this takes some seconds ..."
    timer = threading.Timer(1.0, print, args=(message,), kwargs={"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        _kernels.prepare(dtype)
    finally:
        timer.cancel()
