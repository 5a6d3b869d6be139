import numpy as np

from topicsteer import softmask
from topicsteer.softmask import IMPOSSIBLE, STRENGTH, UNKNOWN, soft_mask


def slow(P, covered, d):
    """One pair at a time: the price, or None where the topic is forbidden."""
    out = []
    for row in P:
        none = max(np.prod([1 - p for p, c in zip(row, covered, strict=True) if c]), IMPOSSIBLE)
        seen = [p if c else UNKNOWN for p, c in zip(row, covered, strict=True)]
        kept = [p > 0 and (p >= IMPOSSIBLE or p == max(seen)) for p in seen]
        prices = [-STRENGTH * np.log(p) if k else None for p, k in zip(seen, kept, strict=True)]
        out.append(prices + [-STRENGTH * np.log(none)] * (d - len(row)))
    return out


def test_soft_mask_is_its_slow_twin(monkeypatch):
    monkeypatch.setattr(softmask, "ROWS", 7)  # several pieces
    rng = np.random.default_rng(0)
    P = rng.random((30, 5)).astype(np.float32) ** 6
    P[3] = 0
    P[4] = [1, 0, 0, 0, 0]
    covered = np.array([True, True, False, True, True])
    found = soft_mask(P, covered, 7)
    assert found.dtype == np.float32
    for i, prices in enumerate(slow(P, covered, 7)):
        entries = slice(found.indptr[i], found.indptr[i + 1])
        assert found.indices[entries].tolist() == [k for k, price in enumerate(prices) if price is not None]
        np.testing.assert_allclose(found.data[entries], [p for p in prices if p is not None], rtol=1e-4, atol=1e-6)


def test_the_likeliest_topic_is_never_forbidden():
    found = soft_mask(np.array([[1e-5, 1e-6]]), np.array([True, True]), 2)
    assert found.indices.tolist() == [0]
    assert soft_mask(np.zeros((0, 2)), np.array([True, True]), 3).shape == (0, 3)
