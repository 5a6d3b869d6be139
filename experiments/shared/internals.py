"""The only imports of experiments that are not public in topicsteer; a test keeps it so.

The studies measure parts of the library: the guide without the factorisation, its tuned constants, the start of the
paper, and the exports of the workbench. None of these has a public name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from topicsteer import TopicModel
from topicsteer.analysis import agreement, evaluation, prevalence, survey_design
from topicsteer.analysis.survey_design import wilson
from topicsteer.cli import terminal
from topicsteer.cli.commands import belief_of
from topicsteer.guidance import apply, constants, train
from topicsteer.guidance.features import Features
from topicsteer.labels.forms import supervise
from topicsteer.labels.supervision import Supervision
from topicsteer.model import cross_fit, pipeline
from topicsteer.nmf import factorisation

__all__ = ["Supervision", "belief_of", "constants", "supervise", "terminal", "wilson"]

# Folder with the code of the guide. A change to it makes our finished trials stale.
GUIDANCE = Path(constants.__file__).parent


class GuideTask:
    """A fit of `TopicModel` up to its guide, which is learnt as often as wanted."""

    def __init__(self, texts: list[str], labels: Any, **options: Any) -> None:
        self.settings = TopicModel(**options, threads=1)._settings()
        self.corpus = pipeline.prepare(self.settings, texts, labels)

    def features(self) -> Features:
        """Latent semantics and meaning of the corpus."""
        return pipeline.features_sample(self.corpus, self.settings, pipeline.COLD).features

    def memberships(self, features: Features) -> tuple[np.ndarray, np.ndarray]:
        """Memberships of the documents in known and in free topics, without regard to labels."""
        guide = pipeline.learn(self.corpus, self.settings, pipeline.Cold(features))
        if guide is None:
            raise ValueError("there are no labels and no names")
        n, n_known = self.corpus.rows.shape[0], guide.n_known
        free = train.free_topics(guide, self.settings.wanted_free, n)
        groups = apply.topic_classes([(k,) for k in range(n_known)], free, n_known)
        P = guide.probabilities(self.corpus.rows.take(np.arange(n)), 1)
        found = apply.topic_probabilities(P, groups, self.corpus.supervision.forest, n_known, guide)
        return found[:, :n_known], found[:, n_known : n_known + len(free)]


def guide_sources() -> list[str]:
    """Source of the guide."""
    return [path.read_text(encoding="utf-8") for path in sorted(GUIDANCE.glob("*.py"))]


def fitting_sources() -> list[str]:
    """Source of the guide and of the fit of TopicModel."""
    return [*guide_sources(), Path(pipeline.__file__).read_text(encoding="utf-8")]


def honest_sources() -> list[str]:
    """Source of everything that decides on a printed number: the fit, shares, evaluation and agreement."""
    parts = (prevalence, survey_design, cross_fit, evaluation, agreement)
    return [*fitting_sources(), *(Path(part.__file__).read_text(encoding="utf-8") for part in parts)]


def factorisation_sources() -> list[str]:
    """Source of the start, the loop, the rules and the kernels of a factorisation."""
    names = ("factorisation", "loop", "solvers", "kernels", "blocks")
    return [Path(factorisation.__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in names]


def workbench_actions() -> Any:
    """Return the actions of the workbench; they need the packages of the extra ``app``."""
    from topicsteer.app.workbench import actions

    return actions


def workbench() -> Any:
    """The labelling workbench without its web server; it needs the extra ``app``."""
    from topicsteer.app.workbench.workbench import Workbench

    return Workbench
