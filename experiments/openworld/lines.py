"""Questions that the tables of methods do not answer: `python -m experiments.openworld.lines` writes LINES.md.

- eight: 8 topics are named, 3 to 100 labels each; precision and recall of `predict`. If 12 % of the labelled documents
  are marked as outsiders, also the precision and recall that `evaluate` claims for the corpus as it is.
- recall: recall with half of the topics hidden, against a model that assumes a known topic in every document.
- stability: free topics that come back with another seed, and with a tenth more labels.
- closed: all topics have labels; whether the world counts as open, and the free topics of "auto".
- undeclared: half of the topics hidden, three labels per topic, nothing declared; whether the world counts as open.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from experiments.openworld.measures import judge_decisions
from experiments.openworld.ours import given, texts
from experiments.openworld.page import LABELS, TITLES
from experiments.openworld.worlds import World, draw, draw_by_topic
from experiments.shared import internals
from experiments.shared.corpora import load
from experiments.shared.fingerprints import meaning
from experiments.shared.pool import carry_out, stopped
from experiments.shared.store import Store
from experiments.shared.terminal import RESULTS, table
from topicsteer import TopicModel

HERE = Path(__file__).parent
SEEDS = 3
# Number of topics that are named in the first question, and the share of outsiders among labelled documents.
NAMED, OUTSIDERS = 8, 0.12
# Terms of a free topic that are compared, and the share of them that must come back.
TOP, SAME = 10, 0.5
SINGLE = ("newsgroups-headers", "newsgroups-6000", "reuters-100")
ALL = (*SINGLE, "pubmed-8000")


@dataclass(frozen=True)
class Line:
    """A question about one draw; ``outsiders``: share of outsiders among the labelled documents."""

    question: str
    corpus: str
    budget: str
    outsiders: float
    seed: int
    version: str

    @property
    def key(self) -> str:
        """The configuration as text."""
        return json.dumps(asdict(self), sort_keys=True)


def plan() -> list[Line]:
    """All questions, seed by seed."""
    version = sha256("\n".join(map(meaning, internals.fitting_sources())).encode()).hexdigest()[:12]
    cells = [("eight", "newsgroups-headers", f"k{n}", out) for n in (3, 4, 10, 30, 100) for out in (0.0, OUTSIDERS)]
    cells += [("recall", name, budget, 0.0) for name in ALL for budget in ("k3", "10 %")]
    cells += [("stability", name, "10 %", 0.0) for name in SINGLE]
    cells += [("closed", name, budget, 0.0) for name in ALL for budget in ("k3", "k10", "3 %", "10 %")]
    cells += [("undeclared", name, "k3", 0.0) for name in ALL]
    return [Line(*cell, seed, version) for seed in range(SEEDS) for cell in cells]


def perform(line: Line) -> dict[str, Any]:
    """The answer of a question for one draw."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return QUESTIONS[line.question].answer(line)


# --- questions ---


def eight(line: Line) -> dict[str, Any]:
    """Decisions for unlabelled documents with 8 named topics, and the claims of `evaluate`."""
    world, lists = draw_some(load(line.corpus, "openworld"), line.budget, line.outsiders, line.seed)
    new: dict[str, Any] = {"topics": world.names, "threads": 1}
    model = TopicModel(len(world.hidden), **new).fit(texts(line.corpus), lists)
    known, decided = world.truth(world.known), given(model.state_.judged.decisions(model.state_.names), world.names)
    found: dict[str, Any] = judge_decisions(known, decided[world.unlabelled]) | {"open": model.state_.open}
    both = (known & decided[world.unlabelled]).sum()
    found |= {"all recall": float(both / known.sum())}
    if line.outsiders:
        claimed = TopicModel(len(world.hidden), **new).evaluate(texts(line.corpus), lists).corpus
        if claimed is not None:
            found |= {"claimed precision": claimed.precision.item(), "claimed recall": claimed.recall.item()}
    return found


def draw_some(corpus: Any, budget: str, outsiders: float, seed: int) -> tuple[World, list[Any]]:
    """A world with `NAMED` topics or half of all, and its labels: some documents per topic, and outsiders."""
    named = min(NAMED, corpus.truth.shape[1] // 2)
    rng = np.random.default_rng([seed, named])
    order, Y = rng.permutation(corpus.truth.shape[1]), corpus.truth.toarray() > 0
    known, hidden = np.sort(order[:named]), np.sort(order[named:])
    inside = np.flatnonzero(draw_by_topic(Y[:, known], int(budget[1:]), rng).any(axis=1))
    outside = np.flatnonzero(~Y[:, known].any(axis=1))
    marked = rng.choice(outside, round(outsiders / (1 - outsiders) * len(inside)), replace=False)
    rows = np.sort(np.concatenate([inside, marked]))
    world = World(corpus, known, hidden, rows, Y[rows][:, known].astype(float))
    lists: list[Any] = world.lists()
    for i in marked:
        lists[i] = "(none)"
    return world, lists


def recall(line: Line) -> dict[str, Any]:
    """Recall of a model that is free to open the world, and of one whose world is declared closed."""
    world = draw(load(line.corpus, "openworld"), 0.5, line.budget, line.seed)
    known, found = world.truth(world.known), {}
    for name, kind in (("recall", "open" if world.declared else None), ("recall if closed", "closed")):
        model = TopicModel(len(world.hidden), topics=world.names, world=kind, threads=1)
        model.fit(texts(line.corpus), world.lists())
        decided = given(model.state_.judged.decisions(model.state_.names), world.names)
        found[name] = judge_decisions(known, decided[world.unlabelled])["recall"]
    return found | {"recall lost": found["recall if closed"] - found["recall"]}


def stability(line: Line) -> dict[str, Any]:
    """Share of ten free topics that come back with another seed, and with a tenth more labels."""
    corpus = load(line.corpus, "openworld")
    world, more = (draw(corpus, 0.5, budget, line.seed) for budget in (line.budget, "11 %"))

    def topics(world: World, seed: int) -> list[set[str]]:
        model = TopicModel(10, topics=world.names, random_state=seed, threads=1).fit(texts(corpus.name), world.lists())
        return [set(model.top_terms(k, TOP)) for k in range(len(world.known), len(model.topics))]

    first = topics(world, 0)
    return {"another seed": back(first, topics(world, 1)), "more labels": back(first, topics(more, 0))}


def back(before: list[set[str]], after: list[set[str]]) -> float:
    """Share of the topics that are matched to one with at least `SAME` of the terms."""
    overlap = np.array([[len(a & b) / TOP for b in after] for a in before])
    rows, columns = linear_sum_assignment(-overlap)
    return float((overlap[rows, columns] >= SAME).sum() / len(before))


def closed(line: Line) -> dict[str, Any]:
    """Whether a world in which all topics have labels counts as open, and the free topics of "auto"."""
    world = draw(load(line.corpus, "openworld"), 0.0, line.budget, line.seed)
    model = TopicModel("auto", topics=world.names, threads=1).fit(texts(line.corpus), world.lists())
    return {"open": model.state_.open, "free topics": len(model.topics) - len(world.known)}


def undeclared(line: Line) -> dict[str, Any]:
    """Whether the world counts as open, and whether `belief` explains that labels are too few to decide."""
    world = draw(load(line.corpus, "openworld"), 0.5, line.budget, line.seed)
    model = TopicModel(topics=world.names, threads=1).fit(texts(line.corpus), world.lists())
    return {"open": model.state_.open, "explained": "too few to decide" in model.belief}


@dataclass(frozen=True)
class Question:
    """A question: its title, how to answer it for a draw, and the columns of its table."""

    title: str
    answer: Callable[[Line], dict[str, Any]]
    columns: tuple[str, ...]


QUESTIONS = {
    "eight": Question(
        "8 of 20 topics named",
        eight,
        ("precision", "recall", "leak", "claimed precision", "claimed recall", "all recall"),
    ),
    "recall": Question("Recall against a closed world", recall, ("recall", "recall if closed", "recall lost")),
    "stability": Question("Free topics that come back", stability, ("another seed", "more labels")),
    "closed": Question("All topics have labels", closed, ("open", "free topics")),
    "undeclared": Question("Half hidden, three labels per topic, not declared", undeclared, ("open", "explained")),
}


# --- page ---


def page(results: dict[Line, dict[str, Any]], planned: int) -> str:
    """LINES.md: means over the draws of each cell, and the range of claims against the truth."""
    parts = [
        "# Further questions about unnamed topics",
        "Made by `python -m experiments.openworld.lines`; do not edit. Each figure is the mean over the draws. Topics, "
        "labels and corpora are as in [the study](README.md). Columns *open* and *explained* are shares of the draws.",
    ]
    for name, question in QUESTIONS.items():
        cells: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
        for line, found in results.items():
            if line.question == name:
                cells[line.corpus, line.budget, line.outsiders].append(found)
        if cells:
            head = ["corpus", "labels", "outsiders", "draws", *question.columns]
            rows = [row(cell, found, question.columns) for cell, found in cells.items()]
            parts += [f"## {question.title}", f"{(question.answer.__doc__ or '').strip()}", table(head, rows)]
    parts.append(f"{len(results)} of {planned} draws are done.")
    return "\n\n".join(parts) + "\n"


def row(cell: tuple[str, str, float], found: list[dict[str, Any]], columns: tuple[str, ...]) -> list[object]:
    """A row of a table."""
    corpus, budget, outsiders = cell
    means = [np.mean([one[name] for one in found if name in one] or [np.nan]) for name in columns]
    shown = ["–" if np.isnan(mean) else f"{mean:.3f}" for mean in means]
    return [TITLES[corpus], LABELS.get(budget, f"{budget[1:]} per topic"), f"{outsiders:.0%}", len(found), *shown]


def main(arguments: list[str] | None = None) -> int:
    """Parse the options, answer the missing questions and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.openworld.lines", description=__doc__)
    parser.add_argument("--question", action="append", choices=list(QUESTIONS), help="only this; may be repeated")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of draws")
    parser.add_argument("--page-only", action="store_true", help="write the page from the finished draws")
    options = parser.parse_args(arguments)
    planned, store = plan(), Store(RESULTS / "openworld-lines.sqlite")
    store.take(HERE / "lines.jsonl")
    chosen = [one for one in planned if one.question in (options.question or QUESTIONS) and one.seed < options.seeds]
    try:
        if not options.page_only:
            carry_out(chosen, perform, store, 1, "questions")
    except KeyboardInterrupt:
        return stopped(planned, store)
    finally:
        store.dump(HERE / "lines.jsonl")
        results = store.results(planned)
        (HERE / "LINES.md").write_text(page(results, len(planned)))
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
