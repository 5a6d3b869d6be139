"""TSNMF: topic-supervised NMF as a scikit-learn estimator."""

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from topicsteer.backends import block_penalties, matrix_of, stored_rows, with_penalties
from topicsteer.backends.block_folder import as_blocks
from topicsteer.backends.memory import MemoryRows
from topicsteer.labels.forms import extend, supervise
from topicsteer.labels.supervision import Supervision
from topicsteer.nmf import checks, kernels
from topicsteer.nmf.blocks import Block, Penalties, RowConstraints
from topicsteer.nmf.loop import Callback, factorise, transform
from topicsteer.nmf.protocols import FirstWeights, Problem, Rows
from topicsteer.nmf.rules import RULES, Regularisation
from topicsteer.nmf.scale import Scale, downscaled, reporting, upscaled
from topicsteer.nmf.start import label_profiles, ones, start
from topicsteer.nmf.statistics import History, WithHistory, insert
from topicsteer.nmf.stopping import pace_of
from topicsteer.nmf.term_constraints import TermConstraints
from topicsteer.system.files import Scratch
from topicsteer.system.renamed import Renamed, renamed_arguments
from topicsteer.system.types import Array
from topicsteer.system.warn import warn_user

# Settings that may change when an interrupted fit resumes.
CHANGEABLE_SETTINGS = ("tol", "max_iter", "threads", "verbose")


class TSNMF(TransformerMixin, BaseEstimator):
    """Topic-supervised non-negative matrix factorisation.

    Factorises documents × terms as ``X ≈ (W∘L) H`` with ``W, H ≥ 0``. The mask ``L`` forbids a labelled document every
    known topic that is not among its labels (MacMillan & Wilson, 2017). Without labels this is plain NMF.

    The objective is ``D = Σ_ij E_ij (X - WH)²_ij``, where row i of ``E`` is the weight of document i. The paper
    prints E inside the norm, which would weight the squared error by E², but its update rules minimise this D.

    Parameters
    ----------
    n_components : int, default=None
        Number of topics. Topics beyond the known ones are free topics. None: only the known topics.
    topics : sequence of str or int, default=None
        Names and order of the known topics; topics without labels are allowed. Default: the names in ``y``, sorted.
    complete : bool, default=True
        Whether the labels of a document are complete. True: its other known topics are forbidden. False: they may
        occur too.
    free_in_labelled : bool, default=True
        Whether labelled documents may use free topics. False, as in the authors' code: they consist of their known
        topics only, so shared background vocabulary ends up in the known topics.
    init : {"labels", "acol", "random", "nndsvd"} or tuple (W, H), default="labels"
        "labels": each known topic starts as the mean of its documents, the others by Random Acol. "acol": all topics
        are means of random documents and W is uniform, as in the paper. "random": both are uniform. "nndsvd": by SVD;
        each known topic starts from the component most similar to its documents.
    solver : {"hals", "mu"}, default="hals"
        "hals": coordinate descent. "mu": the paper's multiplicative rules, exactly.
    label_weight : "balanced", float or None, default="balanced"
        Factor on the weight of labelled documents. "balanced": the inverse of the labelled share, as in the paper.
        None: 1.
    tol : float or "auto", default="auto"
        Stop when an iteration lowers the objective by no more than this share. "auto": 1e-4, and 0.02 for a fit with
        labels by coordinate descent without penalties. Further iterations lower the objective there, but the known
        topics move away from their labels, and are found less well in the other documents. Set 1e-4 for the minimum.
    max_iter : int, default=200
        Maximum number of iterations.
    alpha_W, alpha_H : float, default=0
        Strength of the penalties on W and H, scaled as in scikit-learn's NMF: by the number of terms for W, and by the
        total weight of the documents for H. The weight of a document multiplies its penalty as well as its error.
    l1_ratio : float, default=0
        Mix of the penalties: 0 is on squares only (L2), 1 on absolute values only (L1).
    warm_start : bool, default=False
        Whether to start from the last fit. Known topics are matched by name, free topics by position.
    forget_factor : float, default=1.0
        Factor on the weight of earlier documents at each :meth:`partial_fit`. 1 forgets nothing; 0 keeps only the
        topics.
    threads : int, default=None
        Number of threads; None = all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed for Random Acol, uniform starts and the SVD.
    verbose : int, default=0
        1 prints one line per iteration.

    Attributes
    ----------
    components_ : array (n_topics, n_features)
        H, the terms of each topic.
    document_topics_ : array (n_documents, n_topics)
        W of the training documents, exactly 0 where a label forbids the topic. After a fit to blocks it is on disk:
        ``document_topics_[rows]`` reads some rows, ``np.asarray(document_topics_)`` all.
    topic_names_ : array of object (n_topics,)
        Known topics in order, then "free 1", "free 2", ...
    n_known_ : int
        Number of known topics; they come first.
    objective_history_ : array (n_iter_ + 1,)
        D plus penalties, at the start and after each iteration; it never rises.
    reconstruction_err_ : float
        Square root of the weighted squared error Σ E (X - WH)².
    n_iter_ : int
        Number of iterations.
    ended_ : str
        Why the fit ended: "tol", "max_iter", "callback" or "interrupted".
    history_ : History
        Sufficient statistics of all documents so far, which :meth:`partial_fit` continues from; see
        `topicsteer.nmf.statistics`.
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

    history_: History | None
    past_ = Renamed("history_")

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
        tol: float | str = "auto",
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

    @renamed_arguments(words="term_constraints")
    def fit(
        self,
        X: object,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        error_weight: object = None,
        penalties: object = None,
        term_constraints: object = None,
        folder: str | os.PathLike[str] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Factorise X under the labels y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_terms), or blocks of its rows
            Non-negative; float32 and float64 are kept, anything else becomes float64. A matrix larger than memory is
            passed in blocks: a :class:`~topicsteer.backends.block_folder.BlockFolder`, the path of one, or an iterable
            of sparse matrices, which are written to disk. W is then on disk as well.
        y : labels in any form, default=None
            One label or list of labels per document (None, NaN or -1 = unlabelled), a dict ``{row: labels}``, or an
            indicator matrix. The entries of an indicator matrix are 1 (permitted), 0 (forbidden) or NaN (unknown).
        sample_weight : array of shape (n_documents,), default=None
            Weight of each document, multiplied by its label weight.
        error_weight : array or sparse matrix of shape (n_documents, n_terms), default=None
            The paper's full E, multiplied by the weights of documents. It needs ``solver="mu"``. In a sparse matrix,
            entries that are not stored have weight 0.
        penalties : sparse matrix or array of shape (n_documents, n_topics), default=None
            Penalty P on the weight w of each topic in each document: the fit minimises ``D + 2 Σ P w``, with rows of H
            of length 1. Infinity forbids a topic. A non-empty row of a sparse matrix permits only the topics it stores;
            a stored 0 is no penalty. An empty row restricts nothing. Labels hold in any case. The weight of a document
            multiplies its penalty as well as its error.
        term_constraints : sparse matrix or array of shape (n_topics or fewer, n_terms), default=None
            A positive entry pins a term to a topic: the topic starts with it, and it weighs at least as much as the
            topic's tenth term, which may raise the objective a little. A negative entry bans a term: its entry of H
            stays 0.
        folder : path, default=None
            Folder for the weights of blocks. An interrupted fit resumes from its last complete iteration if it is
            called again with the same data and folder. Default: a temporary folder, deleted with the estimator.
        callback : callable, default=None
            Called as ``callback(iteration, objective, seconds)`` after each iteration; return True to stop.

        Returns
        -------
        self
        """
        checks.check_settings(self.get_params())
        rows, scratch, scale = self._open(X, folder, error_weight is not None, penalties is not None)
        supervision = supervise(y, rows.shape[0], topics=self.topics, complete=self.complete)
        d, known = self._count_components(y, supervision), len(supervision.topics)
        problem = self._problem(rows, supervision, d, sample_weight, penalties, term_constraints)
        problem = replace(problem, E=checks.check_error_weight(error_weight, rows, self.solver))
        kernels.announce(rows.dtype)
        first, HT = self._start(problem, scale)
        if problem.term_constraints is not None:
            problem.term_constraints.seed(HT, np.pad(supervision.counts > 0, (0, d - known)))
        free = [f"free {k + 1}" for k in range(d - known)]
        self._solve(replace(problem, first=first, HT=HT), free, scratch, callback, scale)
        if self.history_ is not None:  # W belongs to this H, so its scale is 1 from now on
            self.history_ = replace(self.history_, scale=np.ones(d))
        return self

    @renamed_arguments(words="term_constraints")
    def partial_fit(
        self,
        X: object,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        penalties: object = None,
        term_constraints: object = None,
        callback: Callback | None = None,
    ) -> Self:
        """Update the topics with new documents; the first call, without an earlier fit, is a fit.

        Only sufficient statistics of earlier documents are kept (``history_``), with their last weights. Each call
        multiplies them by ``forget_factor``, then solves the weights of the new documents and improves the topics for
        all documents. A document that is passed twice counts twice.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_terms)
            The new documents, with the terms of the earlier ones.
        y : labels in any form, default=None
            As in :meth:`fit`. New labels become known topics, after the older known topics and before the free topics;
            a known topic never changes its name or number. If ``topics`` is set, it must contain them. New known topics
            are added to the number of topics.
        sample_weight, penalties, term_constraints, callback
            As in :meth:`fit`, for the new documents and all topics.

        Returns
        -------
        self
            ``document_topics_`` holds the weights of the new documents only, and ``objective_history_`` begins with
            this call.

        Examples
        --------
        >>> import numpy as np
        >>> from topicsteer import TSNMF
        >>> model = TSNMF().partial_fit(np.array([[3.0, 1, 0, 0], [0, 0, 2, 1]]), ["fruit", "tools"])
        >>> model.partial_fit(np.array([[2.0, 1, 0, 0], [0, 0, 0, 3]]), [None, "dishes"]).topic_names_.tolist()
        ['fruit', 'tools', 'dishes']
        """
        if not hasattr(self, "history_"):
            if hasattr(self, "components_"):
                raise ValueError("This estimator was loaded without the history that partial_fit needs: fit it again.")
            return self.fit(
                X,
                y,
                sample_weight=sample_weight,
                penalties=penalties,
                term_constraints=term_constraints,
                callback=callback,
            )
        if self.history_ is None:
            raise ValueError(
                "partial_fit cannot follow a fit with error_weight or to X of an extreme scale: fit again."
            )
        checks.check_settings(self.get_params())
        rows = MemoryRows(checks.check_matrix(self, X, reset=False))
        Scale.of(float(rows.matrix.data.max(initial=0))).refuse(
            "partial_fit cannot add it to the sums of earlier documents"
        )
        old, names = self.n_known_, self.topic_names_.tolist()
        supervision = extend(names[:old], y, rows.shape[0], topics=self.topics, complete=self.complete)
        more = len(supervision.topics) - old
        history = self.history_.widen(old, more, 0).fade(self.forget_factor)
        d = len(history.penalty)
        problem = self._problem(rows, supervision, d, sample_weight, penalties, term_constraints, history, old)
        kernels.announce(rows.dtype)
        HT = np.ascontiguousarray(insert(self.components_, old, more, 0).T, dtype=rows.dtype)
        if more:
            HT[:, old : old + more] = label_profiles(rows, supervision, problem.weight)[old:].T
        positive = RULES[self.solver].multiplicative
        if positive:
            HT[:, old : old + more] += 0.01 * HT.mean()
        if problem.term_constraints is not None:
            problem.term_constraints.seed(HT, np.ones(d, dtype=np.bool_))
        if problem.penalties is not None:  # penalties are defined for rows of H of length 1
            lengths = np.maximum(np.linalg.norm(HT, axis=0), kernels.TINY)
            HT, history = HT / lengths, history.times(lengths)
        solved = partial(self._weights, rows, HT, problem.permitted, problem.constraints(0))
        first = partial(ones, d, rows.dtype) if positive else lambda _: solved()
        self._solve(replace(problem, history=history, HT=HT, first=first), names[old:], None, callback)
        return self

    def transform(self, X: object, *, penalties: object = None) -> Array:
        """Topic weights of documents for the fitted topics. The weights of a document depend on its own row only.

        Labels are not used; ``document_topics_`` holds the weights of the training documents under their labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_terms)
        penalties : sparse matrix or array of shape (n_documents, n_topics), default=None
            As in :meth:`fit`.

        Returns
        -------
        W : array of shape (n_documents, n_topics)
        """
        check_is_fitted(self)
        blocks = as_blocks(X)
        if blocks is not None:
            pairs = with_penalties(blocks, penalties, len(self.components_))
            return np.concatenate([self.transform(block, penalties=own) for block, own in pairs if block.shape[0]])
        penalised = self._has_scale or penalties is not None
        X, scale = downscaled(checks.check_matrix(self, matrix_of(X), reset=False), penalised)
        rows = MemoryRows(X)
        n, d = rows.shape[0], len(self.components_)
        HT = np.ascontiguousarray(self.components_.T, dtype=rows.dtype)
        of_H = Scale() if penalised else Scale.of(float(HT.max(initial=0)))
        HT = of_H.down(HT)
        kernels.announce(rows.dtype)
        masks = self._masks(penalties, rows, d)
        own = Penalties.none(n, rows.dtype) if masks is None else masks(0)
        if masks is not None:  # penalties are defined for rows of H of length 1
            own = replace(own, values=own.values * np.linalg.norm(HT, axis=0)[own.topics])
        known = RowConstraints(np.ones(n, dtype=rows.dtype), np.zeros(n, dtype=np.int32), own)
        W = self._weights(rows, HT, np.ones((1, d), dtype=np.bool_), known)
        return Scale(scale.exponent - of_H.exponent).up(W)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Reconstruct documents from topic weights: W H.

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

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
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

    # --- from parameters and labels to a problem ---

    def _open(
        self, X: object, folder: str | os.PathLike[str] | None, full_weight: bool, penalised: bool
    ) -> tuple[Rows, Scratch | None, Scale]:
        """The rows of X, divided by their scale, with a folder for their weights; None for a matrix in memory."""
        stored = stored_rows(X, folder)
        if stored is None:
            X, scale = downscaled(checks.check_matrix(self, matrix_of(X), reset=True), self._has_scale or penalised)
            return MemoryRows(X), None if folder is None else Scratch(folder), scale
        if isinstance(self.init, tuple) or full_weight:
            option = "init=(W, H)" if isinstance(self.init, tuple) else "error_weight, the full E,"
            raise ValueError(f"{option} needs X in memory, not in blocks.")
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = stored[0].shape[1]
        return *stored, Scale()

    @property
    def _has_scale(self) -> bool:
        """Whether the parameters are relative to the scale of X."""
        return bool(self.alpha_W or self.alpha_H)

    def _problem(
        self,
        rows: Rows,
        supervision: Supervision,
        d: int,
        sample_weight: ArrayLike | None,
        penalties: object,
        term_constraints: object,
        history: History | None = None,
        old: int = 0,
    ) -> Problem:
        """The problem without its start; ``old`` topics are known from earlier fits."""
        n, t = rows.shape
        _, before, *seen = np.zeros(4) if history is None else history.totals
        sample = checks.check_sample_weight(sample_weight, n)
        weight = self._weigh(supervision, sample, *seen)
        totals = float(weight.sum()), float(sample.sum()), float(sample[supervision.labelled].sum())
        permitted = supervision.permitted(d, self.free_in_labelled)
        checks.warn_of_labels(rows, supervision, permitted, old, guided=penalties is not None)
        return Problem(
            rows,
            supervision,
            permitted,
            weight,
            totals,
            self._regularisation(t, float(totals[0] + before)),
            history,
            penalties=self._masks(penalties, rows, d),
            term_constraints=TermConstraints.read(term_constraints, d, t),
            settings={k: v for k, v in self.get_params().items() if k not in CHANGEABLE_SETTINGS}
            | {"term_constraints": term_constraints},
        )

    def _solve(
        self,
        problem: Problem,
        free: Sequence[str],
        scratch: Scratch | None,
        callback: Callback | None,
        scale: Scale = Scale(),  # noqa: B008
    ) -> None:
        """Factorise, and set the fitted attributes."""
        pace = pace_of(self.tol, problem, self.solver)
        backend = problem.rows.backend(problem, scratch)
        joined = WithHistory(
            backend, problem.history or History.empty(len(problem.HT), problem.HT.shape[1], problem.rows.dtype)
        )
        result = factorise(
            joined,
            problem.HT if backend.earlier is None else backend.earlier.HT,
            problem.permitted,
            solver=self.solver,
            regularisation=problem.regularisation,
            tol=pace.tol * problem.share,  # an iteration cannot improve earlier documents
            max_iter=self.max_iter,
            threads=self.threads,
            opening=pace.opening,
            unit=problem.penalties is not None,
            term_constraints=problem.term_constraints,
            earlier=backend.earlier,
            callback=reporting(callback, scale, bool(self.verbose)) if self.verbose or scale else callback,
        )
        self.history_ = None if problem.E is not None or scale else joined.conclude(problem.totals)
        self.topic_names_ = np.array([*problem.supervision.topics, *free], dtype=object)
        self.n_known_ = len(problem.supervision.topics)
        self.document_topics_, self.components_ = upscaled(scale, backend.weights(), np.ascontiguousarray(result.HT.T))
        self.objective_history_ = scale.up(np.array(result.objectives), 2)
        self.reconstruction_err_ = float(scale.up(np.sqrt(max(result.error, 0.0))))
        self.n_iter_ = result.n_iter
        self.ended_ = result.ended
        lost = [] if result.lost is None else self.topic_names_[checks.unexpected(problem, result.lost)].tolist()
        checks.warn_of_result(result, lost, tol=pace.tol, free_in_labelled=self.free_in_labelled)

    def _weights(self, rows: MemoryRows, HT: Array, permitted: NDArray[np.bool_], known: RowConstraints) -> Array:
        """The W of documents for a fixed H."""
        W = np.zeros((rows.shape[0], HT.shape[1]), dtype=rows.dtype)
        transform(
            Block.of(rows.matrix, W, known), HT, permitted, self._regularisation(rows.shape[1], 0.0), self.threads
        )
        return W

    def _start(self, problem: Problem, scale: Scale) -> tuple[FirstWeights | None, Array]:
        """Starting W and Hᵀ, in the precision of X."""
        rows, d = problem.rows, problem.permitted.shape[1]
        first: FirstWeights | None
        if isinstance(self.init, str):
            rng = check_random_state(self.random_state)
            first, H = start(problem, self.init, positive=RULES[self.solver].multiplicative, rng=rng)
            if self.warm_start and hasattr(self, "components_"):
                first, H = self._continue(first, H, rows.shape[0], problem.supervision, scale)
        else:
            W, H = checks.check_start(self.init, rows, d)
            H = scale.down(H)
            first = W.__getitem__
        return first, np.ascontiguousarray(H.T, dtype=rows.dtype)

    def _continue(
        self, first: FirstWeights | None, H: Array, n: int, supervision: Supervision, scale: Scale
    ) -> tuple[FirstWeights | None, Array]:
        """Copy the topics of the last fit into a start: known topics by name, free topics by position."""
        if self.components_.shape[1] != H.shape[1]:
            return first, H
        old_known = {name: k for k, name in enumerate(self.topic_names_[: self.n_known_])}
        pairs = [(k, old_known[name]) for k, name in enumerate(supervision.topics) if name in old_known]
        free = min(len(H) - len(supervision.topics), len(self.components_) - self.n_known_)
        pairs += [(len(supervision.topics) + k, self.n_known_ + k) for k in range(free)]
        if not pairs:
            return first, H
        new, old = np.array(pairs).T
        H[new] = scale.down(self.components_[old])
        earlier = self.document_topics_
        if len(earlier) != n:
            return first, H

        def weights(rows: slice) -> Array:
            W = np.zeros((rows.stop - rows.start, len(H)), dtype=H.dtype) if first is None else first(rows)
            W[:, new] = earlier[rows][:, old]
            return W

        return weights, H

    def _count_components(self, y: object, supervision: Supervision) -> int:
        known = len(supervision.topics)
        if self.n_components is None:
            if known == 0:
                raise ValueError(
                    "TSNMF with n_components=None requires y to be passed, but the target y is None or names no topic. "
                    "Pass labels, or set topics=[...], or set n_components for plain NMF."
                )
            return known
        if self.n_components < known:
            message = f"n_components={self.n_components} is less than the {known} known topics"
            if self.n_components > 1 or self.topics is not None or not checks.is_class_vector(y):
                raise ValueError(f"{message}. Use n_components >= {known}, or None for the known topics only.")
            # scikit-learn's checks set n_components = 1 for any number of classes, and expect a fit.
            warn_user(f"{message}: all {known} are kept, and there are no free topics.")
            return known
        return int(self.n_components)

    def _weigh(
        self, supervision: Supervision, sample: NDArray[np.float64], seen: float = 0.0, marked: float = 0.0
    ) -> NDArray[np.float64]:
        """The weight e of each document: its sample weight times its label weight.

        ``seen`` and ``marked`` are the sample weights of all earlier documents and of the labelled ones.
        """
        weight, labelled = sample.copy(), supervision.labelled
        if isinstance(self.label_weight, str):
            marked += weight[labelled].sum()
            weight[labelled] *= (seen + weight.sum()) / marked if marked else 1.0
        elif self.label_weight is not None:
            weight[labelled] *= self.label_weight
        return weight

    def _masks(self, penalties: object, rows: Rows, d: int) -> Callable[[int], Penalties] | None:
        masks = block_penalties(penalties, rows, d)
        if masks is not None and self.alpha_H:
            raise ValueError("penalties keep the rows of H at length 1, so alpha_H has no effect: leave it at 0.")
        return masks

    def _regularisation(self, n_terms: int, total_weight: float) -> Regularisation:
        on_W, on_H = self.alpha_W * n_terms, self.alpha_H * total_weight
        return Regularisation(
            l1_W=on_W * self.l1_ratio,
            l2_W=on_W * (1 - self.l1_ratio),
            l1_H=on_H * self.l1_ratio,
            l2_H=on_H * (1 - self.l1_ratio),
        )
