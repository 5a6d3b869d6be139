import builtins

import pytest
from problems import make_shares

from topicsteer.report import plots

figures = pytest.importorskip("matplotlib.figure")


def draw(figure):
    """Draw it, so that errors and warnings of the drawing are seen."""
    assert isinstance(figure, figures.Figure)
    figure.draw_without_rendering()
    return figure


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    true = builtins.__import__

    def missing(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return true(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plots.shares(make_shares(["a"], ["g", "h"]))


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
