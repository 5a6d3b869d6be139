"""The only imports of experiments that are not public in topicsteer; a test keeps it so.

The studies measure parts of the library: the guide without the factorisation, the guide with one part switched off, the
start of the paper, and the exports of the workbench. None of these has a public name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

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
from topicsteer.analysis.documents_to_label import audit, suggest
from topicsteer.analysis.groups import Groups
from topicsteer.analysis.label_advice import label_curve, stopping_advice
from topicsteer.analysis.survey_design import mover, wilson
from topicsteer.backends import as_rows
from topicsteer.guidance import calibration, guide, keywords, latent, ridge, train, tree
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
    "audit",
    "baselines",
    "coder_of",
    "compare_coders",
    "design",
    "draws",
    "estimates",
    "label_curve",
    "mover",
    "predictor_of",
    "stopping_advice",
    "suggest",
    "supervise",
    "wilson",
]

# Number of documents that Random Acol averages for one topic.
ACOL_DOCUMENTS = factorisation.ACOL_DOCUMENTS
# Modules of our method. A change to one of them makes our finished trials stale.
GUIDANCE = (guide, train, ridge, latent, calibration)
# Folder and file with the code of our method in the study of unnamed topics.
FITTING = (Path(guide.__file__).parent, Path(pipeline.__file__), Path(pipeline.__file__))


def no_words(*_: Any) -> None:
    """The second round of the guide where it finds nothing better."""


def no_shift(odds: Any, labelled: Any) -> Any:
    """Topics are as frequent among all documents as among the labelled ones."""
    return np.zeros(odds.shape[1], odds.dtype)


# The guide without one of its parts: replacements for names in topicsteer.
ABLATIONS: dict[str, dict[str, Any]] = {
    "no latent semantics": {"guidance.latent.DIMENSIONS": 0},
    "no second round": {"guidance.calibration.Background.learn_word_round": no_words},
    "nothing calibrated": {"guidance.train.MIN_LABELS": float("inf")},
    "no prior shift": {"guidance.train.prior_shift": no_shift, "guidance.calibration.prior_shift": no_shift},
}


@contextmanager
def replaced(changes: dict[str, Any]) -> Iterator[None]:
    """Replace names in topicsteer, such as the values of :data:`ABLATIONS`, for a while."""
    with ExitStack() as stack:
        for name, value in changes.items():
            stack.enter_context(mock.patch(f"topicsteer.{name}", value))
        yield


def learn_guide(X: Any, supervision: Supervision, **options: Any) -> Any:
    """Fit the guide to the labels, without a factorisation."""
    return train.train_guide(as_rows(X), supervision, threads=1, **options)


def learn_tree(X: Any, supervision: Supervision, **options: Any) -> np.ndarray:
    """Probabilities of all topics of a tree in a closed world, as `TopicModel` computes them."""
    guide = tree.train_tree(as_rows(X), supervision, lambda base, **_: base, threads=1, **options)
    return np.zeros((X.shape[0], len(supervision.topics))) if guide is None else guide.probabilities(X, 1)


def texts_of(names: keywords.TopicTexts, topics: list[int]) -> keywords.TopicTexts:
    """Texts about some topics, numbered by their positions in the list."""
    return tree.texts_of(names, topics)


def tree_sources() -> list[str]:
    """Source of the guides of a tree."""
    return [*guide_sources(), *(inspect.getsource(module) for module in (tree,))]


def guide_sources() -> list[str]:
    """Source of the guide without an open world, and of the texts about topics."""
    return [inspect.getsource(module) for module in (*GUIDANCE, keywords)]


def fitting_sources() -> list[str]:
    """Source of the guide and of the fit of TopicModel."""
    folder, *files = FITTING
    return [path.read_text(encoding="utf-8") for path in (*sorted(folder.glob("*.py")), *files)]


class ShareTask:
    """The documents of a corpus, and the guides of a model that has seen some of their labels.

    Latent directions do not depend on labels, so all draws of labels share them.
    """

    def __init__(self, X: Any, vectorizer: Any, directions: Any) -> None:
        self.X, self.vectorizer, self.directions = as_rows(X), vectorizer, directions
        self.settings = TopicModel(threads=1)._settings()

    def _corpus(self, supervision: Supervision) -> pipeline.Corpus:
        book = Codebook.of_names(supervision.topics)
        return pipeline.Corpus(self.X, supervision, book, self.vectorizer)

    def learn(self, supervision: Supervision) -> Any:
        """The guide of all labels, as in a fit."""
        return pipeline.learn(self._corpus(supervision), self.settings, pipeline.Cold(self.directions))

    def cross_fit(self, supervision: Supervision, sample: survey_design.Sample, guide: Any) -> estimates.Predictions:
        """Predictions without the labels of a fold, with the world and the settings of the guide of all labels."""
        settings = replace(self.settings, world="open" if guide.believes_open else "closed")
        reuse = pipeline.Cold(self.directions, choice=guide.choice)
        hidden = cross_fit.Hidden(self._corpus(supervision), settings, reuse)
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


def latent_directions(X: Any) -> Any:
    """The label-free decomposition that the guide reads; made once for many fits."""
    return latent.latent_directions(as_rows(X))


def name_rows(topics: Any, transform: Any, **words: Any) -> keywords.TopicTexts:
    """Topic names as small documents, as TopicModel makes them; ``words`` are descriptions and keywords."""
    return keywords.topic_texts(Codebook.of_names(topics, **words), transform)


def embedded_names(topics: Any, transform: Any, encode: Any, **words: Any) -> keywords.TopicTexts:
    """The same with their embeddings."""
    return keywords.topic_texts(Codebook.of_names(topics, **words), transform, encode)


def random_acol(X: Any, n_topics: int, rng: np.random.RandomState) -> np.ndarray:
    """First H of the paper: for each topic the mean of random documents."""
    return factorisation.random_acol(as_rows(X), n_topics, rng)


def workbench_actions() -> Any:
    """Return the actions of the workbench; they need the packages of the extra ``app``."""
    from topicsteer.app.workbench import actions

    return actions


def workbench() -> Any:
    """The labelling workbench without its web server; it needs the extra ``app``."""
    from topicsteer.app.workbench.workbench import Workbench

    return Workbench
