import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import scipy.sparse as sp
from problems import make_problem
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from topicsteer import TSNMF, corpora
from topicsteer.labels.forms import supervise
from topicsteer.metrics import average_precision
from topicsteer.nmf.blocks import Penalties
from topicsteer.nmf.solvers import Regularisation
from topicsteer.nmf.weights import many_weights
from topicsteer.text import TextVectorizer


@pytest.mark.filterwarnings("ignore")  # the checks fit tiny, odd data
@parametrize_with_checks([TSNMF(), TSNMF(solver="mu"), TSNMF(alpha_W=1e-3, alpha_H=1e-3, l1_ratio=0.5)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def mask(y, known=4, d=6):
    L = np.ones((len(y), d), bool)
    for i, labels in enumerate(y):
        if labels:
            L[i, :known] = False
            L[i, labels] = True
    return L


@pytest.mark.parametrize("solver", ["hals", "mu"])
@pytest.mark.parametrize("init", ["labels", "authors", "acol", "random"])
def test_labelled_documents_have_no_forbidden_topics(problem, solver, init):
    X, y, _ = problem
    model = TSNMF(6, solver=solver, init=init, random_state=0, max_iter=40, tol=0).fit(X, y)
    W = model.document_topics_
    assert (W[~mask(y)] == 0).all()
    assert (W >= 0).all()
    assert (np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0]).all()
    assert len(model.objective_history_) == model.n_iter_ + 1 > 10
    assert W.any(axis=0).all()


@pytest.mark.parametrize("weighting", ["none", "rows", "full"])
def test_the_authors_program_and_its_slow_twin_agree(weighting):
    X, y, L = make_problem(3, density=0.1, labelled=0.1)
    labelled = np.array([bool(labels) for labels in y])
    rows = np.where(labelled & (weighting == "rows"), len(y) / labelled.sum(), 1.0)[:, None]
    full = np.random.default_rng(2).random(X.shape) if weighting == "full" else np.ones(X.shape)
    options = {"init": "authors", "solver": "mu", "random_state": 5, "max_iter": 30}
    options["label_weight"] = "balanced" if weighting == "rows" else None
    weights = {"error_weight": full} if weighting == "full" else {}
    model = TSNMF(6, tol=0, **options).fit(X, y, **weights)
    rng = np.random.RandomState(5)
    W, H, iterations = reference.authors(X.toarray(), y, L, rows * full, rng, 30, tol=-np.inf)
    assert model.n_iter_ == iterations == 30
    assert (H == 0).any()  # zeros of the start stay
    np.testing.assert_allclose(model.document_topics_, W, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.components_, H, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("label_weight", ["balanced", None])
def test_the_authors_program_ends_by_the_norm_without_weights(label_weight):
    ends = []
    for seed in range(4):
        X, y, L = make_problem(seed, labelled=0.05)
        labelled = np.array([bool(labels) for labels in y])
        E = np.where(labelled, len(y) / labelled.sum() if label_weight else 1.0, 1.0)[:, None] * np.ones(X.shape)
        options = {
            "init": "authors",
            "tol": "authors",
            "solver": "mu",
            "random_state": seed,
            "label_weight": label_weight,
        }
        model = TSNMF(6, max_iter=2000, **options).fit(X, y)
        _, H, iterations = reference.authors(X.toarray(), y, L, E, np.random.RandomState(seed), 2000)
        assert model.n_iter_ == iterations
        assert model.ended_ == "tol"
        np.testing.assert_allclose(model.components_, H, rtol=1e-8, atol=1e-10)
        ends.append(iterations)
    assert len(set(ends)) > 1


def test_fitted_attributes(problem):
    X, y, L = problem
    model = TSNMF(6, random_state=0).fit(X, y)
    assert model.components_.shape == (6, 40)
    assert model.topic_names_.tolist() == [0, 1, 2, 3, "free 1", "free 2"]
    assert model.n_known_ == 4
    assert model.n_features_in_ == 40
    labelled = np.array([bool(labels) for labels in y])
    e = np.where(labelled, len(y) / labelled.sum(), 1.0)  # the paper's inverse supervision rate
    error = reference.objective(X.toarray(), model.document_topics_, model.components_, L, e[:, None])
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(error))
    assert model.objective_history_[-1] == pytest.approx(error)


def test_label_weight(problem):
    X, y, L = problem
    labelled = np.array([bool(labels) for labels in y])
    for label_weight, factor in ((None, 1.0), (3.0, 3.0), ("balanced", len(y) / labelled.sum())):
        model = TSNMF(6, label_weight=label_weight, random_state=0).fit(X, y)
        e = np.where(labelled, factor, 1.0)[:, None]
        error = reference.objective(X.toarray(), model.document_topics_, model.components_, L, e)
        assert model.objective_history_[-1] == pytest.approx(error)


def test_sample_weight_multiplies_and_equals_repetition():
    X, y, _ = make_problem(3, free=0, labelled=1.0)
    y = [labels or [0] for labels in y]
    times = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), times)
    weighted = TSNMF(max_iter=20, tol=0).fit(X, y, sample_weight=times)
    repeated = TSNMF(max_iter=20, tol=0).fit(X[rows], [y[i] for i in rows])
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    assert weighted.objective_history_[-1] == pytest.approx(repeated.objective_history_[-1])


def test_no_labels_is_plain_nmf():
    X, _, _ = make_problem(1, n=120, t=60)
    W, H = np.random.default_rng(0).random((120, 5)), np.random.default_rng(1).random((5, 60))
    theirs = NMF(5, init="custom", max_iter=500, tol=1e-8)
    theirs.fit_transform(X, W=W.copy(), H=H.copy())
    ours = TSNMF(5, init=(W, H), max_iter=500, tol=1e-9).fit(X)
    assert ours.n_known_ == 0
    assert ours.reconstruction_err_ <= theirs.reconstruction_err_ * (1 + 1e-3)


def test_free_in_labelled(problem):
    X, y, _ = problem
    labelled = [i for i, labels in enumerate(y) if labels]
    assert TSNMF(6, random_state=0).fit(X, y).document_topics_[labelled, 4:].any()
    assert not TSNMF(6, random_state=0, free_in_labelled=False).fit(X, y).document_topics_[labelled, 4:].any()


def test_negative_labels_forbid_only_their_topic(problem):
    X, _, _ = problem
    y = np.full((60, 3), np.nan)
    y[:20, 0] = 0
    y[20:30] = [1, 0, 0]
    y[30:40] = [0, 1, 1]
    W = TSNMF(random_state=0).fit(X, y).document_topics_
    assert not W[:20, 0].any()
    assert W[:20, 1:].any(axis=0).all()
    assert not W[20:30, 1:].any()
    assert not W[30:40, 0].any()


def test_everything_labelled_and_one_document_per_topic(problem):
    X, y, _ = problem
    full = [labels or [0] for labels in y]
    model = TSNMF(random_state=0).fit(X, full)
    assert (model.document_topics_[~mask(full, d=4)] == 0).all()
    one_each = {next(i for i, labels in enumerate(y) if labels == [k]): k for k in range(4) if [k] in y}
    model = TSNMF(random_state=0).fit(X, one_each)
    assert model.n_known_ == len(one_each)
    assert model.document_topics_.any(axis=0).all()


def test_transform_is_the_least_squares_answer_and_ignores_the_batch(problem):
    X, y, _ = problem
    model = TSNMF(6, random_state=0, tol=1e-7, max_iter=2000).fit(X, y)
    W = model.transform(X)
    for i in range(10):
        np.testing.assert_allclose(W[i], nnls(model.components_.T, X.toarray()[i])[0], atol=1e-5)
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_array_equal(model.transform(X[order]), W[order])
    np.testing.assert_array_equal(np.vstack([model.transform(X[[i]]) for i in range(60)]), W)
    np.testing.assert_array_equal(clone(model).fit_transform(X, y), W)
    np.testing.assert_allclose(model.inverse_transform(W), W @ model.components_)


def test_sparse_dense_and_index_types_agree(problem):
    X, y, _ = problem
    expected = TSNMF(6, random_state=0).fit(X, y).components_
    wide = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    unsorted = sp.csr_array((X.data[::-1], X.indices[::-1], X.indptr[-1] - X.indptr[::-1]), shape=X.shape)[::-1]
    for form in (X.toarray(), sp.csr_matrix(X), X.tocsc(), X.tocoo(), wide, unsorted, pd.DataFrame(X.toarray())):
        np.testing.assert_allclose(TSNMF(6, random_state=0).fit(form, y).components_, expected, rtol=1e-9, atol=1e-12)


def test_permuted_documents_give_permuted_weights():
    X, y, _ = make_problem(4, free=0)
    order = np.random.default_rng(0).permutation(60)
    one = TSNMF(max_iter=15, tol=0).fit(X, y)
    two = TSNMF(max_iter=15, tol=0).fit(X[order], [y[i] for i in order])
    np.testing.assert_allclose(two.document_topics_, one.document_topics_[order], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("given", "kept"), [("f2", "f8"), ("f4", "f4"), ("i4", "f8"), ("u1", "f8"), ("?", "f8")])
def test_number_types(given, kept):
    X = (np.random.default_rng(0).random((20, 8)) < 0.5).astype(given)
    model = TSNMF(3, random_state=0).fit(X)
    assert model.components_.dtype == np.dtype(kept)
    assert model.document_topics_.dtype == np.dtype(kept)
    assert model.transform(X).dtype == np.dtype(kept)


def test_same_seed_same_bits_for_any_threads():
    X, y, _ = make_problem(5, n=900, t=30, dtype=np.float32)
    results = [TSNMF(6, random_state=3, threads=threads).fit(X, y) for threads in (1, 2, 3)]
    for other in results[1:]:
        np.testing.assert_array_equal(other.components_, results[0].components_)
        np.testing.assert_array_equal(other.document_topics_, results[0].document_topics_)
    assert not np.array_equal(TSNMF(6, random_state=4).fit(X, y).components_, results[0].components_)


def test_error_weight_is_the_full_E(problem):
    X, y, L = problem
    rng = np.random.default_rng(0)
    W, H, E = rng.random((60, 6)), rng.random((6, 40)), rng.random((60, 40))
    expected = reference.mu(X.toarray(), W, H, L, E, 20)[2]
    for form in (E, sp.csr_array(E)):
        model = TSNMF(6, solver="mu", init=(W, H), label_weight=None, max_iter=20, tol=0)
        model.fit(X, y, error_weight=form)
        np.testing.assert_allclose(model.objective_history_, expected, rtol=1e-9)


def test_documents_without_terms_get_no_weights_and_no_warning(problem):
    X, y, _ = problem
    empty = next(i for i, labels in enumerate(y) if not labels)
    rows = X.toarray()
    rows[empty] = 0
    model = TSNMF(6, random_state=0).fit(rows, y)
    assert not model.document_topics_[empty].any()
    assert not model.transform(rows)[empty].any()


def test_names_out_and_data_frames(problem):
    X, y, _ = problem
    terms = [f"term{j}" for j in range(40)]
    frame = pd.DataFrame(X.toarray(), columns=terms)
    model = TSNMF(5, random_state=0).set_output(transform="pandas")
    out = model.fit(frame, y).transform(frame)
    assert out.columns.tolist() == ["0", "1", "2", "3", "free 1"]
    assert model.feature_names_in_.tolist() == terms
    out = model.set_output(transform="polars").fit(frame, y).transform(pl.DataFrame(X.toarray(), schema=terms))
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["0", "1", "2", "3", "free 1"]


@pytest.mark.slow
def test_pipeline_search_clone_and_pickle():
    texts = ["tea milk cup", "coffee bean cup", "tea leaf", "coffee roast bean", "milk tea", "roast coffee cup"] * 5
    labels = ["tea", "coffee"] * 15
    pipeline = make_pipeline(TfidfVectorizer(), TSNMF(random_state=0), LogisticRegression())
    search = GridSearchCV(pipeline, {"tsnmf__n_components": [2, 3], "tsnmf__label_weight": [None, "balanced"]}, cv=3)
    search.fit(texts, labels)
    assert search.best_score_ > 0.9
    model = search.best_estimator_[1]
    again = pickle.loads(pickle.dumps(model))
    X = search.best_estimator_[0].transform(texts)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.__setitem__((3, 5), -1.0), r"Negative values in data passed to TSNMF.*-1 in row 3, column 5"),
        (lambda X: X.__setitem__((4, 2), np.nan), r"NaN.*nan in row 4, column 2"),
        (lambda X: X.__setitem__((0, 0), np.inf), r"inf.* in row 0, column 0"),
    ],
)
def test_bad_entries_are_located(problem, change, message):
    X, y, _ = problem
    model = TSNMF(6, random_state=0).fit(X, y)
    before = model.components_.copy()
    bad = X.toarray()
    change(bad)
    for form in (bad, sp.csr_array(bad)):
        with pytest.raises(ValueError, match=message):
            model.fit(form, y)
        with pytest.raises(ValueError, match=message):
            model.transform(form)
    np.testing.assert_array_equal(model.components_, before)  # a failed fit changes nothing


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"n_components": 3}, None, r"n_components=3 is less than the 4 known topics. Use n_components >= 4"),
        ({"n_components": 0}, None, r"n_components must be None or an integer >= 1; got 0"),
        ({"n_components": 2.5}, None, r"n_components must be"),
        ({"solver": "cd"}, None, r"solver must be one of \('hals', 'mu'\); got 'cd'"),
        ({"init": "best"}, None, r"init must be one of"),
        ({"label_weight": "heavy"}, None, r"label_weight must be"),
        ({"label_weight": -1}, None, r"label_weight must be"),
        ({"tol": -1}, None, r"tol must be"),
        ({"max_iter": 1.5}, None, r"max_iter must be"),
        ({"alpha_W": np.nan}, None, r"alpha_W must be"),
        ({"l1_ratio": 2}, None, r"l1_ratio must be a number from 0 to 1; got 2"),
        ({"threads": 0}, None, r"threads must be"),
        ({"init": (np.ones((2, 4)), np.ones((4, 40)))}, None, r"shapes \(2, 4\) and \(4, 40\)"),
        ({"init": (-np.ones((60, 4)), np.ones((4, 40)))}, None, r"negative"),
        ({"topics": ["a", "b"]}, ["a", "c"] * 30, r"row 1 has the label 'c'"),
        ({}, [1, 2], r"labels for 2 documents, but X has 60"),
        ({}, [None] * 60, r"requires y to be passed"),
        ({"n_components": 1}, ["a", "b"] * 30, r"less than the 2 known topics"),
    ],
)
def test_bad_parameters_and_labels(problem, parameters, y, message):
    X, labels, _ = problem
    with pytest.raises(ValueError, match=message):
        TSNMF(**parameters).fit(X, labels if y is None else y)


def test_bad_weights(problem):
    X, y, _ = problem
    for weight, message in ((np.ones(3), "shape"), (-np.ones(60), "negative"), (np.zeros(60), "above zero")):
        with pytest.raises(ValueError, match=message):
            TSNMF().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match='needs solver="mu"'):
        TSNMF().fit(X, y, error_weight=np.ones((60, 40)))
    with pytest.raises(ValueError, match="shape"):
        TSNMF(solver="mu").fit(X, y, error_weight=np.ones((60, 4)))
    with pytest.raises(ValueError, match="negative"):
        TSNMF(solver="mu").fit(X, y, error_weight=-np.ones((60, 40)))


@pytest.mark.slow
def test_empty_and_far_too_large():
    with pytest.raises(ValueError, match="0 sample"):
        TSNMF(2).fit(sp.csr_array((0, 5)))
    with pytest.raises(ValueError, match="0 feature"):
        TSNMF(2).fit(np.empty((5, 0)))
    huge = np.broadcast_to(np.float32(1), (10**7, 10**7))  # a view of one number
    with pytest.raises(MemoryError, match=r"X is dense.*800000 GB.*scipy.sparse"):
        TSNMF(2).fit(huge)
    with pytest.raises(MemoryError, match="topic weights of 3000000 documents and 10000000 topics"):
        TSNMF(10**7).fit(sp.csr_array((3 * 10**6, 5)))


def test_all_zero_matrix_fits_with_a_warning():
    with pytest.warns(UserWarning, match="The topics free 1, free 2"):
        model = TSNMF(2).fit(sp.csr_array((5, 4)))
    assert not model.document_topics_.any()


def test_texts_are_refused_with_an_explanation():
    with pytest.raises(ValueError, match=r"X holds texts, but TSNMF takes a matrix .* Use TopicModel"):
        TSNMF().fit(["green tea", "coffee"], ["tea", None])


def test_warnings_name_their_documents_and_topics(problem):
    X, y, _ = problem
    with pytest.warns(UserWarning, match="No document is labelled with nobody, neither: these topics start like"):
        TSNMF(topics=[0, 1, 2, 3, "nobody", "neither"], random_state=0).fit(X, y)
    rows = X.toarray()
    labelled = next(i for i, labels in enumerate(y) if labels)
    rows[labelled] = 0
    with pytest.warns(UserWarning, match=f"Labelled but without any term, so of no use: document {labelled} "):
        TSNMF(6, random_state=0).fit(rows, y)
    indicator = np.full((60, 4), np.nan)
    indicator[:4] = np.eye(4)
    indicator[7] = 0
    with pytest.warns(UserWarning, match="The labels permit no topic in document 7 "):
        TSNMF(random_state=0).fit(X, indicator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TSNMF(5, random_state=0).fit(X, indicator).document_topics_[7, 4] > 0
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        TSNMF(6, max_iter=2, tol=1e-9, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="all 2 are kept"):
        assert TSNMF(1).fit(X, np.arange(60) % 2).n_known_ == 2


def test_unfitted():
    with pytest.raises(NotFittedError):
        TSNMF().transform(np.eye(3))
    with pytest.raises(NotFittedError):
        TSNMF().get_feature_names_out()


def test_callback(problem):
    X, y, _ = problem
    seen = []
    model = TSNMF(6, random_state=0, tol=0).fit(X, y, callback=lambda i, *_: seen.append(i) or i == 3)
    assert seen == [1, 2, 3]
    assert model.ended_ == "callback"
    assert model.n_iter_ == 3


def test_interrupt_keeps_the_last_complete_iteration(problem):
    X, y, _ = problem

    def interrupt(iteration, objective, seconds):
        if iteration == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(UserWarning, match="Interrupted: the estimator holds the result of iteration 5"):
        model = TSNMF(6, random_state=0, tol=0).fit(X, y, callback=interrupt)
    same = TSNMF(6, random_state=0, tol=0, max_iter=5).fit(X, y)
    np.testing.assert_array_equal(model.document_topics_, same.document_topics_)
    np.testing.assert_array_equal(model.components_, same.components_)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_second_interrupt_ends_at_once(problem):
    X, y, _ = problem

    def insist(iteration, objective, seconds):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        TSNMF(6, random_state=0).fit(X, y, callback=insist)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_fits_from_several_threads_at_once(problem):
    X, y, _ = problem
    expected = TSNMF(6, random_state=0).fit(X, y).components_
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(TSNMF(6, random_state=0).fit(X, y).components_))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for components in results:
        np.testing.assert_array_equal(components, expected)


@pytest.mark.slow
def test_slow_compilation_is_announced():
    code = "from topicsteer.nmf import kernels; kernels.announce('float32', patience=0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "compiling its kernels (once" in done.stderr


@pytest.mark.slow
def test_works_without_the_compiler():
    """Coverage of the kernels is measured without the compiler."""
    code = (
        "import numpy as np; from topicsteer import TSNMF;"
        "X = np.eye(4)[[0, 1, 2, 3, 0]]; m = TSNMF(3, random_state=0).fit(X, ['a', 'b', None, None, None]);"
        "print(m.document_topics_[4].argmax())"
    )
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert out.stdout.strip() == "0"


def test_penalties_restrict_topics(problem):
    X, y, L = problem
    rng = np.random.default_rng(0)
    dense = rng.choice([0.0, 0.1, 0.5, np.inf], (60, 6))
    dense[:, 5] = 0
    options = {"n_components": 6, "random_state": 0, "max_iter": 30, "tol": 0}
    model = TSNMF(**options).fit(X, y, penalties=dense)
    W = model.document_topics_
    assert (W[(L == 0) | np.isinf(dense)] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert (np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0]).all()
    rows, topics = np.nonzero(np.isfinite(dense))
    sparse = sp.csr_array((dense[rows, topics], (rows, topics)), shape=dense.shape)
    again = TSNMF(**options).fit(X, y, penalties=sparse)
    np.testing.assert_array_equal(again.document_topics_, W)
    # A non-empty row forbids the topics it does not store; an empty row restricts nothing.
    silent = TSNMF(**options).fit(X, y, penalties=sp.csr_array((60, 6)))
    assert (silent.document_topics_[np.isinf(dense)] > 0).any()
    unlabelled = (L == 1).all(axis=1)
    closer = TSNMF(**options | {"max_iter": 500}).fit(X, y, penalties=dense)
    solved = many_weights(sp.csr_array(X), closer.components_, Penalties.of(sparse, np.float64), Regularisation(), None)
    assert (solved[np.isinf(dense)] == 0).all()
    np.testing.assert_allclose(solved[unlabelled], closer.document_topics_[unlabelled], atol=0.02)


def test_a_high_penalty_keeps_a_topic_out(problem):
    X, y, _ = problem
    penalty = np.zeros((60, 6))
    shares = []
    for level in (0.0, 0.2, 0.5):
        penalty[:, 2] = level
        W = TSNMF(6, random_state=0, max_iter=50, tol=0).fit(X, y, penalties=penalty).document_topics_
        shares.append(W[:, 2].sum() / W.sum())
    assert shares == sorted(shares, reverse=True)
    penalty[:, 2] = 1e6
    with pytest.warns(UserWarning, match="The topics 2 are empty"):
        W = TSNMF(6, random_state=0, max_iter=50, tol=0).fit(X, y, penalties=penalty).document_topics_
    assert not W[:, 2].any()


@pytest.mark.parametrize(
    ("penalties", "message"),
    [
        (np.zeros((60, 5)), r"penalties has shape \(60, 5\); expected .*\(60, 6\)"),
        (np.zeros(60), "penalties has shape"),
        (np.full((60, 6), -1.0), "negative or NaN"),
        (np.full((60, 6), np.nan), "negative or NaN"),
        (np.full((60, 6), np.inf), "every topic in row 0"),
    ],
)
def test_bad_penalties(problem, penalties, message):
    X, y, _ = problem
    with pytest.raises(ValueError, match=message):
        TSNMF(6, random_state=0).fit(X, y, penalties=penalties)


def test_penalties_and_alpha_h_exclude_each_other(problem):
    X, y, _ = problem
    with pytest.raises(ValueError, match="alpha_H"):
        TSNMF(6, alpha_H=0.1).fit(X, y, penalties=np.zeros((60, 6)))


@pytest.mark.slow
def test_the_defaults_find_topics_of_unlabelled_documents_better_than_the_papers_rules():
    """The minimum of the objective is not where the topics are found best, so a fit with labels stops before it."""
    documents = corpora.load_docstrings()
    X, n = TextVectorizer().fit_transform(documents.texts), len(documents)
    truth = supervise(documents.labels, n).indicator()
    rows = np.random.default_rng(1).permutation(n)
    labels, others = {int(i): documents.labels[i] for i in rows[: n // 5]}, rows[n // 5 :]
    scores, objectives = {}, {}
    for name, options in {
        "defaults": {},
        "minimum": {"tol": 1e-4},
        "paper": {"solver": "mu", "init": "random", "tol": 0, "max_iter": 30},
    }.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = TSNMF(topics=documents.topic_names, random_state=0, **options).fit(X, labels)
        contribution = model.document_topics_ * model.components_.sum(axis=1)
        scores[name] = average_precision(truth[others], contribution[others]).macro
        objectives[name] = model.objective_history_[-1]
    assert scores["defaults"] > scores["paper"] + 0.05
    assert scores["defaults"] > scores["minimum"] + 0.05
    assert objectives["minimum"] < objectives["defaults"] < 1.05 * objectives["minimum"]


def test_an_automatic_stop_is_early_for_labels_by_coordinate_descent_alone():
    X, y, _ = make_problem()
    same = [({"n_components": 6}, None), ({"n_components": 6, "solver": "mu", "max_iter": 1000}, y)]
    for options, labels in same:
        automatic, fixed = (TSNMF(**options, random_state=0, **tol).fit(X, labels) for tol in ({}, {"tol": 1e-4}))
        np.testing.assert_array_equal(automatic.components_, fixed.components_)
    P = np.ones((X.shape[0], 6))
    automatic, fixed = (TSNMF(6, random_state=0, **tol).fit(X, y, penalties=P) for tol in ({}, {"tol": 1e-4}))
    np.testing.assert_array_equal(automatic.components_, fixed.components_)
    assert (
        TSNMF(6, random_state=0).fit(X, y).n_iter_ < TSNMF(6, random_state=0, tol=1e-4, max_iter=500).fit(X, y).n_iter_
    )
    with pytest.raises(ValueError, match='tol must be a number >= 0, "auto" or "authors"; got \'none\''):
        TSNMF(6, tol="none").fit(X, y)
