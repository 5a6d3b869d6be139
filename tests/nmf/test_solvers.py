import itertools
from dataclasses import replace

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import make_problem
from scipy.optimize import nnls
from sklearn.decomposition import non_negative_factorization

from topicsteer.backends.in_memory import MemoryBackend
from topicsteer.labels.forms import supervise
from topicsteer.nmf import blocks, kernels, loop, solvers
from topicsteer.nmf.blocks import Block, Penalties, RowConstraints, split_into_blocks
from topicsteer.nmf.loop import SCALE, factorise, revive, worst
from topicsteer.nmf.protocols import TermConstraints
from topicsteer.nmf.solvers import Regularisation, update_block

NONE = Regularisation()


def random_penalties(seed, n, d):
    """Random penalties, sparse and dense (infinity where forbidden); every fourth row is empty."""
    rng = np.random.default_rng(seed)
    stored = rng.random((n, d)) < 0.5
    stored[:, 0] |= ~stored.any(axis=1)
    stored[::4] = False
    rows, topics = np.nonzero(stored)
    penalties = sp.csr_array((rng.choice([0.0, 0.05, 0.3, 2.0], len(rows)), (rows, topics)), shape=(n, d))
    dense = np.where(stored | ~stored.any(axis=1, keepdims=True), 0.0, np.inf)
    dense[rows, topics] = penalties.data
    return penalties, dense


def prepare(X, y, W, d=6, weight=None, E=None, free_in_labelled=True, penalties=None, min_entries=32):
    kernels.prepare(X.dtype)
    supervision = supervise(y, X.shape[0])
    permitted = supervision.permitted(d, free_in_labelled)
    W *= permitted[supervision.pattern]
    weight = np.ones(X.shape[0], X.dtype) if weight is None else weight
    mask = Penalties.none(X.shape[0], X.dtype) if penalties is None else Penalties.of(penalties, X.dtype)
    whole = Block.of(X, W, RowConstraints(weight, supervision.pattern, mask), E)
    block_list = split_into_blocks(whole, X.shape[1], min_entries)
    for block in block_list:
        block.penalties.clear(block.W)
    return block_list, permitted


def random_start(seed, n, t, d=6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.random((n, d)).astype(dtype), rng.random((d, t)).astype(dtype)


def run(X, y, W, H, **options):
    names = ("weight", "E", "free_in_labelled", "penalties", "min_entries")
    block_list, permitted = prepare(X, y, W, len(H), **{k: options[k] for k in names if k in options})
    settings = {"solver": "hals", "regularisation": NONE, "tol": 0.0, "max_iter": 12, "unit": "penalties" in options}
    settings |= {k: v for k, v in options.items() if k not in names}
    return factorise(MemoryBackend(block_list), np.ascontiguousarray(H.T), permitted, **settings)


def no_constraints(n):
    return RowConstraints(np.ones(n), np.zeros(n, np.int32), Penalties.none(n, np.float64))


@pytest.mark.parametrize("weighting", ["none", "rows", "full", "full sparse"])
def test_mu_is_the_papers_rules(problem, weighting):
    X, y, L = problem
    W, H = random_start(1, 60, 40)
    rng = np.random.default_rng(2)
    e = rng.uniform(0.5, 4, 60) if weighting == "rows" else np.ones(60)
    full = rng.random((60, 40)) * (rng.random((60, 40)) < 0.5) if "full" in weighting else np.ones((60, 40))
    E = {"full": full, "full sparse": sp.csr_array(full)}.get(weighting)
    expected_W, expected_H, objectives = reference.mu(X.toarray(), W, H, L, e[:, None] * full, 30)
    result = run(X, y, W, H, solver="mu", max_iter=30, weight=e, E=E)
    np.testing.assert_allclose(result.objectives, objectives, rtol=1e-9)
    np.testing.assert_allclose(W, expected_W, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(result.HT.T, expected_H, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
def test_hals_is_plain_coordinate_descent(problem, masked):
    X, y, L = problem
    W, H = random_start(3, 60, 40)
    e = np.random.default_rng(4).uniform(0.5, 4, 60)
    penalties, P = random_penalties(5, 60, 6)
    given, options = ({"P": np.where(np.isinf(P), 0, P)}, {"penalties": penalties}) if masked else ({}, {})
    expected_W, expected_H = reference.hals(
        X.toarray(),
        W,
        H,
        L * (np.isfinite(P) if masked else 1),
        e,
        7,
        lambda i: 1 if i < loop.SETTLING else loop.SWEEPS,
        **given,
    )
    result = run(X, y, W, H, max_iter=7, weight=e, **options)
    np.testing.assert_allclose(W, expected_W, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(result.HT.T, expected_H, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_documents_for_a_fixed_h_are_least_squares(masked, threads):
    """min ½|x - wH|² + (l1 + P)w + ½ l2 |w|² over w ≥ 0 matches scipy, with the square root of H's Gram matrix."""
    n = 4 * blocks.ROWS + 100  # more than one block
    X, y, L = make_problem(6, n=n)
    W, H = random_start(6, n, X.shape[1])
    penalties, P = random_penalties(7, n, 6)
    block_list, permitted = prepare(X, y, W, penalties=penalties if masked else None)
    regularisation = Regularisation(0.02, 0.1)
    for block in block_list:
        loop.transform(block, np.ascontiguousarray(H.T), permitted, regularisation, threads)
    root = np.linalg.cholesky(H @ H.T + 0.1 * np.eye(6)).T
    penalty = P if masked else np.zeros((n, 6))
    dense = X.toarray()
    for i in range(0, n, 7):
        may = (L[i] > 0) & np.isfinite(penalty[i])
        assert not W[i, ~may].any()
        if may.any():  # scipy fails without columns
            system = np.linalg.qr(root[:, may])[1]
            wanted = np.linalg.solve(system.T, (H @ dense[i])[may] - 0.02 - penalty[i, may])
            np.testing.assert_allclose(W[i, may], nnls(system, wanted)[0], atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    solver=st.sampled_from(["hals", "mu", "mu full"]),
    labelled=st.sampled_from([0.0, 0.3, 1.0]),
    regularisation=st.sampled_from([NONE, Regularisation(0.05, 0.1, 0.02, 0.3)]),
    free=st.booleans(),
    masked=st.booleans(),
)
def test_objective_never_rises_and_matches_its_definition(seed, solver, labelled, regularisation, free, masked):
    X, y, L = make_problem(seed, n=25, t=18, labelled=labelled)
    if labelled == 0:
        y, L = [[] for _ in y], np.ones_like(L)
    elif not free:
        L[[bool(labels) for labels in y], 4:] = 0
    n, t = X.shape
    d = L.shape[1] if labelled else 6
    W, H = random_start(seed, n, t, d)
    e = np.random.default_rng(seed).uniform(0.3, 5, n)
    E = np.random.default_rng(seed + 1).random((n, t)) if solver == "mu full" else None
    penalties, P = random_penalties(seed, n, d)
    if masked:
        regularisation = replace(regularisation, l1_H=0.0, l2_H=0.0)
    else:
        P = np.zeros((n, d))
    result = run(
        X,
        y,
        W,
        H,
        **({"penalties": penalties} if masked else {}),
        solver=solver[:2] if E is not None else solver,
        weight=e,
        E=E,
        regularisation=regularisation,
        free_in_labelled=free,
    )
    objectives = np.array(result.objectives)
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    assert (W >= 0).all()
    assert (result.HT >= 0).all()
    assert (W[(L == 0) | np.isinf(P)] == 0).all()
    if masked:
        lengths = np.linalg.norm(result.HT, axis=0)
        np.testing.assert_allclose(lengths[lengths > 0], 1)
    rows = np.ones(n) if E is not None else e  # a full E has no weight per document to multiply penalties
    expected = (
        reference.objective(X.toarray(), W, result.HT.T, L, e[:, None] * (1.0 if E is None else E))
        + 2 * (rows[:, None] * (regularisation.l1_W + np.where(np.isinf(P), 0, P)) * W).sum()
        + regularisation.l2_W * (rows[:, None] * W**2).sum()
        + 2 * regularisation.l1_H * result.HT.sum()
        + regularisation.l2_H * (result.HT**2).sum()
    )
    assert objectives[-1] == pytest.approx(expected, rel=1e-7)


def test_the_papers_rules_can_raise_its_printed_objective():
    """With E inside the norm the squared error has the weight E². This can rise under the paper's rules."""
    rises = falls = 0
    for seed in range(20):
        X, _, L = make_problem(seed, n=12, t=9)
        W, H = random_start(seed, 12, 9)
        E = np.exp(np.random.default_rng(seed).normal(0, 2, (12, 9)))
        printed, meant = [], []
        for iterations in range(12):
            W_now, H_now, _ = reference.mu(X.toarray(), W, H, L, E, iterations)
            printed.append(reference.objective(X.toarray(), W_now, H_now, L, E**2))
            meant.append(reference.objective(X.toarray(), W_now, H_now, L, E))
        rises += (np.diff(printed) > 1e-9 * printed[0]).any()
        falls += (np.diff(meant) <= 1e-9 * meant[0]).all()
    assert falls == 20
    assert rises > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
def test_hals_does_not_end_above_scikit_learn():
    """Same start and no labels: after the same number of iterations, and at convergence."""
    for seed, iterations in itertools.product(range(8), (3, 50, 400)):
        X, _, _ = make_problem(seed, n=120, t=60)
        W, H = random_start(seed, 120, 60)
        W_theirs, H_theirs, _ = non_negative_factorization(
            X, W.copy(), H.copy(), n_components=6, init="custom", solver="cd", max_iter=iterations, tol=1e-12
        )
        theirs = reference.objective(X.toarray(), W_theirs, H_theirs, 1.0)
        ours = run(X, [[]] * 120, W, H, max_iter=iterations).objectives[-1]
        assert ours <= theirs * (1 + 1e-3)


def test_regularisation_matches_scikit_learn():
    X, _, _ = make_problem(5, n=80, t=30)
    W, H = random_start(5, 80, 30, 4)
    alpha_W, alpha_H, ratio = 0.002, 0.001, 0.4
    W_theirs, H_theirs, _ = non_negative_factorization(
        X,
        W.copy(),
        H.copy(),
        n_components=4,
        init="custom",
        alpha_W=alpha_W,
        alpha_H=alpha_H,
        l1_ratio=ratio,
        max_iter=5000,
        tol=1e-10,
    )
    on_W, on_H = alpha_W * 30, alpha_H * 80
    regularisation = Regularisation(on_W * ratio, on_W * (1 - ratio), on_H * ratio, on_H * (1 - ratio))
    result = run(X, [[]] * 80, W, H, regularisation=regularisation, max_iter=5000, tol=1e-13)
    np.testing.assert_allclose(W @ result.HT.T, W_theirs @ H_theirs, atol=1e-3)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("solver", ["hals", "mu"])
def test_any_number_of_threads_gives_the_same_bits(solver, masked):
    X, y, _ = make_problem(6, n=900, t=30, dtype=np.float32)
    results = []
    for threads in (1, 2, 5):
        W, H = random_start(6, 900, 30, dtype=np.float32)
        assert len(prepare(X, y, W.copy())[0]) > 2
        result = run(
            X,
            y,
            W,
            H,
            solver=solver,
            threads=threads,
            **({"penalties": random_penalties(6, 900, 6)[0]} if masked else {}),
        )
        results.append((W, result.HT, result.objectives))
    for W, HT, objectives in results[1:]:
        np.testing.assert_array_equal(W, results[0][0])
        np.testing.assert_array_equal(HT, results[0][1])
        assert objectives == results[0][2]


def test_blocks_do_not_matter_beyond_rounding():
    X, y, _ = make_problem(7, n=300, t=20)
    W, H = random_start(7, 300, 20)
    e = np.random.default_rng(7).uniform(1, 3, 300)
    whole_W = W.copy()
    whole = run(X, y, whole_W, H, weight=e, min_entries=10**9)
    constraints = RowConstraints(e, np.zeros(300, np.int32), Penalties.none(300, X.dtype))
    assert len(split_into_blocks(Block.of(X, W, constraints), 20, min_entries=1)) > 50
    many = run(X, y, W, H, weight=e, min_entries=1)
    np.testing.assert_allclose(many.objectives, whole.objectives, rtol=1e-11)
    np.testing.assert_allclose(W, whole_W, atol=1e-7)


def test_a_full_error_weight_in_small_blocks():
    n, t = 160, solvers.DENSE_ENTRIES // 128  # a block of all documents is updated 128 documents at a time
    X = sp.random_array((n, t), density=1e-3, format="csr", rng=np.random.default_rng(3))
    E = np.random.default_rng(3).random((n, t))
    (W, H), (again, _) = random_start(12, n, t, 3), random_start(12, n, t, 3)
    options = {"solver": "mu", "E": E, "max_iter": 2}
    whole = run(X, [None] * n, W, H, min_entries=10**9, **options)
    in_small_blocks = run(X, [None] * n, again, H, min_entries=1e-3, **options)
    np.testing.assert_allclose(in_small_blocks.objectives, whole.objectives, rtol=1e-11)
    np.testing.assert_allclose(again, W, atol=1e-9)


def test_float32_stays_float32_and_agrees(problem):
    X, y, _ = problem
    W, H = random_start(8, 60, 40)
    W32, H32 = W.astype(np.float32), H.astype(np.float32)
    double = run(X, y, W, H)
    single = run(X.astype(np.float32), y, W32, H32)
    assert single.HT.dtype == np.float32
    assert single.objectives[-1] == pytest.approx(double.objectives[-1], rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "mu"},
        {"regularisation": Regularisation(l1_H=1e-12)},
        {"max_iter": 1},
    ],
    ids=["mu", "regularised", "last iteration"],
)
def test_only_a_scale_that_is_free_is_changed(problem, options):
    X, y, _ = problem
    W, H = random_start(15, 60, 40)
    found = run(X, y, W / 1e6, H * 1e6, **options)
    assert (np.linalg.norm(found.HT, axis=0) > SCALE).all()
    found = run(X, y, W / 1e6, H * 1e6)
    assert (np.linalg.norm(found.HT, axis=0) < SCALE).all()


def test_mu_survives_weights_next_to_zero():
    """A term is 0 in one topic and the smallest float in another: the ratio overflows, and 0 × inf is NaN."""
    X = sp.csr_array(np.ones((3, 2), dtype=np.float32))
    W = np.ones((3, 2), dtype=np.float32)
    HT = np.array([[1, 1], [0, 1e-44]], dtype=np.float32)
    constraints = RowConstraints(np.ones(3, np.float32), np.zeros(3, np.int32), Penalties.none(3, np.float32))
    whole = [Block.of(X, W, constraints)]
    everything = np.ones((1, 2), dtype=bool)
    result = factorise(
        MemoryBackend(whole), HT, everything, solver="mu", regularisation=Regularisation(), tol=0, max_iter=5
    )
    assert np.isfinite(result.objectives).all()
    assert (np.diff(result.objectives) <= 1e-6).all()


def test_a_dead_topic_is_revived_and_lowers_the_objective():
    X, y, L = make_problem(9, n=80, t=30)
    W, H = random_start(9, 80, 30)
    H[[2, 5]] = 0  # one known topic, one free topic
    result = run(X, y, W, H, max_iter=30)
    assert (result.HT.sum(axis=0) > 0).all()
    assert (W.sum(axis=0) > 0).all()
    assert (W[L == 0] == 0).all()
    assert (np.diff(result.objectives) <= 1e-9).all()


def test_a_topic_revived_under_penalties_has_length_one_and_lowers_the_objective():
    X, y, L = make_problem(9, n=80, t=30)
    W, H = random_start(9, 80, 30)
    H[[2, 5]] = 0
    penalties, P = random_penalties(9, 80, 6)
    result = run(X, y, W, H, max_iter=30, penalties=penalties)
    np.testing.assert_allclose(np.linalg.norm(result.HT, axis=0), 1)
    assert (W.sum(axis=0) > 0).all()
    assert (W[(L == 0) | np.isinf(P)] == 0).all()
    assert (np.diff(result.objectives) <= 1e-9).all()


def test_banned_terms_stay_out_of_their_topic():
    """Terms 0, 10, 20, ... are banned from the second topic, also when it is revived."""
    X, y, _ = make_problem(14, n=80, t=30)
    W, H = random_start(14, 80, 30)
    H[1] = 0
    H[1, 1] = 1e-35  # practically dead
    banned = np.zeros((6, 30))
    banned[1, ::10] = -1
    term_constraints = TermConstraints.read(banned, 6, 30)
    result = run(X, y, W, H, term_constraints=term_constraints, max_iter=20)
    assert not result.HT[::10, 1].any()
    assert result.HT[:, 1].any()
    assert result.HT[::10, [0, 2, 3, 4, 5]].any()
    assert (np.diff(result.objectives) <= 1e-9).all()


def test_a_revived_known_topic_takes_a_document_labelled_with_it(problem):
    X, y, _ = problem
    W, H = random_start(10, 60, 40)
    block_list, permitted = prepare(X, y, W)
    HT = np.ascontiguousarray(H.T)
    before = reference.objective(X.toarray(), np.where(np.arange(6) == 1, 0, W), H, 1.0)
    step, dead = solvers.Step(HT, HT.T @ HT, permitted, NONE), np.array([1])
    revive([worst(block, step, dead) for block in block_list], HT, step, dead)
    for block in block_list:
        update_block(block, replace(step, dead=dead))
    rows = [i for i, labels in enumerate(y) if 1 in labels]
    assert any(np.array_equal(HT[:, 1], X.toarray()[i]) for i in rows)
    assert not W[:, 1].any()
    assert reference.objective(X.toarray(), W, HT.T, 1.0) == pytest.approx(before)


def test_dead_topics_take_the_documents_with_the_largest_errors(problem):
    X, y, _ = problem
    W, H = random_start(13, 60, 40)
    HT = np.ascontiguousarray(H.T)
    HT /= np.linalg.norm(HT, axis=0)
    penalties, P = random_penalties(13, 60, 6)
    dense = X.toarray()
    usual = 4 * np.median(np.square(dense - W @ HT.T).sum(axis=1) / np.linalg.norm(dense, axis=1))
    penalties.data *= usual  # some errors exceed the penalty, some do not
    P *= usual
    block_list, permitted = prepare(X, y, W, penalties=penalties)
    banned = np.zeros((6, 40))
    banned[4, ::3] = -1
    term_constraints = TermConstraints.read(banned, 6, 40).mask(np.float64)
    step, dead = solvers.Step(HT, HT.T @ HT, permitted, NONE, term_constraints, unit=True), np.array([4, 5])
    errors = np.square(dense - W @ HT.T).sum(axis=1)
    for block in block_list:
        largest, found = worst(block, step, dead)
        assert largest == pytest.approx(errors.max())
        for k, (labelled, anyone) in zip(dead, found, strict=True):
            may = [i for i in range(60) if errors[i] > P[i, k] * np.linalg.norm(dense[i])]
            assert 5 < len(may) < np.isfinite(P[:, k]).sum() - 2
            best = sorted(may, key=lambda i: -errors[i])
            assert [one.row for one in anyone] == best[:2]
            assert [one.row for one in labelled] == [i for i in best if y[i]][:2]
    revive([worst(block, step, dead) for block in block_list], HT, step, dead)
    first = dense[found[0][1][0].row]
    first[::3] = 0
    np.testing.assert_allclose(HT[:, 4], first / np.linalg.norm(first))
    np.testing.assert_allclose(np.linalg.norm(HT[:, 5]), 1)
    assert not np.allclose(HT[:, 4], HT[:, 5])


def test_a_block_without_documents_offers_no_candidate():
    X = sp.csr_array((0, 40))
    (block,), permitted = [Block.of(X, np.zeros((0, 6)), no_constraints(0))], np.ones((1, 6), bool)
    step = solvers.Step(np.ones((40, 6)), np.full((6, 6), 40.0), permitted, NONE)
    assert worst(block, step, np.array([4, 5])) == (0.0, [([], []), ([], [])])


def test_candidates_with_equal_errors_keep_their_order():
    X = sp.csr_array(np.arange(400.0)[:, None] % 4 + 1)  # the error of every fourth document is the largest
    step = solvers.Step(np.zeros((1, 3)), np.zeros((3, 3)), np.ones((1, 3), bool), NONE)
    _, found = worst(Block.of(X, np.zeros((400, 3)), no_constraints(400)), step, np.array([0, 1, 2]))
    assert [[one.row for one in anyone] for _, anyone in found] == [[3, 7, 11]] * 3


def test_a_document_revives_one_topic_only():
    X = sp.csr_array(np.diag([1.0, 5.0, 3.0, 4.0, 2.0]))
    HT, dead = np.zeros((5, 3)), np.array([0, 1, 2])
    step = solvers.Step(HT, HT.T @ HT, np.ones((1, 3), bool), NONE)
    parts = [Block.of(X[:3], np.zeros((3, 3)), no_constraints(3)), Block.of(X[3:], np.zeros((2, 3)), no_constraints(2))]
    revive([worst(part, step, dead) for part in parts], HT, step, dead)
    assert HT.argmax(axis=0).tolist() == [1, 3, 2]
    assert HT.max(axis=0).tolist() == [5, 4, 3]


def test_callback_sees_each_iteration_and_can_stop(problem):
    X, y, _ = problem
    W, H = random_start(11, 60, 40)
    seen = []

    def callback(iteration, objective, seconds):
        seen.append((iteration, objective, seconds))
        return iteration == 4

    result = run(X, y, W, H, callback=callback)
    assert result.ended == "callback"
    assert [row[0] for row in seen] == [1, 2, 3, 4]
    assert [row[1] for row in seen] == result.objectives[1:]
    assert all(a[2] <= b[2] for a, b in itertools.pairwise(seen))


def test_stop_rule(problem):
    X, y, _ = problem
    W, H = random_start(12, 60, 40)
    result = run(X, y, W, H, tol=1e-3, max_iter=500)
    assert result.ended == "tol"
    falls = -np.diff(result.objectives) / result.objectives[:-1]
    assert falls[-1] <= 1e-3 < falls[-2]


def test_odd_scales_are_moved_from_h_to_w():
    """A start with far too large or small topics ends in the same objective."""
    X, y, _ = make_problem(13, n=80, t=30, dtype=np.float32)
    W, H = random_start(13, 80, 30, dtype=np.float32)
    plain = run(X, y, W.copy(), H, max_iter=40)
    factor = np.array([1e7, 1e-7, 1, 1e12, 1e-12, 1], np.float32)
    skewed_W = W / factor
    skewed = run(X, y, skewed_W, H * factor[:, None], max_iter=40)
    assert skewed.objectives[-1] == pytest.approx(plain.objectives[-1], rel=1e-3)
    norms = np.linalg.norm(skewed.HT, axis=0)
    assert ((norms < 1.01 * SCALE) & (norms > 0.99 / SCALE)).all()
    assert np.isfinite(skewed_W).all()


def test_a_topic_that_cannot_be_revived_is_reported_as_lost():
    """No document may contain topic 1: it is revived a few times in vain, and the other topics are fitted."""
    X, _, _ = make_problem(16, n=60, t=20)
    W, H = random_start(16, 60, 20, 3)
    block_list, permitted = prepare(X, np.tile([np.nan, 0.0], (60, 1)), W, 3)
    result = factorise(
        MemoryBackend(block_list),
        np.ascontiguousarray(H.T),
        permitted,
        solver="hals",
        regularisation=NONE,
        tol=0.0,
        max_iter=12,
    )
    assert result.lost.tolist() == [False, True, False]
    assert not W[:, 1].any()
    assert (np.diff(result.objectives) <= 1e-9).all()
