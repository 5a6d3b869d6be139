import numpy as np

from topicsteer.guidance.apply import ROWS, topic_penalties


def slow(P, covered, d, strength=0.1, least=0.01):
    """One pair at a time: the penalty, or None for a forbidden topic."""
    out = []
    for row in P:
        none = max(np.prod([1 - p for p, c in zip(row, covered, strict=True) if c]), least)
        best = max(p for p, c in zip(row, covered, strict=True) if c) or 1
        seen = [p / best if c else 0 for p, c in zip(row, covered, strict=True)]
        penalties = [-strength * np.log(p) if p >= least else None for p in seen]
        out.append(penalties + [-strength * np.log(none)] * (d - len(row)))
    return out


def test_penalties_match_their_slow_twin():
    rng = np.random.default_rng(0)
    P = rng.random((30, 5)).astype(np.float32) ** 6
    P[3] = 0
    P[4] = [1, 0, 0, 0, 0]
    covered = np.array([True, True, False, True, True])
    found = topic_penalties(P, covered, 7)
    assert found.dtype == np.float32
    copies = ROWS // 30 + 1  # two blocks
    many = topic_penalties(np.tile(P, (copies, 1)), covered, 7)
    np.testing.assert_array_equal(many[-30:].toarray(), found.toarray())
    silent = topic_penalties(P, covered, 7, np.arange(30) % 2 == 0)
    np.testing.assert_array_equal(silent[1::2].toarray(), found[1::2].toarray())
    assert (np.diff(silent.indptr)[::2] == 0).all()
    for i, penalties in enumerate(slow(P, covered, 7)):
        entries = slice(found.indptr[i], found.indptr[i + 1])
        assert found.indices[entries].tolist() == [k for k, penalty in enumerate(penalties) if penalty is not None]
        np.testing.assert_allclose(found.data[entries], [p for p in penalties if p is not None], rtol=1e-4, atol=1e-6)


def test_penalties_of_an_open_world_are_weaker_and_spare_free_topics():
    P = np.random.default_rng(1).random((20, 4)).astype(np.float32) ** 6
    covered = np.ones(4, dtype=bool)
    found = topic_penalties(P, covered, 6, open_world=True).toarray()
    for row, penalties in zip(found, slow(P, covered, 4, strength=0.01, least=0.001), strict=True):
        np.testing.assert_allclose(row[:4], [p or 0 for p in penalties], rtol=1e-4, atol=1e-6)
        assert not row[4:].any()


def test_the_likeliest_topic_has_no_penalty():
    found = topic_penalties(np.array([[1e-5, 1e-8]]), np.array([True, True]), 2)
    assert found.indices.tolist() == [0]
    assert found.data.tolist() == [0]
    assert topic_penalties(np.zeros((0, 2)), np.array([True, True]), 3).shape == (0, 3)


def test_names_leave_unlikely_documents_to_free_topics():
    probabilities, covered = np.array([[0.005, 0.002], [0.6, 0.1]]), np.array([True, True])
    plain = topic_penalties(probabilities, covered, 3).toarray()
    named = topic_penalties(probabilities, covered, 3, by_names=True)
    assert named.indices[: named.indptr[1]].tolist() == [2]  # both known topics are forbidden
    np.testing.assert_allclose(named.toarray()[1], plain[1])  # a likely topic: as with labels
    alone = topic_penalties(probabilities, covered, 2, by_names=True)  # without free topics nothing is left to them
    assert alone.indptr.tolist() == [0, 2, 4]
