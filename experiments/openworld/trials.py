"""Plan and run the trials of the study: one method in one world with one number of free columns each."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from experiments.openworld import ours, rivals
from experiments.openworld.measures import Found, judge
from experiments.openworld.worlds import FORMS, World, draw
from experiments.shared import internals
from experiments.shared.corpora import load
from experiments.shared.fingerprints import codes, installed, meaning
from experiments.shared.pool import time_limit

# Names of our method and its second reading.
OURS, OURS_W = "topicsteer", "topicsteer, read from W"
# Shares of the topics that are hidden.
SHARES = (0.1, 0.3, 0.5, 0.9)
# Labelled documents: three per known topic, or a share of the documents with a known topic.
BUDGETS = ("k3", "3 %", "10 %")
# Numbers of free columns: as many as hidden topics, or as all topics.
COLUMNS = ("hidden", "all")
# Labelled documents per topic where no topic is hidden and the form of the labels varies.
FORM_BUDGETS = ("k3", "k10", "k30")
# The smaller version: one share, two budgets, two corpora.
QUICK_SHARE, QUICK_BUDGETS, QUICK_CORPORA = 0.5, ("k3", "10 %"), ["newsgroups-6000", "reuters-100"]
# Seeds of each method that is not slow.
SEEDS = 3
# A trial stops after this many seconds.
LIMIT = 1200


@dataclass(frozen=True)
class Method:
    """How to run a method.

    ``package`` names the package that it needs. ``free`` means that it has free columns. ``forms`` means that it also
    runs with other forms of labels. A ``slow`` method runs with one seed, and only with half of the topics hidden.
    """

    run: Callable[[World, int, int], Found]
    package: str | None = None
    free: bool = True
    forms: bool = False
    slow: bool = False


# All methods in the order of the page.
METHODS = {
    OURS: Method(ours.memberships, forms=True),
    OURS_W: Method(ours.weights),
    "NMF": Method(rivals.nmf),
    "NMF of doubt": Method(rivals.nmf_of_doubt),
    "k-means with labels": Method(rivals.k_means),
    "naive Bayes EM": Method(rivals.naive_bayes_em),
    "LabeledLDA (topica)": Method(rivals.labeled_lda, "topica", slow=True),
    "PLDA (tomotopy)": Method(rivals.plda, "tomotopy", slow=True),
    "CorEx with anchors": Method(rivals.corex, "corextopic", slow=True),
    "logistic regression": Method(rivals.logistic_regression, free=False, forms=True),
}


@dataclass(frozen=True)
class Trial:
    """Configuration of a trial; ``version`` changes with the code of the method, which makes old results stale."""

    corpus: str
    method: str
    share: float
    budget: str
    columns: str
    form: str
    seed: int
    version: str

    @property
    def key(self) -> str:
        """The configuration as text, the same in any process."""
        return json.dumps(asdict(self), sort_keys=True)


def missing(name: str) -> str | None:
    """The reason why a method cannot run, None if it can."""
    package = METHODS[name].package
    if package is not None and installed(package) is None:
        return f"{package} is not installed"
    return None


@lru_cache
def fingerprint(name: str) -> str:
    """A hash of the code of a method, of the worlds and the measures, and of its package."""
    method = METHODS[name]
    parts = sorted({code for function in (method.run, draw, judge) for code in codes(function)})
    if name in (OURS, OURS_W):
        parts += [meaning(source) for source in internals.fitting_sources()]
    parts.append(str(method.package and installed(method.package)))
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def plan(corpora: list[str], quick: bool = False) -> list[Trial]:
    """All trials that can run, seed by seed; trials of one world follow each other."""
    return [
        Trial(corpus, name, share, budget, columns, form, seed, fingerprint(name))
        for seed in range(1 if quick else SEEDS)
        for corpus in corpora
        for share, budget, form in cells(quick)
        for name, method in METHODS.items()
        if missing(name) is None and belongs(method, share, seed, quick)
        for columns in (COLUMNS if method.free and share else ("none",))
        if not (quick and columns == "all")
    ]


def cells(quick: bool) -> list[tuple[float, str, str]]:
    """Shares of hidden topics with budgets and forms of labels."""
    if quick:
        return [(QUICK_SHARE, budget, "complete") for budget in QUICK_BUDGETS]
    hidden = [(share, budget, "complete") for share in SHARES for budget in BUDGETS]
    return hidden + [(0.0, budget, form) for form in FORMS for budget in FORM_BUDGETS]


def belongs(method: Method, share: float, seed: int, quick: bool) -> bool:
    """Whether a method is meant for a cell."""
    if method.slow:
        return share == QUICK_SHARE and not seed and not quick
    return method.forms or share > 0


def perform(trial: Trial) -> dict[str, Any]:
    """Run a trial: all measures on the unlabelled documents, and seconds."""
    world = world_of(trial.corpus, trial.share, trial.budget, trial.seed, trial.form)
    columns = {"hidden": len(world.hidden), "all": len(world.corpus.topics), "none": 0}[trial.columns]
    sizes = {"labelled": len(world.rows), "columns": columns}
    try:
        with time_limit(LIMIT), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # topics without labels and few iterations are intended
            began = time.perf_counter()
            found = METHODS[trial.method].run(world, columns, trial.seed)
            seconds = time.perf_counter() - began
    except TimeoutError as error:
        return {"failed": str(error)} | sizes
    return judge(world, found) | {"seconds": seconds} | sizes


@lru_cache(maxsize=2)
def world_of(corpus: str, share: float, budget: str, seed: int, form: str) -> World:
    """A world; cached, so that our fit can be, too."""
    return draw(load(corpus, "openworld"), share, budget, seed, form)
