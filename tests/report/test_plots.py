import builtins

import pytest
from problems import make_shares, make_topics

from topicsteer.report import plots

figures = pytest.importorskip("matplotlib.figure")


def draw(figure):
    """Draw it, so that errors and warnings of the drawing are seen."""
    assert isinstance(figure, figures.Figure)
    figure.draw_without_rendering()
    return figure


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


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    true = builtins.__import__

    def missing(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return true(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plots.term_bars(make_topics())


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
