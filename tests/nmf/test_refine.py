"""Some topics are factorised again: the objective never rises, zeros stay, and the others are fixed."""

import numpy as np
import scipy.sparse as sp

from topicsteer.nmf.refine import refine


def objective(X, W, H, others, weight, penalties):
    """The objective, as it is written, on dense arrays."""
    error = X.toarray() - W @ H - others[0] @ others[1]
    return 0.5 * (weight[:, None] * error**2).sum() + (weight[:, None] * penalties * W).sum()


def test_the_objective_never_rises_and_zeros_stay():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((30, 20)) * (rng.random((30, 20)) < 0.4))
    others = rng.random((30, 2)) * 0.1, rng.random((2, 20)) * 0.1
    permitted = rng.random((30, 3)) < 0.7
    W, H = np.where(permitted, rng.random((30, 3)), 0), rng.random((3, 20))
    weight, penalties = rng.random(30) + 0.5, rng.random((30, 3)) * 0.1
    values = [objective(X, W, H, others, weight, penalties)]
    for n in (1, 2, 5, 20):
        found, terms, tracked = refine(X, W, H, others, weight, penalties, permitted, iterations=n)
        values.append(objective(X, found, terms, others, weight, penalties))
        assert (found[~permitted] == 0).all()
        assert (found >= 0).all()
        assert (terms >= 0).all()
    assert (np.diff(values) < 0).all()
    assert (np.diff(tracked) <= 1e-12).all()
    assert np.isclose(values[-2] - values[-1], tracked[4] - tracked[-1])  # up to the constant part


def test_a_plain_factorisation_is_a_special_case():
    W, H = np.eye(4)[:, :2] + 0.5, np.array([[1.0, 0, 2], [0, 3, 0]])
    X = sp.csr_array(W @ H)
    nobody = np.zeros((4, 0)), np.zeros((0, 3))
    start = np.ones((4, 2)), H + 0.3
    found, terms, _ = refine(X, *start, nobody, np.ones(4), np.zeros((4, 2)), np.ones((4, 2), dtype=bool), 500)
    assert np.abs(found @ terms - X.toarray()).max() < 1e-3
