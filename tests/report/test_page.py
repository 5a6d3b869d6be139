import base64
import hashlib
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import make_shares, make_topics

from topicsteer.analysis.evaluation import Evaluation, Scores
from topicsteer.metrics import AveragePrecision, Decisions
from topicsteer.report.breakdown import Breakdown
from topicsteer.report.page import Example, ReportData, render_report, write

VOID = {"meta", "input", "link", "br", "img"}
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</title></style></script><svg onload=alert(1)>",
    "javascript:alert(1)\u202e\u2066\x00\ud800",
    "{{7*7}} {% raw %} {# no #} ${x} %s %(a)s {0}",
]


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails where tags do not match."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts, self.ids = [], [], [], set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if "id" in dict(attributes):
            assert dict(attributes)["id"] not in self.ids
            self.ids.add(dict(attributes)["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self):
        return "".join(text for tag, text in self.texts if tag not in ("script", "style"))


def make_data(topics=None, **changes):
    topics = topics or make_topics()
    data = {
        "title": "A title",
        "topics": topics,
        "examples": {0: [Example("doc0", "rain at noon", ((0, 4, 1.0),))], 1: []},
    }
    return ReportData(**(data | changes))


def make_evaluation(names=("topic 0", "topic 1"), found=None, **changes):
    """Topicsteer ranks the first topic best, logistic regression the second."""
    n, sided = len(names), np.ones(len(names), dtype=bool)

    def method(first, other, right):
        scores = np.where(np.arange(n) == 0, first, other)
        decisions = Decisions(np.full(n, right), np.full(n, 10.0), np.full(n, 10.0))
        return Scores(AveragePrecision(scores, float(scores.mean())), decisions, sided)

    values = {
        "names": names,
        "counts": np.full(n, 30),
        "scores": found or {"topicsteer": method(0.9, 0.2, 8.0), "logistic regression": method(0.7, 0.3, 9.0)},
        "folds": 3,
        "labelled": 60,
    }
    return Evaluation(**(values | changes))


@pytest.mark.parametrize("d", [1, 5, 30, 100])
@pytest.mark.parametrize("evaluation", [None, make_evaluation()])
def test_page_is_well_formed_and_holds_every_topic(d, evaluation):
    topics = make_topics(known=d - d // 3, free=d // 3)
    page = Page(render_report(make_data(topics, evaluation=evaluation)))
    text = page.text()
    assert all(name in text for name in topics.names)
    assert {f"topic-{k + 1}" for k in range(d)} <= page.ids
    links = {a["href"] for tag, a in page.tags if tag == "a"}
    assert all(link.startswith("#") and link[1:] in page.ids for link in links)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 2, 17, 60])
@pytest.mark.parametrize("topics", [1, 5, 30])
def test_charts_and_tables_of_shares(topics, groups):
    data = make_topics(known=topics, free=0)
    names, years = [f"group {k}" for k in range(groups)], [str(1990 + k) for k in range(groups)]
    shares = [
        make_shares(data.names, ["all"], ""),
        make_shares(data.names, names, "region"),
        make_shares(data.names, years, "date", "year"),
    ]
    page = Page(render_report(make_data(data, shares=shares)))
    text = page.text()
    assert all(name in text for name in (*names, *years))
    assert {f"shares-{k}-table" for k in range(3)} <= page.ids
    kinds = [a["class"].split()[0] for tag, a in page.tags if tag == "svg" and "shares" in a.get("class", "")]
    assert kinds == ["shares-bars"] * (1 + min(topics, 24)) + ["shares-line"] * min(topics, 24)
    bars = [a for tag, a in page.tags if tag == "rect" and a.get("class") == "share"]
    assert len(bars) == topics + min(topics, 24) * min(groups, 16)
    assert all(float(a["width"]) >= 0 for a in bars)
    assert ("The charts show" in text) == (topics > 24 or groups > 16)
    links = {a["href"] for tag, a in page.tags if tag == "a"}
    assert all(link.startswith("#") and link[1:] in page.ids for link in links)


@pytest.mark.slow
def test_a_long_table_of_shares_is_cut_and_says_so():
    names = [f"topic {k}" for k in range(30)]
    shares = [make_shares(names, [f"group {k}" for k in range(200)], "region")]
    page = render_report(make_data(make_topics(known=30, free=0), shares=shares))
    assert "The table has 5,000 of 6,000 rows, and prevalence --out has all." in page
    assert len(re.findall(r'<th scope="row"><bdi>topic \d+</bdi></th>', page)) >= 5000
    assert len(page) < 6_000_000


def test_a_report_without_shares_has_no_such_table():
    assert "shares-0-table" not in Page(render_report(make_data())).ids
    assert "shares" in Page(render_report(make_data(shares=[make_shares(["topic 0"], ["all"], "")]))).ids


def test_nothing_is_fetched_and_only_the_one_style_and_script_may_act():
    page = render_report(make_data(evaluation=make_evaluation()))
    tags = Page(page).tags
    assert not {"src", "srcset", "style", "action", "data", "poster"} & {name for _, a in tags for name in a}
    assert not [name for _, a in tags for name in a if name.startswith("on")]
    assert not re.search(r"https?:|//[a-z]|@import|url\(|fetch\(|XMLHttp|eval\(|innerHTML", page)
    policy = next(a["content"] for tag, a in tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        inside = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(inside) == 1
        assert f"'sha256-{base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()}'" in policy


def test_landmarks_labels_and_what_the_script_needs():
    page = render_report(make_data())
    parsed = Page(page)
    tags = [tag for tag, _ in parsed.tags]
    assert [tags.count(tag) for tag in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    labelled = {a["for"] for tag, a in parsed.tags if tag == "label"}
    assert labelled == {a["id"] for tag, a in parsed.tags if tag == "input"} == {"cards-search", "topic-table-search"}
    assert {a["data-filter"] for tag, a in parsed.tags if tag == "input"} <= parsed.ids
    assert 'setAttribute("aria-sort"' in page
    assert "input[data-filter]" in page


def everywhere(text):
    """A report with a text wherever a user's text can stand."""
    topics = make_topics(names=tuple(f"{text}{k}" for k in range(5)))
    object.__setattr__(topics, "vocabulary", np.array([f"{text}{j}" for j in range(30)], dtype=object))
    names = list(topics.names[:3])
    return make_data(
        topics,
        title=text,
        examples={0: [Example(text, f"a {text} b", ((0, 1, 0.5),))]},
        evaluation=make_evaluation(tuple(names), not_judged=(text,)),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_displayed_and_does_nothing(text):
    page = render_report(everywhere(text))
    calm = render_report(everywhere("calm"))
    count = page.count("<svg"), page.count("<script"), page.count("<img")
    assert count == (calm.count("<svg"), 1, 0)
    assert not re.search("[\x00\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)
    assert not [name for _, a in Page(page).tags for name in a if name.startswith("on")]
    if "\ud800" not in text:
        assert text in Page(page).text()
    page.encode()


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=40))
def test_any_text_leaves_the_page_whole(text):
    page = Page(render_report(everywhere(text)))
    assert [sum(tag == name for tag, _ in page.tags) for name in ("script", "style", "h1")] == [1, 1, 1]
    assert {a["href"][0] for tag, a in page.tags if tag == "a"} == {"#"}


def test_long_texts_are_cut_and_said_to_be():
    data = make_data(examples={0: [Example(7, "A" * 5_000_000)]}, title="t" * 10_000)
    page = render_report(data)
    assert len(page) < 100_000
    assert "more characters" in page


def test_numbers_of_the_header():
    topics = make_topics()
    text = Page(render_report(make_data(topics))).text()
    for number in (40, 30, 3, 2, int(topics.labelled.sum())):
        assert re.search(rf"\D{number}\D", text)


def open_topics(none=0.25, columns=6):
    """Three known and two free topics; the last column of memberships is the probability of no known topic."""
    memberships = np.full((40, columns), 0.125)
    memberships[:, -1] = none
    return replace(make_topics(), memberships=memberships, outsiders=np.arange(40) < 4)


def test_the_belief_stands_in_the_header():
    belief = "Every document seems to have one of your 3 topics."
    text = " ".join(Page(render_report(make_data(belief=belief))).text().split())
    assert belief in text


def test_the_page_shows_no_share_without_an_interval_and_the_table_ends_with_none():
    page = render_report(make_data(open_topics()))
    assert "%" not in Page(page).text()
    last = page.split('id="topic-table"')[1].split("</table>")[0].split("<tr>")[-1]
    assert re.findall(r">([^<>\s]+)<", last) == ["(none)", "none", "4"]
    assert "(none)" not in render_report(make_data())


def test_the_report_shows_the_one_verdict():
    evaluation = make_evaluation(not_judged=("tea",), scope="Scores of 60 documents (drawn at random).")
    page = render_report(make_data(evaluation=evaluation))
    text = Page(page).text()
    assert len(evaluation.findings) == 5
    for finding in evaluation.findings:
        assert finding in text
        assert f'<p class="note">{finding}</p>' in page
    assert "By average precision, topicsteer finds the hidden labels best." in text
    assert "Logistic regression is ahead in macro precision" in text
    assert "Logistic regression is ahead in 1 of 2 topics." in text


def test_an_evaluation_shows_counts_and_intervals_but_no_bare_score():
    def table(evaluation):
        page = render_report(make_data(evaluation=evaluation))
        start = page.index('id="evaluation-topics"')
        return page[start : page.index("</table>", start)]

    assert "8 of 10" in table(make_evaluation())
    assert not re.search(r"\d\.\d", table(make_evaluation()))
    interval = r"\d\.\d\d \(\d\.\d\d–\d\.\d\d\)"
    assert re.search(interval, table(make_evaluation(random=True)))
    assert not re.search(r"\d\.\d", re.sub(interval, "", table(make_evaluation(random=True))))


def test_an_evaluation_of_too_few_labels_has_no_tables():
    sided = np.zeros(2, dtype=bool)
    some = make_evaluation().scores["topicsteer"]
    few = make_evaluation(found={"topicsteer": replace(some, two_sided=sided)}, complete=True)
    page = render_report(make_data(evaluation=few))
    assert few.verdict in Page(page).text()
    assert 'id="evaluation-topics"' not in page


def test_not_evaluated_says_what_to_run():
    text = Page(render_report(make_data())).text()
    assert "Not evaluated." in text
    assert "topicsteer evaluate" in text


def test_the_same_data_gives_the_same_page():
    assert render_report(make_data()) == render_report(make_data())


def test_write_replaces_the_file_only_when_it_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write(make_data(), path)
    first = path.read_text("utf-8")
    assert first == render_report(make_data())
    write(make_data(title="Another"), str(path))
    assert "Another" in path.read_text("utf-8")

    if os.name != "nt":  # readable as any new file is
        (tmp_path / "new").touch()
        assert path.stat().st_mode == (tmp_path / "new").stat().st_mode
        (tmp_path / "new").unlink()

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        write(make_data(title="Third"), path)
    assert "Another" in path.read_text("utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_report_begins_with_shares_the_largest_first_and_then_topics_by_size():
    names = make_topics(known=3, free=1).names
    table = {"topic": list(names), "group": ["(all)"] * 4, "share": [0.1, 0.4, 0.3, None]}
    table |= {"low": [0.05, 0.3, 0.2, None], "high": [0.2, 0.5, 0.4, None]}
    data = make_data(topics=make_topics(known=3, free=1), shares=[Breakdown("", ["(all)"], None, table)])
    page = render_report(data)
    parts = [page.index(f'<section id="{key}"') for key in ("shares", "topics", "all")]
    assert parts == sorted(parts)
    bars = re.findall(r'<text class="group"[^>]*>([^<]+)</text>', page[parts[0] : parts[1]])
    assert bars == [names[1], names[2], names[0]]  # the free topic has no share
    cards = re.findall(r'<article class="card [a-z]+" id="topic-(\d)"', page)
    assert [card for card in cards if card != "4"] == ["2", "3", "1"]
    assert page.index("<details>", parts[2]) < page.index('id="topic-table"')


def test_a_report_without_shares_reads_how_to_learn_them_and_which_columns_are_groups():
    text = " ".join(Page(render_report(make_data(offered=["region", "date"]))).text().split())
    assert "No share is known: label 50 documents at random, drawn with suggest --for shares -n 50" in text
    assert "topicsteer report with --by region , --by date" in text or "--by region, --by date" in text
