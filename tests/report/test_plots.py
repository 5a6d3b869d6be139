import builtins

import numpy as np
import pytest
from problems import make_shares, make_topics

from topicsteer.analysis.document_map import DocumentMap, Layout
from topicsteer.metrics import calibration
from topicsteer.report import plots

figures = pytest.importorskip("matplotlib.figure")


def draw(figure):
    """Draw it, so that errors and warnings of the drawing are seen."""
    assert isinstance(figure, figures.Figure)
    figure.draw_without_rendering()
    return figure


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 5, 30, 100])
def test_topic_map_has_a_circle_and_a_number_for_each_topic(d):
    known = d - d // 3
    figure = draw(plots.topic_map(make_topics(known=known, free=d - known, n=120)))
    axes = figure.axes[0]
    assert len(axes.patches) == d
    assert {str(k + 1) for k in range(d)} <= {text.get_text() for text in axes.texts}
    edges = {patch.get_linestyle() for patch in axes.patches}
    assert len(edges) == (2 if d > 1 else 1)  # free topics are dashed
    assert [text.get_text() for text in axes.get_legend().texts] == ["known topic", "free topic"]


def test_term_bars_has_a_bar_for_each_term():
    topics = make_topics()
    figure = draw(plots.term_bars(topics, n_terms=4))
    assert len(figure.axes) == 5
    for k, axes in enumerate(figure.axes):
        assert len(axes.patches) == 4
        assert [label.get_text() for label in axes.get_yticklabels()] == topics.top_terms(k, 4)
        assert bool(axes.patches[0].get_hatch()) == (k >= 3)
    assert figure.axes[4].get_title(loc="left") == "5  topic 4 (free)"


def test_term_bars_of_some_topics_and_of_hostile_names():
    topics = make_topics(names=("$a$ \\frac{", "b" * 500, "\u202ec", "d_{x}", "e\nf"))
    figure = draw(plots.term_bars(topics, [3, "$a$ \\frac{"]))
    assert len(figure.axes) == 2
    with pytest.raises(KeyError, match="there is no topic 'nothing'"):
        plots.term_bars(topics, ["nothing"])
    draw(plots.topic_map(topics))


@pytest.mark.parametrize("d", [2, 30, 100])
def test_topics_by_group_holds_the_shares_of_each_group(d):
    topics = make_topics(known=d, free=0)
    groups = [2020 + i % 3 for i in range(40)]
    axes = draw(plots.topics_by_group(topics, groups)).axes[0]
    shares = axes.images[0].get_array()
    assert shares.shape == (d, 3)
    np.testing.assert_allclose(shares[:, 1], topics.proportions[1::3].mean(axis=0))
    np.testing.assert_allclose(shares @ [14, 13, 13], 40 * topics.share)  # one share, in the table and here
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2020", "2021", "2022"]


def test_groups_of_several_types_and_of_a_wrong_number():
    topics = make_topics(n=4)
    axes = draw(plots.topics_by_group(topics, ["b", None, 3, "a long name"])).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["None", "3", "a long name", "b"]
    with pytest.raises(ValueError, match="groups has 3 entries for 4 documents"):
        plots.topics_by_group(topics, [1, 2, 3])


def test_objective():
    axes = draw(plots.objective([9.0, 4.0, 3.5])).axes[0]
    assert list(axes.lines[0].get_ydata()) == [9.0, 4.0, 3.5]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "objective")


def test_learning_curve_tells_methods_apart_without_colour():
    rows = {f"method {i}": ([1, 10, 100], [0.1 * i, 0.2 * i, 0.3 * i]) for i in range(10)}
    axes = draw(plots.learning_curve(rows)).axes[0]
    assert [text.get_text() for text in axes.get_legend().texts] == list(rows)
    assert axes.get_xscale() == "log"
    assert len({(line.get_marker(), str(line._dash_pattern)) for line in axes.lines}) == 10
    assert draw(plots.learning_curve({"a": ([5, 10], [0.1, 0.2])})).axes[0].get_xscale() == "linear"


def test_reliability_shows_the_bins_that_hold_something():
    rng = np.random.default_rng(0)
    found = calibration(rng.random((200, 2)) < 0.5, rng.random((200, 2)) * 0.5)
    axes = draw(plots.reliability(found)).axes[0]
    some = found.pairs > 0
    assert 0 < some.sum() < 15
    np.testing.assert_allclose(
        axes.collections[0].get_offsets(), np.stack([found.predicted[some], found.observed[some]], axis=1)
    )
    assert f"{found.error:.3f}" in axes.get_title(loc="left")
    assert not draw(plots.reliability(calibration(np.zeros((0, 1)), np.zeros((0, 1))))).axes[0].collections


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    true = builtins.__import__

    def missing(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return true(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plots.objective([1.0])


@pytest.mark.parametrize(("points", "pixels"), [(1, False), (300, False), (5001, True)])
def test_document_map_has_a_point_per_document(points, pixels):
    rng = np.random.default_rng(0)
    layout = Layout(np.arange(points), rng.random((points, 2)).astype(np.float32), 1.5, "umap", points)
    names = ("$tea$", "coffee", "free one", "(none)")
    topic = rng.integers(0, 4, points)
    found = DocumentMap(layout, names, 2, topic, np.ones(points), np.zeros(points, dtype=bool))
    axes = draw(plots.document_map(found)).axes[0]
    assert sum(len(some.get_offsets()) for some in axes.collections) == points
    assert {some.get_rasterized() for some in axes.collections} == {pixels}
    assert {text.get_text() for text in axes.texts} == {names[k].replace("$", r"\$") for k in set(topic)}


def test_shares_by_group_and_over_time():
    found = make_shares([f"topic {k}" for k in range(30)], [f"g{k}" for k in range(20)])
    figure = plots.shares(found)
    assert len(figure.axes) == 24  # with the largest differences
    assert figure.axes[0].get_title(loc="left") == found.order()[0]
    assert len(figure.axes[0].patches) == 16  # groups with most documents
    chosen = plots.shares(found, ["topic 3", "topic 1"])
    assert [axes.get_title(loc="left") for axes in chosen.axes] == ["topic 3", "topic 1"]
    months = plots.shares(make_shares(["a"], ["2023-11", "2023-12", "2024-02", "(missing)"], "date", "month"))
    first, second = months.axes[0].lines
    assert first.get_xdata()[1] - first.get_xdata()[0] == 1
    assert second.get_xdata()[0] - first.get_xdata()[1] == 2  # a month without documents
    overall = plots.shares(make_shares(["a", "b"], ["(all)"], ""))
    assert [label.get_text() for label in overall.axes[0].get_yticklabels()] == ["a", "b"]
