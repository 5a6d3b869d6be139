"""A saved model for quick answers: its topics, and a few texts, in plain numpy.

A command that reads one text should not wait for scikit-learn, polars and a compiler. `QuickModel` reads the same files
as `TopicModel.load` and gives the same answers up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.belief import believed
from topicsteer.analysis.explain import Explanation
from topicsteer.guidance.guide import Guide
from topicsteer.model import files
from topicsteer.model.predictor import Predictor
from topicsteer.model.state import FittedState
from topicsteer.nmf.plain import few_weights
from topicsteer.system.types import Array
from topicsteer.system.values import is_missing
from topicsteer.text.plain import PlainVectorizer

# Texts at most; more are faster with compiled kernels.
FEW_TEXTS = 50


class QuickModel:
    """A saved model that answers for a few texts.

    Parameters
    ----------
    state : FittedState
    """

    def __init__(self, state: FittedState) -> None:
        self.state_ = state
        self._predictor = PlainPredictor(state)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that `TopicModel.save` wrote."""
        return cls(files.read(path)[0])

    @property
    def reads_texts(self) -> bool:
        """Whether texts are enough: the model was fitted without a lemmatizer of the user and without embeddings."""
        guide = self._predictor.guide
        return not self.state_.lemmatized and not (guide is not None and guide.embedding)

    @property
    def belief(self) -> str:
        """As `TopicModel.belief`."""
        return believed(self.state_.topics, self.state_.believes_open, self.state_.parameters.get("world"))

    def answers(self, documents: Sized) -> bool:
        """Whether the model answers for these documents: they are few, and texts are enough."""
        return len(documents) <= FEW_TEXTS and self.reads_texts

    def topics_table(self) -> dict[str, list[Any]]:
        """Columns of the table of topics, with a row for documents that have none of them, as plain values."""
        return {name: np.asarray(values).tolist() for name, values in self.state_.topics.table(none=True).items()}

    def memberships(self, texts: Sequence[str]) -> Array:
        """Memberships of texts in all topics and in none of the known ones; NaN without a text."""
        found = self._predictor.all_memberships(self._predictor.vectorizer.transform(texts), None)
        found[[is_missing(text) for text in texts]] = np.nan
        return found

    def decide(self, belongs: Array, threshold: float | None = None, *, ancestors: bool = False) -> list[list[str]]:
        """Known topics of documents, from their memberships; see `TopicModel.predict`."""
        return self._predictor.decide(belongs, threshold, ancestors=ancestors)

    def predict(self, texts: Sequence[str]) -> list[list[str]]:
        """Known topics of texts, strongest first."""
        return self.decide(self.memberships(texts))

    def explain(self, text: str) -> Explanation:
        """Contribution of each word of a text to each topic."""
        x = self._predictor.vectorizer.transform([text])
        return self._predictor.explain(text, x, self._predictor.weights(x, None)[0])


class PlainPredictor(Predictor):
    """A predictor without compiled kernels, for a few texts."""

    @cached_property
    def vectorizer(self) -> Any:
        """The vectoriser of texts, with the methods that a predictor uses."""
        return PlainVectorizer(self.state.vectorizer, self.state.vocabulary, self.state.idf)

    def _solve(self, X: sp.csr_array, penalties: sp.csr_array | None) -> Array:
        H = self.state.components
        settings: Mapping[str, Any] = self.state.estimator
        strength = float(settings.get("alpha_W") or 0.0) * H.shape[1]
        l1 = float(settings.get("l1_ratio") or 0.0)
        return few_weights(X, H, penalties, l1=strength * l1, l2=strength * (1 - l1))

    def _probabilities(self, guide: Guide, X: sp.csr_array, embeddings: Array | None) -> Array:
        return guide.probabilities(X, 1, embeddings=embeddings, plain=True)
