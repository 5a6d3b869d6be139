"""Every figure that commands, report and paper trail print of a model, with its truth."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from rich.console import Console

from experiments.honesty.corpora import World
from experiments.honesty.states import Given
from experiments.shared.internals import belief_of, terminal
from topicsteer import TopicModel

# A share, score or probability in a text, and the same with its interval. Whole numbers are counts.
NUMBER = re.compile(r"(?<![\w.:-])(?:\d+(?:\.\d+)?\s?%|[01]\.\d+)(?![\w.])")
INTERVAL = re.compile(
    r"\d+(?:\.\d+)?%? \(\d+(?:\.\d+)?%?(?:–| to )\d+(?:\.\d+)?%?\)"  # 8.1% (6.0–10.4%)
)
# Share, low and high in the row of a table, and κ in the table of coders.
ROW = re.compile(r"-?\d+\.\d%[ |]+-?\d+\.\d%[ |]+-?\d+\.\d%|-?\d\.\d{3}[ |]+-?\d\.\d{3}[ |]+-?\d\.\d{3}")
# Numbers that are no findings: the level of intervals, versions, settings, and counts of labels with their percentage.
FACTS = re.compile(r"95\s?%|topicsteer \d+\.\d+\.\d+|[\d,]+ of [\d,]+ \(\d+\.\d%\)|^- \w+: [\d.]+$", re.MULTILINE)


class Figure(NamedTuple):
    """A printed number: its kind, name, value, interval (None without one) and truth."""

    kind: str
    name: str
    value: float
    low: float | None
    high: float | None
    truth: float | None


def figures(world: World, given: Given, model: TopicModel) -> tuple[list[Figure], list[str]]:
    """All figures with their truth, and the bare numbers of the texts, which have none."""
    found: list[Figure] = []
    texts = [model.belief, belief_of(model, Path("model")), repr(model), printed_topics(model)]
    evaluation = None
    if given.labels:
        try:
            evaluation = model.evaluate()
        except ValueError:  # too few labels; the message has no figure
            evaluation = None
    if evaluation is not None:
        texts.append(printed(terminal.show_evaluation, evaluation))
        found += scores(world, given, model, evaluation)
    shares = model.findings.shares()
    found += shares_of(world, shares)
    texts += [*shares.sentences, shares.advice(0.02)]
    if given.group:
        grouped = model.findings.shares("office")
        found += groups(world, given, grouped)
        texts += grouped.sentences
    if given.answers:
        found += coded(world, given, model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        model.report(path, evaluation=evaluation, by=["office"] if given.group else [])
        texts.append(page_text(path.read_text(encoding="utf-8")))
    texts.append(model.findings.methods(evaluation=evaluation, shares=shares))
    return found, sorted({number for text in texts for number in bare(text)})


# --- texts ---


def printed(function: Any, *values: Any) -> str:
    """Return the output of a function in a wide terminal."""
    out = io.StringIO()
    with redirect_stdout(out), mock.patch.object(terminal, "console", Console(file=out, width=200)):
        function(*values)
    return out.getvalue()


def printed_topics(model: TopicModel) -> str:
    """The table of topics, as `topicsteer fit` and `topicsteer topics` print it."""
    return printed(terminal.show_topics, model.state_.topics.table(none=True), "Topics", model.belief)


HIDDEN = ("script", "style", "svg")


class Text(HTMLParser):
    """The visible text of a page, a line per row of a table; without charts, whose values are in the tables."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Leave scripts, styles and charts out."""
        self._hidden += tag in HIDDEN
        self.parts.append("\n" if tag in ("tr", "p", "li", "section", "dt") else "")

    def handle_endtag(self, tag: str) -> None:
        """Come back."""
        self._hidden -= tag in HIDDEN

    def handle_data(self, data: str) -> None:
        """Keep what people see."""
        if not self._hidden:
            self.parts.append(data)


def page_text(page: str) -> str:
    """The visible text of a page."""
    parser = Text()
    parser.feed(page)
    return " ".join(parser.parts)


def bare(text: str) -> Iterator[str]:
    """Numbers without an interval that could be taken for a finding, each with some words around it."""
    for line in text.splitlines():
        rest = FACTS.sub("", ROW.sub("", INTERVAL.sub("", line)))
        for found in NUMBER.finditer(rest):
            yield " ".join(rest[max(found.start() - 40, 0) : found.end() + 20].split())


# --- figures with their truth ---


def shares_of(world: World, shares: Any) -> list[Figure]:
    """Shares in the whole corpus."""
    true = world.shares
    rows = zip(*(shares.table()[name] for name in ("topic", "group", "share", "low", "high")), strict=True)
    return [
        Figure("share", topic, share, low, high, true.get(topic))
        for topic, group, share, low, high in rows
        if group == "(all)" and share is not None
    ]


def groups(world: World, given: Given, shares: Any) -> list[Figure]:
    """Shares in groups, and their differences."""
    office, Y = np.array(given.group), np.column_stack([world.Y, ~world.Y.any(axis=1)])
    names = [*world.topics, "(none)"]
    true = {(name, own): float(Y[office == own, k].mean()) for k, name in enumerate(names) for own in set(office)}
    found, table = [], shares.table()
    for topic, group, share, low, high in zip(
        *(table[name] for name in ("topic", "group", "share", "low", "high")), strict=True
    ):
        if group != "(all)" and share is not None:
            found.append(Figure("share in a group", topic, share, low, high, true.get((topic, group))))
    table = shares.differences()
    for topic, a, b, value, low, high in zip(
        *(table[name] for name in ("topic", "group", "other", "difference", "low", "high")), strict=True
    ):
        if (topic, a) in true:
            found.append(Figure("difference", topic, value, low, high, true[topic, a] - true[topic, b]))
    return found


def scores(world: World, given: Given, model: TopicModel, evaluation: Any) -> list[Figure]:
    """Precision and recall of `evaluate`; the truth are the predictions of unlabelled documents by the whole model."""
    if not evaluation.random:
        return []
    place = {name: k for k, name in enumerate(world.topics)}
    topics = [place[name] for name in evaluation.names]
    decided = np.zeros(world.Y.shape, dtype=bool)
    for row, own in enumerate(model.predict(world.texts)):
        decided[row, [place[name] for name in own if name in place]] = True
    left = np.setdiff1d(np.arange(len(world.texts)), list(given.labels))
    Y, D = world.Y[np.ix_(left, topics)], decided[np.ix_(left, topics)]
    table, found = evaluation.shown(), []
    for measure, whole in (("precision", D), ("recall", Y)):
        pooled = re.search(rf"{measure} (\S+) \((\S+)–(\S+)\)", evaluation.scope)
        if pooled:
            value, low, high = map(float, pooled.groups())
            found.append(Figure(measure, "all topics", value, low, high, (Y & D).sum() / max(whole.sum(), 1)))
        for k, (name, text) in enumerate(zip(table["topic"], table.get(measure, []), strict=False)):
            numbers = re.match(r"(\S+) \((\S+)–(\S+)\)", text)
            if numbers and whole[:, k].any():
                value, low, high = map(float, numbers.groups())
                truth = (Y & D)[:, k].sum() / whole[:, k].sum()
                found.append(Figure(f"{measure} of a topic", name, value, low, high, float(truth)))
    return found


def coded(world: World, given: Given, model: TopicModel) -> list[Figure]:
    """Shares with a coder, and the coder's errors."""
    shares = model.findings.shares(coders={"program": given.answers})
    found = [figure._replace(kind="share with a coder") for figure in shares_of(world, shares)]
    place = {name: k for k, name in enumerate(world.topics)}
    answers = np.zeros(world.Y.shape, dtype=bool)
    for row, own in enumerate(given.answers or []):
        answers[row, [place[name] for name in own if name in place]] = True
    table = model.findings.coders({"program": given.answers})
    for row in table.rows(named=True):
        if row["topic"] not in place:
            continue
        a, y = answers[:, place[row["topic"]]], world.Y[:, place[row["topic"]]]
        chance = a.mean() * y.mean() + (~a).mean() * (~y).mean()
        true = {
            "precision": (a & y).sum() / max(a.sum(), 1),
            "recall": (a & y).sum() / max(y.sum(), 1),
            "kappa": ((a == y).mean() - chance) / (1 - chance),
        }
        for measure, truth in true.items():
            if row[measure] is not None and row[f"{measure}_low"] is not None:
                low, high = row[f"{measure}_low"], row[f"{measure}_high"]
                found.append(Figure(f"{measure} of a coder", row["topic"], row[measure], low, high, float(truth)))
    return found
