import numpy as np
import pytest
import scipy.sparse as sp
from problems import make_problem

from topicsteer import TSNMF
from topicsteer.nmf.protocols import TermConstraints


def given(d, t, pinned=(), banned=()):
    term_constraints = np.zeros((d, t))
    for k, j in pinned:
        term_constraints[k, j] = 1
    for k, j in banned:
        term_constraints[k, j] = -1
    return term_constraints


@pytest.mark.parametrize("solver", ["hals", "mu"])
@pytest.mark.parametrize("masked", [False, True])
def test_banned_terms_are_zero_at_every_iteration(solver, masked):
    X, y, _ = make_problem(1, n=80, t=30)
    banned = [(0, 3), (0, 4), (2, 3), (5, 10)]
    term_constraints = given(6, 30, banned=banned)
    for iterations in (0, 1, 2, 15):
        model = TSNMF(6, solver=solver, random_state=0, max_iter=iterations, tol=0)
        model.fit(
            X, y, term_constraints=sp.csr_array(term_constraints), penalties=np.full((80, 6), 0.02) if masked else None
        )
        for k, j in banned:
            assert model.components_[k, j] == 0
        assert (np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0]).all()
    assert model.components_[1, 3] + model.components_[3, 3] > 0


@pytest.mark.parametrize("solver", ["hals", "mu"])
@pytest.mark.parametrize("masked", [False, True])
def test_pinned_terms_are_among_the_top_terms(solver, masked):
    X, y, L = make_problem(2, n=200, t=60)
    options = {"n_components": 6, "solver": solver, "random_state": 0, "max_iter": 40, "tol": 0}
    penalties = np.full((200, 6), 0.02) if masked else None
    before = TSNMF(**options).fit(X, y, penalties=penalties)
    weakest = [int(np.argsort(before.components_[k])[0]) for k in range(4)]
    model = TSNMF(**options).fit(X, y, term_constraints=given(4, 60, pinned=enumerate(weakest)), penalties=penalties)
    for k, j in enumerate(weakest):
        assert j in np.argsort(-model.components_[k], kind="stable")[:11]
    assert model.document_topics_.shape == (200, 6)
    assert (model.document_topics_[L == 0] == 0).all()
    assert model.reconstruction_err_ < 1.2 * before.reconstruction_err_


def test_a_topic_without_labels_starts_from_its_pinned_terms():
    X, y, _ = make_problem(4, n=80, t=30)
    model = TSNMF(5, topics=[0, 1, 2, 3, 9], random_state=0, max_iter=0)
    with pytest.warns(UserWarning, match="labelled with 9"):
        model.fit(X, y, term_constraints=given(5, 30, pinned=[(4, 2), (4, 5)]))
    assert np.flatnonzero(model.components_[4]).tolist() == [2, 5]


def test_term_constraints_under_a_full_error_weight():
    X, y, _ = make_problem(5, n=40, t=20)
    model = TSNMF(6, solver="mu", random_state=0, max_iter=10, tol=0)
    model.fit(X, y, error_weight=np.ones((40, 20)), term_constraints=given(6, 20, pinned=[(0, 1)], banned=[(0, 2)]))
    assert model.components_[0, 2] == 0 < model.components_[0, 1]


def test_bad_term_constraints():
    assert TermConstraints.read(None, 2, 3) is None
    assert TermConstraints.read(np.zeros((2, 3)), 2, 3) is None
    with pytest.raises(ValueError, match=r"term_constraints has shape \(2, 4\)"):
        TermConstraints.read(np.zeros((2, 4)), 2, 3)
    with pytest.raises(ValueError, match="NaN"):
        TermConstraints.read(np.array([[np.nan, 0, 0]]), 2, 3)
