"""Plan and run the trials: one method with one draw of labels in one corpus each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from experiments.shared import internals
from experiments.shared.corpora import REUTERS_TREE, TREES, Corpus, load
from experiments.shared.fingerprints import codes, installed, meaning
from experiments.shared.internals import Forest, Supervision, baselines
from experiments.shared.scoring import precision_on
from experiments.trees.hiclass_rival import per_parent_node
from topicsteer.text import TextVectorizer

# Draws of labels.
SEEDS = 10
# Numbers of labelled documents: per leaf, or a share of all documents.
BUDGETS = {"3 per leaf": 3, "5 %": 0.05, "20 %": 0.2}


@dataclass(frozen=True)
class Trial:
    """Configuration of a trial; ``version`` changes with the code of the method, which makes old results stale."""

    corpus: str
    method: str
    budget: str
    seed: int
    version: str

    @property
    def key(self) -> str:
        """The configuration as text, the same in any process."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, eq=False)
class World:
    """A corpus with a tree: parents come first, then the leaves. ``truth`` has one column per topic."""

    corpus: Corpus
    topics: list[str]
    forest: Forest
    truth: np.ndarray
    names: Any
    features: Any

    @property
    def leaves(self) -> np.ndarray:
        """Topics without children."""
        return np.array(self.forest.cuts[-1])

    @property
    def roots(self) -> np.ndarray:
        """Topics of the first level."""
        return np.array(self.forest.roots)


@dataclass(frozen=True, eq=False)
class Draw:
    """Labelled documents: to the leaves, and to their parents only."""

    deep: np.ndarray
    shallow: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        """All labelled documents."""
        return self.deep | self.shallow


def parent_of(corpus: str, leaf: str) -> str | None:
    """Parent of a leaf: its first word in 20 Newsgroups, its group in Reuters; None without one."""
    if corpus == "toy":
        return "first" if leaf < "topic3" else "second"
    if corpus == "reuters-tree":
        return next(parent for parent, below in REUTERS_TREE.items() if leaf in below) or None
    return leaf.split(".")[0]


@lru_cache(maxsize=2)
def world_of(name: str) -> World:
    """A corpus with its tree, prepared once per process."""
    corpus = load(name, "trees")
    above = [parent_of(name, leaf) for leaf in corpus.topics]
    parents = sorted({parent for parent in above if parent is not None})
    tops = [-1 if parent is None else parents.index(parent) for parent in above]
    forest = Forest((*[-1] * len(parents), *tops))
    truth = np.hstack([np.zeros((corpus.X.shape[0], len(parents))), corpus.truth.toarray()]) > 0
    topics = [*parents, *corpus.topics]
    vectorizer = TextVectorizer()
    vectorizer.fit(TREES[name]().texts)
    names = internals.name_rows(topics, vectorizer.transform)
    return World(corpus, topics, forest, forest.with_ancestors(truth), names, internals.features_of(corpus.X))


def draw(world: World, budget: str, seed: int) -> Draw:
    """Choose documents, and label every second one to its parents only.

    With three documents per leaf, the first has leaves, the third only parents, and a coin decides about the second.
    """
    amount = BUDGETS[budget]
    rng = np.random.default_rng([seed, round(1000 * amount)])
    n = len(world.truth)
    deep, shallow = np.zeros((2, n), dtype=np.bool_)
    if amount < 1:
        rows = rng.permutation(n)[: round(amount * n)]
        deep[rows[::2]], shallow[rows[1::2]] = True, True
        return Draw(deep, shallow)
    for leaf in world.leaves:
        left = np.flatnonzero(world.truth[:, leaf] & ~deep & ~shallow)
        first, second, third = rng.permutation(left)[:3]
        deep[first], shallow[third] = True, True
        (deep if rng.random() < 0.5 else shallow)[second] = True
    return Draw(deep, shallow)


def supervision_of(truth: np.ndarray, topics: list[str], labels: np.ndarray, forest: Forest) -> Supervision:
    """Labels of these documents; with a forest, ``labels`` has the deepest label of each document only."""
    rows = np.flatnonzero(labels)
    given = {int(i): [topics[k] for k in np.flatnonzero(truth[i])] for i in rows}
    found = internals.supervise(given, len(truth), topics=topics)
    return Supervision(found.topics, found.pattern, forest.closed(found.patterns), forest)


def mixed_labels(world: World, chosen: Draw) -> Supervision:
    """Leaves of some documents and parents of the others, as labels of the tree."""
    given = world.forest.deepest(world.truth)
    given[chosen.shallow] = world.truth[chosen.shallow]
    given[np.ix_(chosen.shallow, [k for k in world.leaves if world.forest.parents[k] >= 0])] = False
    return supervision_of(given, world.topics, chosen.labelled, world.forest)


# --- methods: a score for each document and topic ---


def tree(world: World, chosen: Draw) -> np.ndarray:
    """Our guide of a tree, with labels at both levels."""
    guide = internals.learn_guide(world.corpus.X, mixed_labels(world, chosen), world.names, given=world.features)
    return np.asarray(guide.probabilities(world.corpus.X, 1))


def flat(world: World, chosen: Draw) -> np.ndarray:
    """Our guide of the leaves alone, with the documents that have leaves; a parent is the noisy-or of its leaves."""
    return leaf_guide(world, chosen.deep)


def full(world: World, chosen: Draw) -> np.ndarray:
    """The same, if all labelled documents had their leaves."""
    return leaf_guide(world, chosen.labelled)


def leaf_guide(world: World, labelled: np.ndarray) -> np.ndarray:
    """The flat guide of the leaves."""
    leaves = world.leaves
    topics = [world.topics[k] for k in leaves]
    labels = supervision_of(world.truth[:, leaves], topics, labelled, Forest())
    names = internals.texts_of(world.names, leaves)
    guide = internals.learn_guide(world.corpus.X, labels, names, given=world.features)
    found = np.zeros(world.truth.shape)
    found[:, leaves] = guide.probabilities(world.corpus.X, 1)
    for k, below in enumerate(world.forest.children):
        if below:
            found[:, k] = 1 - np.prod(1 - found[:, list(below)], axis=1)
    return found


def regression(world: World, chosen: Draw) -> np.ndarray:
    """Logistic regression: of the first level with all labelled documents, of leaves with documents that have some."""
    found = np.zeros(world.truth.shape)
    # A leaf without a parent is in both levels; the first level, with more labels, comes last and decides.
    for columns, labelled in ((world.leaves, chosen.deep), (world.roots, chosen.labelled)):
        topics = [world.topics[k] for k in columns]
        labels = supervision_of(world.truth[:, columns], topics, labelled, Forest())
        found[:, columns] = baselines.logistic_regression(world.corpus.X, labels)
    return found


def hiclass(world: World, chosen: Draw) -> np.ndarray:
    """`hiclass`: one logistic regression per parent node; see `experiments.trees.hiclass_rival`."""
    paths = []
    for row in np.flatnonzero(chosen.labelled):
        for root in world.roots[world.truth[row, world.roots]]:
            below = [k for k in world.forest.children[root] if world.truth[row, k] and chosen.deep[row]]
            paths += [(row, int(root), k) for k in below or [-1]]
    return per_parent_node(world.corpus.X, paths, world.forest)


METHODS: dict[str, Callable[[World, Draw], np.ndarray]] = {
    "tree": tree,
    "flat": flat,
    "full": full,
    "logistic regression": regression,
    "hiclass": hiclass,
}
# The package that a method needs.
PACKAGES = {"hiclass": "hiclass"}


@lru_cache
def fingerprint(method: str) -> str:
    """A hash of the code of a method, of the draws and, for our methods, of the guide."""
    parts = sorted({code for function in (METHODS[method], draw, judge, world_of) for code in codes(function)})
    if method in ("tree", "flat", "full"):
        parts += [meaning(source) for source in internals.guide_sources()]
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def plan(corpora: list[str]) -> list[Trial]:
    """All trials, seed by seed."""
    return [
        Trial(corpus, method, budget, seed, fingerprint(method))
        for seed in range(SEEDS)
        for corpus in corpora
        for budget in BUDGETS
        for method in METHODS
    ]


def available() -> list[str]:
    """Methods that can run here; finished trials of the others stay on the page."""
    return [method for method in METHODS if method not in PACKAGES or installed(PACKAGES[method]) is not None]


def perform(trial: Trial) -> dict[str, float]:
    """Run a trial."""
    world = world_of(trial.corpus)
    chosen = draw(world, trial.budget, trial.seed)
    return judge(world, chosen, METHODS[trial.method](world, chosen))


def judge(world: World, chosen: Draw, scores: np.ndarray) -> dict[str, float]:
    """Average precision of leaves and of the first level, on documents without any label."""
    rows, found = np.flatnonzero(~chosen.labelled), {}
    for level, columns in (("leaves", world.leaves), ("parents", world.roots)):
        precision = precision_on(rows, world.truth[:, columns], scores[:, columns])
        found |= {f"{level} {name}": value for name, value in precision.items()}
    own = np.maximum(np.array(world.forest.parents), 0)
    below = np.array(world.forest.parents) >= 0
    return found | {"contradictions": int((scores[:, below] > scores[:, own[below]]).sum())}
