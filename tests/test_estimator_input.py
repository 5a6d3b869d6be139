"""Indicator tables by name, weights of any size, masked arrays and penalties of `TSNMF`."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.problems import make_problem, planted_texts
from topicsteer import TSNMF, TopicModel
from topicsteer.labels.forms import supervise

NAN = float("nan")
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture
def frame(request):
    return FRAMES[request.param]


def indicator(y, names):
    """Labels as columns of 0 and 1, NaN in unlabelled rows."""
    return {name: [float(name in labels) if labels else NAN for labels in y] for name in names}


@pytest.mark.parametrize("frame", FRAMES, indirect=True)
def test_columns_of_an_indicator_are_found_by_name(frame):
    X, y, _ = make_problem(0)
    y = [[f"topic {k}" for k in labels] for labels in y]
    names = [f"topic {k}" for k in range(4)]
    by_list = TSNMF(topics=names).fit(X, y)
    by_table = TSNMF(topics=names).fit(X, frame(indicator(y, names[::-1])))
    np.testing.assert_array_equal(by_table.document_topics_, by_list.document_topics_)
    assert by_table.topic_names_.tolist() == names
    by_table.partial_fit(X, frame(indicator(y, names[::-1])))
    by_list.partial_fit(X, y)
    np.testing.assert_array_equal(by_table.components_, by_list.components_)


@pytest.mark.parametrize("frame", FRAMES, indirect=True)
def test_columns_of_an_indicator_are_found_by_name_in_a_topic_model(frame):
    texts = planted_texts(2)
    labels = {"violin": [NAN] * 80, "chess": [NAN] * 80}
    for i in range(5):
        labels["chess"][i], labels["violin"][i] = 1.0, 0.0
        labels["chess"][40 + i], labels["violin"][40 + i] = 0.0, 1.0
    model = TopicModel(0, topics=["chess", "violin"], world="closed").fit(texts, frame(labels))
    found = model.predict_proba(texts)
    assert found[:40, 0].mean() > 0.8
    assert found[40:, 1].mean() > 0.8
    with pytest.raises(ValueError, match=r"Topics without a column: violin\. Columns without a topic: cello\."):
        TopicModel(topics=["chess", "violin"]).fit(texts, frame({"cello": labels["violin"], "chess": labels["chess"]}))


@pytest.mark.parametrize("frame", FRAMES, indirect=True)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a"], r"without a column: b\. Columns without a topic: none\."),
        (["a", "b", "c"], r"without a column: none\. Columns without a topic: c\."),
        (["c", "a"], r"without a column: b\. Columns without a topic: c\."),
    ],
)
def test_a_missing_or_unknown_column_is_an_error(frame, columns, message):
    table = frame({name: [1.0, 0.0, 1.0] for name in columns})
    with pytest.raises(ValueError, match=message):
        supervise(table, 3, topics=["a", "b"])


def test_numbers_as_columns_are_names_too():
    y = pd.DataFrame([[1, 0], [0, 1]], columns=[7, 3])
    found = supervise(y, 2, topics=["3", "7"])
    assert found.topics == ("3", "7")
    assert found.patterns[found.pattern].tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("dtype", ["boolean", "Int8", "Float32"])
def test_nullable_columns_are_indicators(dtype):
    y = pd.DataFrame({"a": pd.array([1, 0, None], dtype=dtype), "b": pd.array([0, None, None], dtype=dtype)})
    found = supervise(y, 3)
    assert found.patterns[found.pattern].tolist() == [[1, 0], [0, -1], [-1, -1]]
    mixed = y.assign(b=[False, True, True])
    assert supervise(mixed, 3).patterns[supervise(mixed, 3).pattern].tolist() == [[1, 0], [0, 1], [-1, 1]]


def test_nullable_booleans_of_polars_are_indicators():
    y = pl.DataFrame({"a": [True, False, None], "b": [False, None, None]})
    found = supervise(y, 3)
    assert found.patterns[found.pattern].tolist() == [[1, 0], [0, -1], [-1, -1]]


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.bool_, object])
def test_masked_entries_of_an_indicator_are_unknown(dtype):
    y = np.ma.array(np.array([[1, 0], [0, 1]], dtype=dtype), mask=[[False, True], [False, False]])
    found = supervise(y, 2)
    assert found.patterns[found.pattern].tolist() == [[1, -1], [0, 1]]


def test_masked_labels_are_unlabelled():
    names = np.ma.array(["tea", "milk", "tea"], mask=[False, True, False])
    assert supervise(names, 3).labelled.tolist() == [True, False, True]
    numbers = np.ma.array([1, 2, 1], mask=[False, True, False])
    assert supervise(numbers, 3).topics == (1,)
    several = supervise([np.ma.array(["tea", "milk"], mask=[False, True]), []], 2)
    assert several.topics == ("tea",)


def masked(values):
    """The values with their first entry masked."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[0] = True
    return np.ma.array(values, mask=mask)


@pytest.mark.parametrize("name", ["X", "sample_weight", "error_weight", "penalties", "term_constraints", "init"])
def test_masked_arrays_of_numbers_are_refused(name):
    X, y, _ = make_problem(1)
    X = X.toarray()
    n, t = X.shape
    given = {
        "sample_weight": np.ones(n),
        "error_weight": np.ones((n, t)),
        "penalties": np.ones((n, 4)),
        "term_constraints": np.eye(4, t),
    }
    model = TSNMF(solver="mu" if name == "error_weight" else "hals")
    if name == "init":
        model.init = (masked(np.ones((n, 4))), np.ones((4, t)))
    options = {name: masked(given[name])} if name in given else {}
    with pytest.raises(ValueError, match=f"{name} has masked entries"):
        model.fit(masked(X) if name == "X" else X, y, **options)
    model = TSNMF().fit(np.ma.array(X), y)  # a masked array without a masked entry is an array
    with pytest.raises(ValueError, match="X has masked entries"):
        model.transform(masked(X))
    with pytest.raises(ValueError, match="X has masked entries"):
        model.inverse_transform(masked(model.document_topics_))


def test_masked_embeddings_are_refused():
    texts = planted_texts(2, size=10)
    with pytest.raises(ValueError, match="embeddings has masked entries"):
        TopicModel().fit(texts, ["a"] * 5 + [None] * 10 + ["b"] * 5, embeddings=masked(np.ones((20, 3))))


@pytest.mark.parametrize("solver", ["hals", "mu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [1e-6, 1e-3, 1e6, 1e12])
def test_the_size_of_weights_has_no_effect(solver, dtype, weight):
    X, y, _ = make_problem(3, dtype=dtype)
    model = TSNMF(6, solver=solver, max_iter=30, tol=0, random_state=0)
    plain = model.fit(X, y).objective_history_
    scaled = model.fit(X, y, sample_weight=np.full(60, weight))
    np.testing.assert_allclose(scaled.objective_history_ / weight, plain, rtol=1e-3)
    assert (scaled.components_.sum(axis=1) > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [1e-20, 1e-10, 1e20, 1e100, 1e300])
def test_weights_beyond_all_sizes_are_refused(dtype, weight):
    X, y, _ = make_problem(3, dtype=dtype)
    with pytest.raises(ValueError, match=r"largest entry of sample_weight is .*Multiply sample_weight by"):
        TSNMF(6).fit(X, y, sample_weight=np.full(60, weight))
    with pytest.raises(ValueError, match="largest entry of error_weight"):
        TSNMF(6, solver="mu").fit(X, y, error_weight=np.full((60, 40), weight))
    one_small = np.r_[weight, np.ones(59)] if weight < 1 else np.ones(60)
    assert np.isfinite(TSNMF(6).fit(X, y, sample_weight=one_small).objective_history_).all()


@pytest.mark.parametrize("label_weight", [1e-20, 1e20, 1e308])
def test_label_weights_beyond_all_sizes_are_refused(label_weight):
    X, _, _ = make_problem(3)
    with pytest.raises(ValueError, match="label_weight"):
        TSNMF(label_weight=label_weight).fit(X, ["a", "b"] * 30)


@pytest.mark.filterwarnings("ignore:The topics? .* (is|are) empty", "ignore:The objective still fell")
@pytest.mark.filterwarnings("ignore:The labels permit no topic", "ignore:Labelled but without any term")
@pytest.mark.parametrize("seed", range(10))
def test_the_objective_never_rises_with_penalties(seed):
    """300 random problems in all, with alpha_W, alpha_H, penalties of documents, and an update of each fit."""
    rng = np.random.default_rng(seed)
    for number in range(30 * seed, 30 * seed + 30):
        n, t, known, free = (int(rng.integers(*limits)) for limits in ((8, 60), (5, 40), (1, 6), (0, 8)))
        X, y, _ = make_problem(number, n=n, t=t, known=known, free=free, labelled=rng.random())
        alpha_W, alpha_H = rng.choice([0, 1e-3, 1e-2, 0.1, 0.3]), rng.choice([0, 1e-3, 1e-2, 0.1, 0.3])
        model = TSNMF(
            known + free,
            solver=str(rng.choice(["hals", "mu"], p=[0.8, 0.2])),
            init=str(rng.choice(["labels", "acol", "random", "authors"])),
            free_in_labelled=bool(rng.random() < 0.5),
            complete=bool(rng.random() < 0.7),
            alpha_W=alpha_W,
            alpha_H=alpha_H,
            l1_ratio=rng.choice([0, 0.5, 1]),
            tol=0,
            max_iter=40,
            random_state=number,
            threads=1,
        )
        given = {"sample_weight": rng.gamma(1, size=n) + 0.01 if rng.random() < 0.5 else None}
        if not alpha_H and rng.random() < 0.5:
            given["penalties"] = rng.gamma(0.3, size=(n, known + free)) * X.data.max()
        for fit in (model.fit, model.partial_fit):
            objectives = fit(X, y, **given).objective_history_
            assert (np.diff(objectives) <= 1e-9 * objectives[0]).all(), (number, model.get_params())
