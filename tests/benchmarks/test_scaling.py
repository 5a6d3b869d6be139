"""The generator of large corpora and the cost model of `benchmarks/scaling.py`."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import data
from benchmarks.costmodel import Costs, Size, fitted, simulate

COSTS = Costs(s=0.1, h=4e-10, k=2e-9, a=5e-10, b=3e-8, o=1e-3)


@pytest.fixture
def small(tmp_path):
    """Return the size of a small corpus, and where and how it is made."""
    return (1_100, 300, 20, 5), {"piece": 200, "cache": tmp_path}


def test_blocks_are_the_rows_of_the_matrix(small):
    size, made = small
    whole = data.synthetic(*size, **made)
    folder = data.synthetic_blocks(*size, pieces=2, **made)
    assert [block.shape[0] for block in folder] == [400, 400, 300]
    np.testing.assert_array_equal(sp.vstack(list(folder)).toarray(), whole.toarray())
    np.testing.assert_allclose(sp.linalg.norm(whole, axis=1), 1, rtol=1e-5)


def test_labels_are_topics_that_a_row_was_made_of(small):
    size, made = small
    labels = data.synthetic_labels(*size, rate=0.2, **made)
    assert 150 < len(labels) < 290
    assert {len(names) for names in labels.values()} == {1, 2, 3}
    of = np.load(next(made["cache"].glob("topics-*.npy")))
    for row, names in labels.items():
        assert names == sorted({f"topic {k:03d}" for k in of[row] if k >= 0})


def sizes():
    grid = [(n, t, d, P) for n in (10**5, 3 * 10**5) for t in (20_000, 50_000) for d in (50, 100) for P in (1, 2)]
    return [Size(n, 61 * n, t, d, P, P, 4 * P) for n, t, d, P in grid]


def test_constants_are_found_again():
    rng = np.random.default_rng(0)
    exact = fitted(sizes(), [COSTS.seconds(size) for size in sizes()], COSTS.o)
    np.testing.assert_allclose(list(vars(exact).values()), list(vars(COSTS).values()), rtol=1e-6)
    noisy = fitted(sizes(), [COSTS.seconds(size) * rng.uniform(0.95, 1.05) for size in sizes()], COSTS.o)
    assert all(value >= 0 for value in vars(noisy).values())
    assert all(abs(noisy.seconds(size) / COSTS.seconds(size) - 1) < 0.05 for size in sizes())


@pytest.mark.parametrize("P", [1, 2, 8, 64])
def test_the_simulation_agrees_with_the_formula(P):
    size = Size(10**8, 61 * 10**8, 50_000, 100, P, 2, 192)
    assert simulate(COSTS, size) == pytest.approx(COSTS.seconds(size), rel=0.05)


def test_a_simulation_by_hand():
    """One worker, two tasks, nothing but work and a byte's way: there with H (1), two tasks (3 each), back (1)."""
    costs, size = Costs(s=0, h=0, k=1 / 4, a=1, b=0, o=0), Size(1, 6, 1, 1, 1, 1, 2)
    assert simulate(costs, size) == 1 + 6 + 1 == costs.seconds(size)


def seconds(P):
    return COSTS.seconds(Size(10**8, 61 * 10**8, 50_000, 100, P, 2, 192))


def test_twice_the_workers_halve_the_time_while_tasks_dominate():
    assert all(math.isclose(a, 2 * b, rel_tol=0.05) for a, b in itertools.pairwise(map(seconds, (1, 2, 4, 8))))


@pytest.mark.parametrize("cost", [COSTS.seconds, lambda size: simulate(COSTS, size)], ids=["formula", "simulation"])
def test_more_workers_than_tasks_do_not_help(cost):
    fewer, as_many, more = (cost(Size(10**8, 61 * 10**8, 50_000, 100, P, 2, 192)) for P in (96, 192, 384))
    assert fewer > 1.2 * as_many
    assert more >= as_many
