"""A guide applied to all documents, in memory and on disk."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import write_blocks
from topicsteer.guidance.apply import ROWS, apply_guide, apply_labels, best_thresholds, topic_penalties
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.train import train_guide
from topicsteer.labels.forms import supervise

STARTS = [0, 13, 13, 40, 90]
TOPICS = [(0,), (1,), (2,)]


@pytest.fixture(scope="module", params=["words", "embeddings"])
def problem(request):
    """Documents, embeddings or None, labels of three topics with one that nobody uses, and their guide."""
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, 90)
    X = rng.random((90, 20)) * (rng.random((90, 20)) < 0.3) + (which[:, None] == np.arange(20) // 10)
    X = sp.csr_array(normalize(sp.csr_array(X.astype(np.float32))))
    E = np.eye(2)[which] + rng.normal(size=(90, 2)) if request.param == "embeddings" else None
    supervision = supervise({i: "ab"[which[i]] for i in range(0, 90, 3)}, 90, topics=["a", "nobody", "b"])
    return X, E, supervision, train_guide(as_rows(X), supervision, embeddings=E)


def test_in_memory(problem, tmp_path):
    X, E, supervision, learnt = problem
    seen = []
    found = apply_guide(
        as_rows(X),
        learnt,
        supervision,
        TOPICS,
        5,
        folder=tmp_path,
        embeddings=E,
        threads=1,
        progress=lambda *numbers: seen.append(numbers),
    )
    probabilities = learnt.probabilities(X, embeddings=E)
    memberships = apply_labels(probabilities, supervision)
    np.testing.assert_array_equal(found.memberships, memberships)
    np.testing.assert_array_equal(found.thresholds, best_thresholds(probabilities))
    expected = topic_penalties(memberships, learnt.covers, 5, supervision.permits)
    np.testing.assert_array_equal(found.penalties.toarray(), expected.toarray())
    np.testing.assert_array_equal(found.penalties.indices, expected.indices)
    assert found.penalties.dtype == np.float32
    assert seen == []  # one block needs no progress
    assert list(tmp_path.iterdir()) == []


def test_on_disk(problem, tmp_path):
    X, E, supervision, learnt = problem
    rows = write_blocks(tmp_path / "X", [X[a:b] for a, b in itertools.pairwise(STARTS)])
    (tmp_path / "out").mkdir()
    seen = []
    options = {"folder": tmp_path / "out", "embeddings": E, "threads": 2}
    found = apply_guide(rows, learnt, supervision, TOPICS, 5, progress=lambda *numbers: seen.append(numbers), **options)
    whole = apply_guide(as_rows(X), learnt, supervision, TOPICS, 5, **(options | {"folder": tmp_path}))
    assert {path.name.partition(".")[0] for path in (tmp_path / "out").iterdir()} == {"memberships", "penalties"}
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert found.memberships.dtype == np.float32
    np.testing.assert_allclose(found.memberships, whole.memberships, atol=1e-6)
    np.testing.assert_allclose(found.thresholds, whole.thresholds, atol=1e-6)
    stored = sp.vstack(list(found.penalties))
    assert stored.dtype == np.float32
    np.testing.assert_allclose(stored.toarray(), whole.penalties.toarray(), atol=1e-5)


@pytest.mark.parametrize(("most", "step"), [(90, 1), (89, 2), (30, 3), (29, 4)])
def test_thresholds_of_many_documents_come_from_a_regular_sample(problem, tmp_path, most, step):
    X, E, supervision, learnt = problem
    rows = write_blocks(tmp_path / "X", [X[a:b] for a, b in itertools.pairwise(STARTS)])
    (tmp_path / "out").mkdir()
    options = {"folder": tmp_path / "out", "embeddings": E, "threshold_documents": most}
    found = apply_guide(rows, learnt, supervision, TOPICS, 3, **options)
    expected = best_thresholds(learnt.probabilities(X, embeddings=E)[::step])
    np.testing.assert_allclose(found.thresholds, expected, atol=1e-6)


def test_a_guide_survives_as_arrays(problem):
    X, E, _, learnt = problem
    arrays = learnt.arrays()
    again = Guide.from_arrays(arrays, learnt.n_known)
    np.testing.assert_array_equal(again.probabilities(X, embeddings=E), learnt.probabilities(X, embeddings=E))
    assert (again.choice, again.chosen_from, again.n_known) == (learnt.choice, learnt.chosen_from, 3)
    assert (again.word_round is None) == (learnt.word_round is None)
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def test_a_guide_of_more_documents_and_terms(problem):
    X, E, _, learnt = problem
    moved = learnt.renumbered(learnt.rows + 7, 25)
    np.testing.assert_array_equal(moved.rows, learnt.rows + 7)
    wider = sp.csr_array((X.data, X.indices, X.indptr), shape=(90, 25))
    found = moved.probabilities(wider, embeddings=E)
    np.testing.assert_allclose(found, learnt.probabilities(X, embeddings=E), atol=1e-6)
    assert learnt.renumbered(learnt.rows).basis.shape == learnt.basis.shape


def test_blocks_of_work_do_not_show(problem, tmp_path):
    X, E, supervision, learnt = problem
    one = apply_guide(as_rows(X), learnt, supervision, TOPICS, 5, folder=tmp_path, embeddings=E)
    copies = ROWS // X.shape[0] + 1
    rows = as_rows(sp.csr_array(sp.vstack([X] * copies)))
    labels = replace(supervision, pattern=np.tile(supervision.pattern, copies))
    E = None if E is None else np.tile(E, (copies, 1))
    found = apply_guide(rows, learnt, labels, TOPICS, 5, folder=tmp_path, embeddings=E)
    np.testing.assert_allclose(found.memberships, np.tile(one.memberships, (copies, 1)), atol=1e-6)
    np.testing.assert_allclose(found.thresholds, one.thresholds, atol=1e-6)
    np.testing.assert_allclose(found.penalties[-90:].toarray(), one.penalties.toarray(), atol=1e-5)


def test_thresholds_do_not_depend_on_the_order_of_many_topics():
    probabilities = np.random.default_rng(0).random((300, 20)).astype(np.float32) ** 3
    np.testing.assert_allclose(best_thresholds(probabilities[:, ::-1]), best_thresholds(probabilities)[::-1])
