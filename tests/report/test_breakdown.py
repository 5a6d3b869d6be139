"""Shares of groups and over time: order, scales, periods."""

import math

import pytest
from problems import make_shares

from topicsteer.analysis.prevalence import WARNING
from topicsteer.report.breakdown import (
    Breakdown,
    Share,
    TopicLink,
    bar_chart,
    line_chart,
    nice,
    ordinal,
    separation,
    share_part,
)


def breakdown(shares, period=None):
    """A breakdown from {topic: {group: (share, low, high)}}."""
    rows = [(topic, group, *numbers) for topic, groups in shares.items() for group, numbers in groups.items()]
    names = ("topic", "group", "share", "low", "high")
    groups = list(dict.fromkeys(group for groups in shares.values() for group in groups))
    return Breakdown("column", groups, period, dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def test_sure_differences_come_before_large_and_vague_ones():
    found = breakdown(
        {
            "same": {"a": (0.30, 0.29, 0.31), "b": (0.30, 0.29, 0.31)},
            "vague": {"a": (0.1, 0.0, 0.9), "b": (0.8, 0.1, 1.0)},
            "sure": {"a": (0.1, 0.09, 0.11), "b": (0.3, 0.29, 0.31)},
            "no interval": {"a": (0.1, None, None), "b": (0.9, None, math.nan)},
        }
    )
    assert found.order() == ["sure", "same", "vague", "no interval"]
    assert separation([]) == (-math.inf, 0.0)


def test_shares_without_a_value_are_left_out():
    found = breakdown({"a": {"x": (0.5, 0.4, 0.6), "y": (math.nan, None, None), "z": (None, None, None)}})
    assert list(found.shares("a")) == ["x"]


def test_a_warning_stands_out_among_the_notes():
    notes = ["Labels: 9 drawn at random.", f"{WARNING} too few."]
    found = make_shares(["tea"], ["(all)"], "", notes=notes)
    assert share_part(found, 1, {})["warnings"] == [f"{WARNING} too few."]


def test_bars_are_proportional_and_end_inside_the_chart():
    rows = {"a": Share(0.1, 0.05, 0.2), "b": Share(0.4, 0.3, 0.5), "c": Share(0.25, None, None)}
    chart = bar_chart("key", "tea", TopicLink("topic-1", "known"), rows, about="region")
    lengths = [bar.end - chart.left for bar in chart.bars]
    assert lengths[1] == pytest.approx(4 * lengths[0])
    assert chart.bars[1].high == pytest.approx(chart.right)
    assert (chart.bars[2].low, chart.bars[2].high) == (None, None)
    assert chart.label == "Share of tea by region: a: 10.0% (5.0–20.0%); b: 40.0% (30.0–50.0%); c: 25.0%"
    assert bar_chart("key", "tea", TopicLink(), {}).bars == []
    assert bar_chart("key", "tea", TopicLink(), {"a": Share(0.0, 0.0, 0.0)}).bars[0].end == 112


def test_a_period_without_documents_interrupts_the_line():
    months = {"2023-12": (0.1, 0.05, 0.2), "2024-01": (0.2, 0.1, 0.3), "2024-04": (0.4, 0.3, 0.5)}
    found = breakdown({"a": months | {"(missing)": (0.9, 0.8, 1.0)}}, "month")
    chart = line_chart("key", "a", TopicLink(), found)
    assert [len(run) for run in chart.runs] == [2, 1]
    assert len(chart.bands) == 1  # one period alone has no band
    (first, second), (third,) = chart.runs
    assert third.x - second.x == pytest.approx(3 * (second.x - first.x))  # time is to scale
    assert [text for text, *_ in chart.ticks] == ["2023-12", "2024-01", "2024-04"]
    assert [text for text, _ in chart.levels] == ["0%", "25%", "50%"]
    assert "(missing)" not in chart.label


@pytest.mark.parametrize(
    ("period", "names"),
    [
        ("year", ["1999", "2000"]),
        ("quarter", ["1999-Q4", "2000-Q1"]),
        ("month", ["1999-12", "2000-01"]),
        ("week", ["2020-W53", "2021-W01"]),
        ("day", ["2024-02-29", "2024-03-01"]),
    ],
)
def test_neighbouring_periods_have_neighbouring_numbers(period, names):
    before, after = (ordinal(name, period) for name in names)
    assert after == before + 1
    assert ordinal("(missing)", period) is None


def test_scales_end_at_round_numbers():
    assert [nice(value) for value in (0, 0.0003, 0.0101, 0.05, 0.51, 0.81, 1.0)] == [1, 0.0004, 0.02, 0.05, 0.6, 1, 1]


def test_only_the_largest_groups_are_drawn():
    found = make_shares(["a"], [f"g{k}" for k in range(30)])
    sizes = dict(zip(found.table["group"], found.table["documents"], strict=True))
    drawn = found.drawn_shares("a")
    assert set(drawn) == set(sorted(sizes, key=lambda group: -sizes[group])[:16])
    assert list(drawn) == [group for group in found.groups if group in drawn]
