"""TSNMF: topic-supervised NMF as a scikit-learn estimator."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from topicsteer.backends import block_penalties, stored_rows
from topicsteer.backends.block_folder import as_blocks
from topicsteer.backends.in_memory import MemoryRows
from topicsteer.labels.forms import extend, supervise
from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.blocks import canonical, check_scale
from topicsteer.nmf.factorisation import begin, go_on, solve, start
from topicsteer.nmf.loop import Callback
from topicsteer.nmf.protocols import History, Parameters, Problem, Rows, TermConstraints, regularisation_of
from topicsteer.nmf.solvers import RULES, check_settings
from topicsteer.nmf.weights import many_weights
from topicsteer.system.arrays import checked_csr, unmasked
from topicsteer.system.failures import warn_user
from topicsteer.system.files import Scratch
from topicsteer.system.memory import refuse_beyond_memory
from topicsteer.system.types import Array


class TSNMF(Parameters, TransformerMixin, BaseEstimator):
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
    init : {"labels", "authors", "acol", "random"} or tuple (W, H), default="labels"
        "labels": each known topic starts as the mean of its documents, the others by Random Acol. "acol": all topics
        are means of random documents and W is uniform, as in the text of the paper. "random": both are uniform.
        "authors": each topic is the plain mean of its labelled documents, or of 20 random ones, and W is uniform, as in
        the authors' program. The numbers in the paper have ``solver="mu", init="authors", tol="authors", max_iter=30``.
    solver : {"hals", "mu"}, default="hals"
        "hals": coordinate descent. "mu": the paper's multiplicative rules, exactly.
    label_weight : "balanced", float or None, default="balanced"
        Factor on the weight of labelled documents. "balanced": the inverse of the labelled share, as in the paper.
        None: 1.
    tol : float, "auto" or "authors", default="auto"
        Stop when an iteration lowers the objective by no more than this share. "auto": 1e-4, and 0.02 for a fit with
        labels by coordinate descent without penalties. Further iterations lower the objective there, but the known
        topics move away from their labels, and are found less well in the other documents. Set 1e-4 for the minimum.
        "authors": stop when ``‖X - WH‖``, without weights, falls by no more than 1e-4 of its value.
    max_iter : int, default=200
        Maximum number of iterations.
    alpha_W, alpha_H : float, default=0
        Strength of the penalties on W and H, scaled as in scikit-learn's NMF: by the number of terms for W, and by the
        total weight of the documents for H. The weight of a document multiplies its penalty as well as its error.
    l1_ratio : float, default=0
        Mix of the penalties: 0 is on squares only (L2), 1 on absolute values only (L1).
    threads : int, default=None
        Number of threads; None = all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed for Random Acol, uniform starts and the SVD.

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
        `topicsteer.nmf.protocols`.
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
            Weight of each document, multiplied by its label weight. The largest is between 1e-6 and 1e12.
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
            Folder for the weights of blocks. Default: a temporary folder, deleted after the fit. The weights stay
            readable.
        callback : callable, default=None
            Called as ``callback(iteration, objective, seconds)`` after each iteration; return True to stop.

        Returns
        -------
        self
        """
        check_settings(self.get_params())
        rows, scratch = self._open(X, folder, error_weight is not None)
        supervision = supervise(y, rows.shape[0], topics=self.topics, complete=self.complete)
        free = self._count_components(y, supervision) - len(supervision.topics)
        problem = self._problem(
            rows, supervision, [f"free {k + 1}" for k in range(free)], sample_weight, penalties, term_constraints
        )
        problem = replace(problem, E=check_error_weight(error_weight, rows, self.solver))
        first, H = start(problem)
        self._solve(begin(problem, first, H), scratch, callback)
        if self.history_ is not None:  # W belongs to this H, so its scale is 1 from now on
            self.history_ = replace(self.history_, scale=np.ones(problem.n_topics))
        return self

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
        solves the weights of the new documents and improves the topics for all documents. A document that is passed
        twice counts twice.

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
            raise ValueError("partial_fit cannot follow a fit with error_weight: fit again.")
        check_settings(self.get_params())
        rows = MemoryRows(check_matrix(self, X, reset=False))
        old, names = self.n_known_, self.topic_names_.tolist()
        supervision = extend(names[:old], y, rows.shape[0], topics=self.topics, complete=self.complete)
        more = len(supervision.topics) - old
        history = self.history_.widen(old, more, 0)
        problem = self._problem(rows, supervision, names[old:], sample_weight, penalties, term_constraints)
        problem = replace(problem, history=history, old=old)
        self._solve(go_on(problem, self.components_), None, callback)
        return self

    def transform(self, X: object) -> Array:
        """Topic weights of documents for the fitted topics. The weights of a document depend on its own row only.

        Labels are not used; ``document_topics_`` holds the weights of the training documents under their labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_terms), or blocks of its rows

        Returns
        -------
        W : array of shape (n_documents, n_topics)
        """
        check_is_fitted(self)
        blocks = as_blocks(X)
        if blocks is not None:
            return np.concatenate([self.transform(block) for block in blocks if block.shape[0]])
        matrix = check_matrix(self, X, reset=False)
        return many_weights(matrix, self.components_, None, regularisation_of(self, matrix.shape[1]), self.threads)

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
        return np.asarray(unmasked(X, "X")) @ self.components_

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

    def _open(self, X: object, folder: str | os.PathLike[str] | None, full_weight: bool) -> tuple[Rows, Scratch | None]:
        """Return the rows of X and a folder for their weights; None for a matrix in memory."""
        stored = stored_rows(X, folder)
        if stored is None:
            return MemoryRows(check_matrix(self, X, reset=True)), None
        if isinstance(self.init, tuple) or full_weight:
            option = "init=(W, H)" if isinstance(self.init, tuple) else "error_weight, the full E,"
            raise ValueError(f"{option} needs X in memory, not in blocks.")
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = stored[0].shape[1]
        return stored

    def _problem(
        self,
        rows: Rows,
        supervision: Supervision,
        free: Sequence[str],
        sample_weight: ArrayLike | None,
        penalties: object,
        term_constraints: object,
    ) -> Problem:
        """The problem without its start."""
        n, t = rows.shape
        d = len(supervision.topics) + len(free)
        return Problem(
            rows,
            supervision,
            free,
            parameters=self,
            sample_weight=check_sample_weight(sample_weight, n),
            penalties=block_penalties(penalties, rows, d),
            term_constraints=TermConstraints.read(term_constraints, d, t),
        )

    def _solve(self, problem: Problem, scratch: Scratch | None, callback: Callback | None) -> None:
        """Factorise, and set the fitted attributes."""
        result = solve(problem, scratch, callback)
        self.history_ = result.history
        self.topic_names_ = np.array([*problem.names, None], dtype=object)[:-1]  # names may be tuples
        self.n_known_ = len(problem.supervision.topics)
        self.document_topics_ = result.weights
        self.components_ = result.components
        self.objective_history_ = np.array(result.objectives)
        self.reconstruction_err_ = result.plain["error"]
        self.n_iter_ = result.n_iter
        self.ended_ = result.ended

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
            class_vector = isinstance(y, np.ndarray) and y.ndim == 1 and np.issubdtype(y.dtype, np.number)
            if self.n_components > 1 or self.topics is not None or not class_vector:
                raise ValueError(f"{message}. Use n_components >= {known}, or None for the known topics only.")
            # scikit-learn's checks set n_components = 1 for any number of classes, and expect a fit.
            warn_user(f"{message}: all {known} are kept, and there are no free topics.")
            return known
        return int(self.n_components)


def check_matrix(estimator: object, X: Any, *, reset: bool) -> sp.csr_array:
    """Return X as a finite, non-negative CSR with sorted 32-bit columns; the estimator records its features."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], str):
        raise ValueError(
            f"X holds texts, but {type(estimator).__name__} takes a matrix of documents and terms. Use TopicModel, "
            "or vectorise the texts first: make_pipeline(TfidfVectorizer(), TSNMF())."
        )
    if not sp.issparse(X) and len(getattr(X, "shape", ())) == 2:
        refuse_beyond_memory(X.shape[0] * X.shape[1] * 8, f"X is dense and, with {X.shape[0]} × {X.shape[1]} entries,")
    X = checked_csr(X) if sp.issparse(X) else unmasked(X, "X")
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    X = sp.csr_array(X)
    if X.nnz and not (X.data.min() >= 0 and X.data.max() < np.inf):  # NaN fails both
        raise ValueError(_bad_entry(X, type(estimator).__name__))
    check_scale(float(X.data.max(initial=0)))
    X = canonical(X)
    X.indices = X.indices.astype(np.int32, copy=False)
    return X


def _bad_entry(X: sp.csr_array, name: str) -> str:
    """A message that locates the first bad entry; it begins with scikit-learn's wording, as its checks require."""
    bad, problem = ~np.isfinite(X.data), "Input X contains NaN or infinity."
    if not bad.any():
        bad, problem = X.data < 0, f"Negative values in data passed to {name}."
    first = int(np.argmax(bad))
    row = int(np.searchsorted(X.indptr, first, side="right")) - 1
    return (
        f"{problem} The first of {bad.sum()} is {X.data[first]:g} in row {row}, column {X.indices[first]}. "
        "Counts or weights must be finite and not negative: remove or repair these entries."
    )


def check_sample_weight(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """One weight per document, in a new array."""
    given = np.ones(n) if sample_weight is None else unmasked(sample_weight, "sample_weight")
    weight = np.array(given, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}; expected one number per document, {(n,)}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite and not negative, with at least one value above zero.")
    check_scale(float(weight.max()), "sample_weight")
    return weight


def check_error_weight(error_weight: object, X: Rows, solver: str) -> sp.csr_array | Array | None:
    """The full E in the precision of X, or None."""
    if error_weight is None:
        return None
    if not RULES[solver].multiplicative:
        raise ValueError(
            'error_weight, the full E, needs solver="mu". For one weight per document: sample_weight or label_weight.'
        )
    given = unmasked(error_weight, "error_weight")
    E = checked_csr(given, "error_weight") if sp.issparse(given) else np.asarray(given)
    if E.shape != X.shape:
        raise ValueError(f"error_weight has shape {E.shape}; expected the shape of X, {X.shape}.")
    entries = np.asarray(E.data if sp.issparse(E) else E)
    if not (np.isfinite(entries).all() and (entries >= 0).all()):
        raise ValueError("error_weight has negative, NaN or infinite entries.")
    check_scale(float(entries.max(initial=0)), "error_weight")
    return E.astype(X.dtype, copy=False)
