import numpy as np
import pytest
import scipy.sparse as sp

from topicsteer import TSNMF
from topicsteer.labels.forms import extend
from topicsteer.nmf.protocols import History


def corpus(n=240, seed=0, topics=4, terms=40):
    rng = np.random.default_rng(seed)
    H = rng.gamma(0.3, size=(topics, terms))
    kind = rng.integers(topics, size=n)
    W = 0.2 * rng.gamma(0.3, size=(n, topics))
    W[np.arange(n), kind] += 1
    X = rng.poisson(4 * W @ H).astype(np.float64)
    return X, [f"t{kind[i]}" if i % 4 == 0 else None for i in range(n)]


@pytest.mark.parametrize("solver", ["hals", "mu"])
def test_the_first_call_is_a_fit(solver):
    X, y = corpus()
    fitted, online = (TSNMF(6, solver=solver, random_state=0, max_iter=20, tol=0) for _ in range(2))
    fitted.fit(X, y)
    online.partial_fit(X, y)
    assert np.array_equal(fitted.components_, online.components_)
    assert np.array_equal(fitted.document_topics_, online.document_topics_)


def squared(X, W, H, weight=1.0):
    return float((weight * np.square(X - W @ H).sum(axis=1)).sum())


@pytest.mark.parametrize("solver", ["hals", "mu"])
def test_the_objective_includes_old_documents_with_their_last_weights(solver):
    X, y = corpus()
    model = TSNMF(5, solver=solver, random_state=0, label_weight=None).fit(X[:150], y[:150])
    old = model.document_topics_ / model.history_.scale
    model.partial_fit(X[150:], y[150:])
    now = squared(X[150:], model.document_topics_, model.components_)
    before = squared(X[:150], old * model.history_.scale, model.components_)
    assert model.objective_history_[-1] == pytest.approx(now + before)
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0])
    assert model.history_.totals[1] == pytest.approx(90 + 150)


def test_the_objective_includes_penalties_of_old_and_new_documents():
    X, y = corpus()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    penalties = np.random.default_rng(0).uniform(0, 0.05, size=(len(X), 4))
    model = TSNMF(random_state=0, label_weight=None).fit(X[:150], y[:150], penalties=penalties[:150])
    old, scale = model.document_topics_, model.history_.scale
    model.partial_fit(X[150:], y[150:], penalties=penalties[150:])
    assert np.linalg.norm(model.components_, axis=1) == pytest.approx(1)
    W = np.vstack([old * model.history_.scale / scale, model.document_topics_])
    expected = squared(X, W, model.components_) + 2 * (penalties * W).sum()
    assert model.objective_history_[-1] == pytest.approx(expected)
    assert np.all(np.diff(model.objective_history_) <= 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", ["balanced", None])
def test_many_small_batches_end_near_a_fit_to_all(dtype, weight):
    X, y = corpus(1200)
    X = sp.csr_array(X.astype(dtype))
    full = TSNMF(5, random_state=0, label_weight=weight).fit(X, y)
    online = TSNMF(5, random_state=0, label_weight=weight)
    for low in range(0, 1200, 60):
        online.partial_fit(X[low : low + 60], y[low : low + 60])
        assert online.components_.dtype == dtype
    weights = np.where([label is None for label in y], 1, 1200 / 300 if weight else 1)
    errors = [squared(X.toarray(), model.transform(X), model.components_, weights) for model in (full, online)]
    assert errors[1] <= 1.02 * errors[0]


def test_known_topics_keep_their_number_and_new_topics_come_before_free_topics():
    X, y = corpus(topics=5)
    first = [i for i in range(150) if y[i] in ("t3", "t1", None)]
    model = TSNMF(4, random_state=0).fit(X[first], [y[i] for i in first])
    assert model.topic_names_.tolist() == ["t1", "t3", "free 1", "free 2"]
    H = model.components_
    model.partial_fit(X[150:], y[150:])
    assert model.topic_names_.tolist() == ["t1", "t3", "t0", "t2", "t4", "free 1", "free 2"]
    assert model.n_known_ == 5
    near = lambda a, b: a @ b / np.linalg.norm(a) / np.linalg.norm(b)  # noqa: E731
    assert near(H[0], model.components_[0]) > 0.9
    assert near(H[1], model.components_[1]) > 0.9
    for row, label in enumerate(y[150:]):
        if label is not None:
            others = [k for k, name in enumerate(model.topic_names_[:5]) if name != label]
            assert not model.document_topics_[row, others].any()
    model.partial_fit(X[:5])
    assert model.document_topics_.shape == (5, 7)


def test_new_names_must_be_in_topics_if_it_is_set():
    X, y = corpus()
    model = TSNMF(topics=["t0", "t1", "t2", "t3"], random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="t9"):
        model.partial_fit(X[:2], ["t9", None])
    model.set_params(topics=["t0", "t1", "t2", "t3", "t9"]).partial_fit(X[:2], ["t9", None])
    assert model.topic_names_.tolist() == ["t0", "t1", "t2", "t3", "t9"]


def test_partial_fit_raises_after_a_fit_that_it_cannot_continue():
    X, y = corpus()
    model = TSNMF(solver="mu", max_iter=2, tol=0).fit(X, y, error_weight=np.ones_like(X))
    with pytest.raises(ValueError, match="error_weight"):
        model.partial_fit(X, y)


def test_histories_can_be_added_subtracted_and_widened():
    X, y = corpus()
    model = TSNMF(5, random_state=0).fit(X, y)
    history = model.history_
    assert history.gram == pytest.approx((history.gram + history.gram.T) / 2)
    twice = history + history
    assert (twice - history).cross == pytest.approx(history.cross)
    wide = history.widen(4, 2, 3)
    assert wide.cross.shape == (43, 7)
    assert wide.gram.shape == (7, 7)
    assert np.array_equal(wide.gram[np.ix_([0, 1, 2, 3, 6], [0, 1, 2, 3, 6])], history.gram)
    assert not wide.gram[4:6].any()
    assert wide.scale.tolist() == [*history.scale[:4], 1, 1, *history.scale[4:]]
    assert not History.empty(3, 2).totals.any()


def test_an_indicator_has_the_known_topics_for_columns():
    found = extend(["b", "a"], np.array([[1.0, np.nan]]), 1)
    assert found.topics == ("b", "a")
    assert found.patterns[found.pattern].tolist() == [[1, -1]]
    assert extend(["b"], [["c"]], 1, complete=False).patterns.tolist() == [[-1, -1], [-1, 1]]
    assert extend(["b"], [["c"]], 1).patterns.tolist() == [[-1, -1], [0, 1]]
