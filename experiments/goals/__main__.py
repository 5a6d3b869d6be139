"""Fit models with few random labels, ask for a precision of 90 %, and count how often it is reached; write the page."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared.corpora import PREVALENCE, some
from topicsteer import TopicModel

HERE = Path(__file__).parent
CORPORA = ("reuters-100", "newsgroups-6000", "pubmed-8000")
# Documents of each corpus, numbers of labelled ones, and draws of labels.
DOCUMENTS, BUDGETS, SEEDS = 3000, (100, 300, 1000), (0, 1)
# The precision that is asked for, and the one that counts as reached.
WANTED, ENOUGH = 0.9, 0.87
# A random half of the topics has a name in an open world; documents without a named topic are marked "(none)".
WORLDS = {"closed": 1.0, "open": 0.5}


def perform(name: str, world: str, budget: int, seed: int) -> dict[str, Any]:
    """One draw: the promise of the model, and the truth about the other documents."""
    documents = some(PREVALENCE[name](), DOCUMENTS)
    rng = np.random.default_rng([seed, budget, len(world)])
    topics = np.array(documents.topic_names)
    named = set(rng.permutation(topics)[: round(WORLDS[world] * len(topics))].tolist())
    truth = [[topic for topic in own if topic in named] for own in documents.labels]
    labels: list[list[str]] = [[] for _ in truth]
    for row in rng.choice(len(truth), budget, replace=False):
        labels[row] = truth[row] or ["(none)"]
    started = time.process_time()
    model = TopicModel(threads=1).fit(list(documents.texts), labels)
    goal = model.goal(precision=WANTED)
    known = model.result_.names[: model.result_.n_known]
    table = model.memberships()
    belongs = np.column_stack([np.asarray(table[topic]) for topic in known])
    right = np.array([[topic in own for topic in known] for own in truth])
    accepted = (belongs >= goal.threshold) & np.array([not own for own in labels])[:, None]
    every = sum(len(own) for own, given in zip(truth, labels, strict=True) if not given)
    return {
        "corpus": name,
        "world": world,
        "labelled": budget,
        "seed": seed,
        "promised": round(goal.low_precision, 4),
        "estimated": round(goal.precision, 4),
        "reached": round(float(right[accepted].mean()), 4) if accepted.any() else None,
        "recall": round(float(right[accepted].sum()) / every, 4),
        "predictions": int(accepted.sum()),
        "kept": goal.reached,
        "seconds": round(time.process_time() - started, 1),
    }


def page(results: list[dict[str, Any]]) -> str:
    """The page of the study."""
    good = sum(row["reached"] is None or row["reached"] >= ENOUGH for row in results)
    lines = [
        "# Is the promised precision reached?",
        "",
        f"`predict --precision {WANTED}` on {DOCUMENTS:,} documents of each corpus, with random labels. In the open",
        "world half of the topics have no name, and labelled documents without a named topic are marked `(none)`.",
        "The table has the precision of the predictions for all unlabelled documents, one number per draw of labels.",
        "In brackets: with these labels the model makes no promise. Recall is the mean of the draws.",
        "",
        f"{good} of {len(results)} runs reach {ENOUGH}. Made by `python -m experiments.goals`.",
        "",
        "| corpus | world | labelled | precision | recall |",
        "|---|---|---:|---|---:|",
    ]
    cells = dict.fromkeys((row["corpus"], row["world"], row["labelled"]) for row in results)
    for corpus, world, labelled in cells:
        own = [r for r in results if (r["corpus"], r["world"], r["labelled"]) == (corpus, world, labelled)]
        shown = ["–" if r["reached"] is None else f"{r['reached']:.3f}" for r in own]
        shown = [text if r["kept"] else f"({text})" for r, text in zip(own, shown, strict=True)]
        recall = np.mean([r["recall"] for r in own])
        lines.append(f"| {corpus} | {world} | {labelled:,} | {' '.join(shown)} | {recall:.2f} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run the draws that are missing in ``goals.jsonl``, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE, help="folder of results and page")
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    given = parser.parse_args(arguments)
    store = given.folder / "goals.jsonl"
    results = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {(row["corpus"], row["world"], row["labelled"], row["seed"]) for row in results}
    for trial in ((c, w, b, s) for s in SEEDS for c in given.corpora for w in WORLDS for b in BUDGETS):
        if trial not in done:
            results.append(perform(*trial))
            print(results[-1], flush=True)
            with store.open("a") as file:
                file.write(json.dumps(results[-1]) + "\n")
    order = {name: k for k, name in enumerate(CORPORA)}
    results.sort(key=lambda r: (order.get(r["corpus"], 9), r["world"], r["labelled"], r["seed"]))
    (given.folder / "README.md").write_text(page(results))


if __name__ == "__main__":
    main()
