"""Plan and run the trials: one draw of labels in one corpus each, and the shares that follow from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared import internals
from experiments.shared.corpora import PREVALENCE
from experiments.shared.fingerprints import codes, meaning
from experiments.shared.internals import Groups, Origin, ShareTask, design, draws, estimates, mover, supervise, wilson
from experiments.shared.terminal import RESULTS
from topicsteer.text import TextVectorizer

# Draws of labels.
DRAWS = 100
# Numbers of labelled documents.
SIZES = (300, 1000)
# The same for the made-up corpus of the tests.
TOY_SIZES = (40, 60)
# How labels are drawn. "random"; "doubt": a random third, then by doubt; "suggested": a random half, then suggestions;
# "unnamed": random, half of the topics have no name; "few": three per topic, taken for random labels. "plain": random,
# and the share is the plain average of memberships.
DESIGNS = ("random", "doubt", "suggested", "unnamed", "few", "plain")
# Topics with a larger share are judged.
LEAST_SHARE = 0.01
# Numbers of made-up groups.
GROUPS = (4, 12)
# Labels of each topic in the design "few".
FEW = 3
# Folder of predictions. A change of the intervals alone needs no new guides.
KEPT = RESULTS / "prevalence-draws"


@dataclass(frozen=True)
class Trial:
    """Configuration of a trial; ``version`` changes with the code, which makes old results stale."""

    corpus: str
    method: str
    labels: int
    seed: int
    version: str

    @property
    def key(self) -> str:
        """The configuration as text, the same in any process."""
        return json.dumps(asdict(self), sort_keys=True)


@lru_cache
def fingerprint() -> str:
    """A hash of the code of the guide, of the estimates and of the trials."""
    parts = sorted({code for function in (perform, groups_of) for code in codes(function)})
    return _hash([*parts, guide_fingerprint(), *map(meaning, internals.share_sources())])


@lru_cache
def guide_fingerprint() -> str:
    """A hash of the code that predictions depend on: draws, guides and folds, without the estimates."""
    parts = sorted({code for function in (predicted, World.draw, World.more) for code in codes(function)})
    return _hash([*parts, *map(meaning, (*internals.fitting_sources(), *internals.draw_sources()))])


def _hash(parts: list[str]) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def sizes(corpus: str) -> tuple[int, ...]:
    """Numbers of labels that are tried on a corpus."""
    return TOY_SIZES if corpus == "toy" else SIZES


def plan(corpora: list[str], draws: int = DRAWS) -> list[Trial]:
    """All trials, seed by seed; the design "few" has one size, and its labels follow from the number of topics."""
    return [
        Trial(corpus, method, labels, seed, fingerprint())
        for seed in range(draws)
        for corpus in corpora
        for method in DESIGNS
        for labels in (sizes(corpus) if method != "few" else (0,))
    ]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A corpus with its true labels (documents × topics), its groups, and the documents as a task."""

    truth: np.ndarray
    topics: list[str]
    groups: dict[int, Groups]
    task: ShareTask


@lru_cache(maxsize=3)
def prepared(name: str) -> Prepared:
    """A corpus, read once per process."""
    documents = PREVALENCE[name]()
    vectorizer = TextVectorizer()
    X = vectorizer.fit_transform(documents.texts)
    truth = supervise(documents.labels, len(documents)).indicator().toarray()
    task = ShareTask(X, vectorizer)
    return Prepared(truth, documents.topic_names, {g: groups_of(truth, g) for g in GROUPS}, task)


def groups_of(truth: np.ndarray, count: int) -> Groups:
    """Made-up groups that differ in their topics: half of the documents by their topics, the others at random."""
    rng = np.random.default_rng(count)
    likes = rng.integers(count, size=truth.shape[1])
    first = np.where(truth.any(axis=1), likes[truth.argmax(axis=1)], rng.integers(count, size=len(truth)))
    codes = np.where(rng.random(len(truth)) < 0.5, first, rng.integers(count, size=len(truth)))
    return Groups("made up", tuple(f"group {g}" for g in range(count)), codes)


def perform(trial: Trial) -> dict[str, float]:
    """Draw labels, estimate the shares, and compare them with the truth."""
    world, found = drawn(trial.corpus, trial.method, trial.labels, trial.seed)
    if trial.method == "plain":
        return plain(world, found["every"])
    return judge(world, *evidence(world, found), prepared(trial.corpus).groups, trial.method)


def drawn(name: str, method: str, labels: int, seed: int) -> tuple[World, dict[str, np.ndarray]]:
    """A corpus with its known topics, and the predictions of a draw of labels."""
    corpus = prepared(name)
    rng = np.random.default_rng([seed, labels, DESIGNS.index(method)])
    known = np.arange(len(corpus.topics))
    if method == "unnamed":
        known = np.sort(rng.permutation(len(known))[: len(known) // 2])
    world = World(corpus.task, corpus.truth[:, known], [corpus.topics[k] for k in known], rng)
    path = KEPT / f"{name}-{method}-{labels}-{seed}-{guide_fingerprint()}.npz"
    return world, kept(path, lambda: predicted(world, method, labels))


def evidence(world: World, found: dict[str, np.ndarray]) -> tuple[design.Sample, estimates.Predictions]:
    """The labelled documents of a draw, and the predictions."""
    rows, origin = found["rows"], Origin(found["kind"], found["draw"], found["probability"])
    labels = design.label_values(world.supervision(rows), rows)
    sample = design.Sample(rows, labels, origin, found["clusters"])
    return sample, estimates.Predictions(found["every"], found["labelled"])


def kept(path: Path, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays in a file, which is made if it is missing; the made-up corpus is quick without one."""
    if path.name.startswith("toy"):
        return make()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".part").open("wb") as file:
            np.savez(file, **make())
        path.with_suffix(".part").replace(path)
    with np.load(path) as arrays:
        return dict(arrays)


def predicted(world: World, method: str, n: int) -> dict[str, np.ndarray]:
    """Draw labels, and predict all documents without the labels of a fold; "plain": with all labels."""
    rows, origin = world.draw(method, n)
    supervision = world.supervision(rows)
    guide = world.task.learn(supervision)
    if method == "plain":
        return {"every": world.memberships(guide)}
    labels = design.label_values(supervision, rows)
    sample = design.Sample(rows, labels, origin, design.same_texts(world.task.X.take(rows)))
    found = world.task.cross_fit(supervision, sample, guide)
    arrays = {"every": np.asarray(found.every), "labelled": found.labelled, "rows": rows, "clusters": sample.clusters}
    return arrays | {"kind": origin.kind, "draw": origin.draw, "probability": origin.probability}


def plain(world: World, memberships: np.ndarray) -> dict[str, float]:
    """The plain average of memberships, with the standard error of an average, as in a spreadsheet."""
    share = world.truth.mean(axis=0)
    judged = share > LEAST_SHARE
    found = memberships[:, : len(share)]
    error = 1.96 * found.std(axis=0) / np.sqrt(world.n)
    inside = np.abs(found.mean(axis=0) - share) <= error
    return {"topics": int(judged.sum()), "covered": int(inside[judged].sum()), "width": float(2 * error[judged].mean())}


@dataclass(frozen=True, eq=False)
class World:
    """A corpus with its known topics."""

    task: ShareTask
    truth: np.ndarray
    names: list[str]
    rng: np.random.Generator

    @property
    def n(self) -> int:
        """Number of documents."""
        return len(self.truth)

    def supervision(self, rows: np.ndarray) -> internals.Supervision:
        """Complete labels of some documents; without a known topic, a document is marked as having none."""
        labels = {int(i): [self.names[k] for k in np.flatnonzero(self.truth[i])] or ["(none)"] for i in rows}
        return supervise(labels, self.n, topics=self.names)

    def memberships(self, guide: Any) -> np.ndarray:
        """Memberships of all documents in the known topics, and in none of them."""
        found = guide.probabilities(self.task.X.matrix, 1)[:, : len(self.names)]
        return np.column_stack([found, np.prod(1 - found, axis=1)])

    def draw(self, method: str, n: int) -> tuple[np.ndarray, Origin]:
        """Labelled documents in the order of their rows, and their origin."""
        if method == "few":
            own = [np.flatnonzero(column) for column in self.truth.T]
            rows = np.unique(np.concatenate([self.rng.choice(one, min(FEW, len(one)), replace=False) for one in own]))
            return rows, Origin.unknown(len(rows))
        first = n if method in ("random", "unnamed", "plain") else n // 3 if method == "doubt" else n // 2
        rows = np.sort(self.rng.choice(self.n, first, replace=False))
        if first == n:
            return rows, Origin.unknown(n)
        more, chosen, probability = self.more(rows, n - first, method)
        every = np.concatenate([rows, more])
        order = np.argsort(every)
        columns = {
            "chosen": ["random"] * first + [chosen] * len(more),
            "probability": [None] * first + list(probability),
        }
        origin = Origin.of(columns, len(every))
        assert origin is not None
        return every[order], origin.take(order)

    def more(self, rows: np.ndarray, n: int, method: str) -> tuple[np.ndarray, str, Any]:
        """Further documents: drawn by doubt, or suggested."""
        supervision = self.supervision(rows)
        guide = self.task.learn(supervision)
        belongs = self.memberships(guide)[:, : len(self.names)]
        others = np.setdiff1d(np.arange(self.n), rows)
        if method == "doubt":
            probability = draws.doubt_probabilities(belongs[others], n)
            drawn = draws.draw(probability, self.rng)
            return others[drawn], "doubt 2", probability[drawn]
        X = self.task.X
        found = internals.suggest(lambda own: guide.positions(X.take(own), 1), belongs, supervision, guide.seen, n)
        return np.array([one.row for one in found]), "suggested 2", [None] * len(found)


def judge(
    world: World,
    sample: design.Sample,
    predictions: estimates.Predictions,
    groups: dict[int, Groups],
    method: str,
) -> dict[str, float]:
    """How many intervals contain the truth, and how wide they are; topics over 1 % only."""
    truth = np.column_stack([world.truth, ~world.truth.any(axis=1)])
    share = truth.mean(axis=0)
    judged = share > LEAST_SHARE
    judged[-1] &= method == "unnamed"
    found = estimates.estimate(sample, [predictions])
    n = len(sample.rows)
    # Labels alone: as many of them, drawn at random, with the finite population in mind.
    low, high = wilson(share, n / (1 - n / world.n))
    alone = (high - low)[judged]
    inside = ((found.low[0] <= share) & (share <= found.high[0]))[judged]
    width = (found.high - found.low)[0][judged]
    result = {
        "labels": n,
        "topics": int(judged.sum()),
        "covered": int(inside.sum()),
        "ratio": float((width / alone).mean()),
        "width": float(width.mean()),
        "worth": float(np.median(found.worth[0][judged])),
        "bias": float((found.share[0] - share)[judged].mean() / share[judged].mean()),
        "none covered": float(inside[-1]) if judged[-1] else float("nan"),
        "warned": bool((np.abs(found.doubts)[judged] > estimates.SUSPICIOUS).any()),
    }
    for count, own in groups.items():
        result |= in_groups(sample, predictions, truth, judged, own, count)
    return result


def in_groups(
    sample: design.Sample,
    predictions: estimates.Predictions,
    truth: np.ndarray,
    judged: np.ndarray,
    groups: Groups,
    count: int,
) -> dict[str, float]:
    """Coverage in groups and of differences between all pairs of groups."""
    found = estimates.estimate(sample, [predictions], groups)
    share = np.stack([truth[groups.codes == g].mean(axis=0) for g in range(count)])
    inside = ((found.low[1:] <= share) & (share <= found.high[1:]))[:, judged]
    right = []
    for a in range(count):
        for b in range(a):
            both = [a + 1, b + 1]
            _, low, high = mover(found.share[both], found.low[both], found.high[both], [1, -1])
            right.append(((low <= share[a] - share[b]) & (share[a] - share[b] <= high))[judged])
    return {
        f"{count} groups": int(inside.size),
        f"{count} groups covered": int(inside.sum()),
        f"{count} groups width": float((found.high - found.low)[1:][:, judged].mean()),
        f"{count} differences": int(np.size(right)),
        f"{count} differences covered": int(np.sum(right)),
    }
