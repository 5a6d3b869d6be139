"""Rising and falling terms, against scipy's tests and against planted changes."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2_contingency, false_discovery_control

from topicsteer.analysis.groups import EXPECTED, LEVEL, RETURNED, TESTED, term_trends, thirds
from topicsteer.backends import as_rows
from topicsteer.backends.block_folder import BlockFolder, write_blocks


def planted(n=900, terms=40, seed=0):
    """Documents of two topics over 9 periods; term 0 rises and term 1 falls in the first topic only."""
    rng = np.random.default_rng(seed)
    periods = np.repeat(np.arange(9), n // 9)
    topic = rng.integers(0, 2, n)
    share = np.full((n, terms), 0.3)
    share[:, 0] = np.where(topic == 0, 0.1 + 0.6 * periods / 8, 0.3)
    share[:, 1] = np.where(topic == 0, 0.7 - 0.6 * periods / 8, 0.3)
    X = sp.csr_array((rng.random((n, terms)) < share) * rng.random((n, terms)))
    members = np.stack([topic == 0, topic == 1], axis=1)
    H = np.tile(np.linspace(2, 1, terms), (2, 1))
    return X, members, periods, H, [f"term{j}" for j in range(terms)], ["a", "b"]


def test_planted_changes_are_found_and_little_else():
    """In 20 corpora all planted changes are found, the largest first, and at most a tenth of the terms are wrong."""
    wrong = 0
    for seed in range(20):
        X, *rest = planted(seed=seed)
        found = term_trends(as_rows(X), *rest)
        rows = list(zip(*found.values(), strict=True))
        assert {(topic, term) for topic, term, *_ in rows[:2]} == {("a", "term0"), ("a", "term1")}
        changes = {term: change for _, term, _, _, change, _ in rows[:2]}
        assert changes["term0"] > 0.3
        assert changes["term1"] < -0.3
        wrong += len(rows) - 2
    assert wrong <= 10  # about 4 are expected at a rate of 5 %


def test_few_terms_are_reported_where_nothing_changes():
    """False discoveries, in 40 corpora without any change: at most about one in twenty corpora has some."""
    some = 0
    for seed in range(40):
        X, members, periods, H, terms, names = planted(seed=seed)
        periods = np.random.default_rng(seed).permutation(periods)
        some += bool(term_trends(as_rows(X), members, periods, H, terms, names)["term"])
    assert some <= 8  # two families of tests per corpus at 5 %: 4 are expected


def test_shares_and_p_values_equal_those_of_scipy():
    X, members, periods, H, terms, names = planted(n=450, seed=3)
    found = term_trends(as_rows(X), members, periods, H, terms, names)
    first, last = thirds(periods)
    present = X.toarray() > 0
    inside = [members[:, 0] & first, members[:, 0] & last]
    tables = [[[present[rows, j].sum(), (~present[rows, j]).sum()] for rows in inside] for j in range(len(terms))]
    tested = [j for j, table in enumerate(tables) if min(chi2_contingency(table).expected_freq.ravel()) >= EXPECTED]
    p = false_discovery_control([chi2_contingency(tables[j], correction=False).pvalue for j in tested])
    expected = {terms[j]: value for j, value in zip(tested, p, strict=True) if value <= LEVEL}
    rows = [row for row in zip(*found.values(), strict=True) if row[0] == "a"]
    assert {row[1] for row in rows} == set(expected)
    assert expected
    for _, term, before, after, change, value in rows:
        j = terms.index(term)
        assert before == pytest.approx(present[inside[0], j].mean())
        assert after == pytest.approx(present[inside[1], j].mean())
        assert change == pytest.approx(after - before)
        assert value == pytest.approx(expected[term], rel=1e-9)


def test_blocks_on_disk_give_the_same(tmp_path):
    X, *rest = planted(n=450)
    write_blocks(tmp_path / "blocks", [X[:100], X[100:101], X[101:]])
    assert term_trends(BlockFolder(tmp_path / "blocks"), *rest) == term_trends(as_rows(X), *rest)


def test_thirds_are_whole_periods_in_order():
    rng = np.random.default_rng(0)
    for _ in range(200):
        periods = rng.integers(-1, rng.integers(1, 12), size=rng.integers(1, 60))
        first, last = thirds(periods)
        assert not (first & last).any()
        assert not (first | last)[periods < 0].any()
        distinct = np.unique(periods[periods >= 0])
        assert first.any() == last.any() == (len(distinct) > 1)
        if len(distinct) > 1:
            assert periods[first].max() < periods[last].min()
            assert set(periods[first]) == {p for p in distinct if p <= periods[first].max()}
            assert set(periods[last]) == {p for p in distinct if p >= periods[last].min()}


def test_topics_without_documents_and_single_periods_have_no_terms():
    X, members, periods, H, terms, names = planted()
    nothing = {name: [] for name in ("topic", "term", "first", "last", "change", "p")}
    assert term_trends(as_rows(X), np.zeros_like(members), periods, H, terms, names) == nothing
    assert term_trends(as_rows(X), members, np.zeros_like(periods), H, terms, names) == nothing
    assert term_trends(as_rows(X), members, np.full_like(periods, -1), H, terms, names) == nothing


def test_only_strong_terms_and_the_largest_changes_are_returned():
    rng = np.random.default_rng(0)
    n, terms = 600, TESTED + 10
    early = np.arange(n) < n // 2
    X = sp.csr_array((rng.random((n, terms)) < np.where(early, 0.2, 0.8)[:, None]) * 1.0)
    H = np.arange(terms, 0, -1, dtype=float)[None]
    names = [f"t{j}" for j in range(terms)]
    found = term_trends(as_rows(X), np.ones((n, 1), dtype=bool), (~early).astype(np.int64), H, names, ["a"])
    assert len(found["term"]) == RETURNED
    assert all(int(term[1:]) < TESTED for term in found["term"])
    assert found["change"] == sorted(found["change"], key=lambda change: -abs(change))
