"""The topic tree in tables, in the terminal and in the report."""

from dataclasses import replace

import numpy as np
import pytest
from problems import make_topics
from report.test_page import HOSTILE, Page

from topicsteer.cli.terminal import as_tree, show_topics
from topicsteer.labels.forest import Forest
from topicsteer.report.page import ReportData, render_report

# sport: tennis, chess; chess: openings; arts; one free topic at the top
NAMES = ("openings", "sport", "arts", "chess", "tennis", "free")
PARENTS = (3, -1, -1, 1, 1)


@pytest.fixture
def topics():
    flat = make_topics(known=5, free=1, names=NAMES)
    forest = Forest(PARENTS)
    memberships = forest.raised(np.random.default_rng(0).random((len(flat.W), 5)).astype(np.float32) ** 3)
    return replace(flat, forest=forest, memberships=memberships)


def report_of(topics, **changes):
    return render_report(ReportData("Leisure", replace(topics, **changes), {}))


def test_the_table_has_level_and_parent(topics):
    table = topics.table()
    assert list(table) == ["topic", "level", "parent", "kind", "labelled", "mean membership", "terms"]
    assert table["level"] == [3, 1, 1, 2, 2, 1]
    assert table["parent"] == ["chess", "", "", "sport", "sport", ""]
    assert list(replace(topics, forest=Forest()).table()) == ["topic", "kind", "labelled", "mean membership", "terms"]


def test_the_row_of_none_stands_at_the_top(topics):
    opened = np.hstack([topics.memberships, np.full((len(topics.W), 2), 0.25, dtype=np.float32)])
    table = replace(topics, memberships=opened).table(none=True)
    assert [values[-1] for values in table.values()][:4] == ["(none)", 1, "", "none"]


def test_the_terminal_puts_children_below_their_parents(topics, capsys):
    table = as_tree(topics.table())
    assert table["topic"] == ["sport", "└ chess", "  └ openings", "└ tennis", "arts", "free"]
    assert table["mean membership"] == [topics.mean_memberships[k] for k in (1, 3, 0, 4, 2, 5)]
    show_topics(topics.table(), "Topics")
    shown = capsys.readouterr().out
    assert "  └ openings" in shown
    assert "%" not in shown  # a mean membership would be read as a share


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text(topics, name):
    page = Page(report_of(topics, names=(*NAMES[:3], name, *NAMES[4:])))
    assert not [
        tag for tag, attributes in page.tags if tag == "img" or "onload" in attributes or "onerror" in attributes
    ]
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 1
