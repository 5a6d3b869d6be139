"""The only imports of experiments that are not public in topicsteer; a test keeps it so.

The studies measure parts of the library: the guide without the factorisation, the guide with one part switched off, the
start of the paper, and the exports of the workbench. None of these has a public name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from topicsteer import TopicModel
from topicsteer.analysis import agreement, survey_design
from topicsteer.analysis import agreement as comparisons
from topicsteer.analysis import evaluation as baselines
from topicsteer.analysis import prevalence as estimates
from topicsteer.analysis import survey_design as design
from topicsteer.analysis import survey_design as draws
from topicsteer.analysis.agreement import compare as compare_coders
from topicsteer.analysis.agreement import predictor_of
from topicsteer.analysis.documents_to_label import suggest
from topicsteer.analysis.groups import Groups
from topicsteer.analysis.survey_design import mover, wilson
from topicsteer.backends import as_rows
from topicsteer.cli import terminal
from topicsteer.cli.commands import belief_of
from topicsteer.guidance import apply, constants, keywords, train
from topicsteer.guidance.features import Features, Sample
from topicsteer.labels import coder as coder_forms
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.coder import Coder, coder_of
from topicsteer.labels.forest import Forest
from topicsteer.labels.forms import supervise
from topicsteer.labels.supervision import PERMITTED, Origin, Supervision
from topicsteer.model import cross_fit, pipeline
from topicsteer.nmf import factorisation

__all__ = [
    "PERMITTED",
    "Coder",
    "Forest",
    "Groups",
    "Origin",
    "Supervision",
    "baselines",
    "belief_of",
    "coder_of",
    "compare_coders",
    "constants",
    "design",
    "draws",
    "estimates",
    "mover",
    "predictor_of",
    "suggest",
    "supervise",
    "terminal",
    "wilson",
]

# Folder with the code of the guide. A change to it makes our finished trials stale.
GUIDANCE = Path(constants.__file__).parent


def features_of(X: Any) -> Features:
    """Latent semantics of a corpus, without meaning. They do not depend on labels; made once for many guides."""
    return Sample(as_rows(X), supervise({}, X.shape[0]), threads=1).features


def learn_guide(X: Any, supervision: Supervision, names: Any = None, **options: Any) -> Any:
    """Fit the guide of a closed world to the labels, without a factorisation and without word vectors.

    ``options`` are arguments of `Sample`: embeddings, features of the corpus (``given``) and a seed.
    """
    return train.learn_guide(Sample(as_rows(X), supervision, threads=1, **options), names, world="closed")


def texts_of(names: keywords.TopicTexts, topics: np.ndarray) -> keywords.TopicTexts:
    """Texts about some topics, numbered by their positions in the sorted array."""
    own = np.isin(names.topics, topics)
    return keywords.TopicTexts(names.terms[own], np.searchsorted(topics, names.topics[own]))


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
    parts = (estimates, survey_design, cross_fit, baselines, agreement)
    return [*fitting_sources(), *(Path(part.__file__).read_text(encoding="utf-8") for part in parts)]


class ShareTask:
    """The documents of a corpus, and the guides of a model that has seen some of their labels."""

    def __init__(self, X: Any, vectorizer: Any) -> None:
        self.X, self.vectorizer = as_rows(X), vectorizer
        self.settings = TopicModel(threads=1, embeddings=None)._settings()
        self.reuse = pipeline.Cold(features_of(X))

    def _corpus(self, supervision: Supervision) -> pipeline.Corpus:
        book = Codebook.of_names(supervision.topics)
        return pipeline.Corpus(self.X, supervision, book, self.vectorizer)

    def learn(self, supervision: Supervision) -> Any:
        """The guide of all labels, as in a fit."""
        return pipeline.learn(self._corpus(supervision), self.settings, self.reuse)

    def cross_fit(self, supervision: Supervision, sample: survey_design.Sample, guide: Any) -> estimates.Predictions:
        """Predictions without the labels of a fold, with the world and the settings of the guide of all labels."""
        settings = replace(self.settings, world="open" if guide.open else "closed")
        hidden = cross_fit.Hidden(self._corpus(supervision), settings, replace(self.reuse, choice=guide.choice))
        found = cross_fit.cross_fit(hidden, sample, folder=Path())
        if found is None:
            raise ValueError("there are too few labels for a guide")
        return found


def share_sources() -> list[str]:
    """Source of the estimates, without the guide."""
    return [Path(part.__file__).read_text(encoding="utf-8") for part in (estimates, survey_design)]


def draw_sources() -> list[str]:
    """Source of draws by doubt and of the predictions without the labels of a fold."""
    return [Path(part.__file__).read_text(encoding="utf-8") for part in (survey_design, cross_fit)]


def coder_sources(method: str) -> list[str]:
    """Source of coders and of their comparisons; only errors need the measures of agreement."""
    parts = (comparisons, coder_forms, *([agreement] if method == "errors" else []))
    return [Path(part.__file__).read_text(encoding="utf-8") for part in parts]


def name_rows(topics: Any, transform: Any) -> keywords.TopicTexts:
    """Topic names as small documents, as TopicModel makes them."""
    return keywords.topic_texts(Codebook.of_names(topics), transform)


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
