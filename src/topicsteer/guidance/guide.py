"""How labels reach the unlabelled documents: a probability for each document and known topic.

The factorisation obeys labels on labelled documents, but nothing in its objective carries them to the others. This
readout does, in two rounds. The first is a kernel ridge regression on the words and the latent semantics of documents
(and on embeddings, where there are any), to which the name of a topic is a small labelled document of its own; it is
calibrated once for all topics on the labelled documents, each left out in turn, and shifted to how frequent each topic
is among the unlabelled. The second asks which words the documents found so far use more than the others, labelled or
not, as naive Bayes does, and how far a topic leads by them; how much that counts is learnt from hidden labels, and
nothing if it finds them no better. All settings are chosen from the labelled documents. Both are linear in the words up
to row norms, so that a new document costs two small products. `topicsteer.guidance.train` learns a guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from topicsteer.guidance.calibration import Calibration
from topicsteer.guidance.latent import projected, unit_rows
from topicsteer.guidance.ridge import Choice
from topicsteer.guidance.word_round import WordRound
from topicsteer.system.types import Array

FIRST_ONLY = np.array([1.0, 0.0, 0.0, 0.0])  # how a file says that there is no second round


@dataclass(frozen=True, eq=False)
class Guide:
    """From documents to probabilities of the known topics.

    Parameters
    ----------
    basis : array (n_terms, q + n_covered or q + 2 n_covered)
        Directions of the latent semantics, the weights of the words for each covered topic, and the log ratios of the
        second round, if there is one: one product with a document's words gives all.
    dense : array (3 blocks of latent dimensions and the embedding's, n_covered)
        Weights of the latent semantics and of the embeddings.
    scale : array (n_covered,)
        Factor that makes a score 0 where nothing speaks for the topic and 1 where everything does.
    calibration : Calibration
        From scores to log odds.
    word_round : WordRound or None
        The second round.
    choice : Choice
        The settings that were chosen,
    chosen_from : int
        and from how many labelled documents they and the calibrations were learnt.
    covered : array of int (n_covered,)
        Numbers of the known topics with labels, or with a name that helps; the others have probability 0.
    rows : array of int (n_rows,)
        The labelled documents that were learnt from.
    left_out : array (n_rows, n_covered)
        Their probabilities when their own labels are hidden; NaN for the only document of a topic.
    seen : array (dense, dense)
        DᵀD of the labelled documents' latent semantics: where labels are.
    n_known : int
        Number of known topics.
    """

    basis: Array
    dense: Array
    scale: Array
    calibration: Calibration
    word_round: WordRound | None
    choice: Choice
    chosen_from: int
    covered: NDArray[np.int64]
    rows: NDArray[np.int64]
    left_out: Array
    seen: Array
    n_known: int

    def probabilities(
        self, X: sp.csr_array, threads: int | None = None, *, embeddings: Array | None = None
    ) -> NDArray[np.float32]:
        """Probability of each known topic in each document (n_documents, n_known), labels not looked at."""
        out = np.zeros((X.shape[0], self.n_known), dtype=np.float32)
        for rows, D, words in projected(X, self.basis, self._dimensions, threads, self._weighed(embeddings)):
            out[rows, self.covered] = expit(self._odds(D, words))
        if embeddings is None:
            out[np.diff(X.indptr) == 0] = 0  # a document without terms says nothing
        return out

    def positions(self, X: sp.csr_array, threads: int | None = None) -> Array:
        """Where documents stand in the latent semantics: rows of equal length, whose product is a likeness."""
        return np.concatenate([D for _, D, _ in projected(X, self.directions, self._dimensions, threads)])

    @property
    def covers(self) -> NDArray[np.bool_]:
        """For each known topic whether anything is said of it."""
        return np.isin(np.arange(self.n_known), self.covered)

    @property
    def embedding(self) -> float:
        """Weight of the embeddings, 0 if there are none."""
        return self.choice.embedding

    @property
    def directions(self) -> Array:
        """The latent semantics of the documents (n_terms, q), which labels have no part in."""
        return np.ascontiguousarray(self.basis[:, : self._dimensions])

    def moved(self, rows: NDArray[np.int64], n_terms: int | None = None) -> Guide:
        """The same with other numbers of its documents, and with room for more terms."""
        more = 0 if n_terms is None else n_terms - len(self.basis)
        return replace(self, rows=rows, basis=np.pad(self.basis, ((0, more), (0, 0))))

    @property
    def _dimensions(self) -> int:
        return int(self.basis.shape[1] - len(self.covered) * (1 if self.word_round is None else 2))

    def _weighed(self, embeddings: Array | None) -> Array | None:
        if (embeddings is None) == bool(self.embedding):
            wanted = "needs the embeddings of documents" if self.embedding else "was learnt without embeddings"
            raise ValueError(f"This guide {wanted}.")
        return None if embeddings is None else unit_rows(embeddings) * np.sqrt(self.embedding)

    def _odds(self, D: Array, words: Array) -> Array:
        k = len(self.covered)
        first = self.calibration.odds((words[:, :k] + D @ self.dense) * self.scale)
        return first if self.word_round is None else self.word_round.odds(first, words[:, k:])

    # --- files ---

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but ``n_known``, as arrays under the names that files have for them."""
        second = self.word_round or WordRound(FIRST_ONLY, np.zeros(len(self.covered)))
        choice = self.choice
        return {
            "calibration": self.calibration.weights,
            "rarity": self.calibration.rarity,
            "shift": self.calibration.shift,
            "mix": second.mix,
            "second_shift": second.shift,
            "settings": np.array([choice.embedding, choice.name, choice.ridge, self.chosen_from]),
            **{
                name: getattr(self, name) for name in ("basis", "dense", "scale", "covered", "rows", "left_out", "seen")
            },
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_known: int) -> Guide:
        """What :meth:`arrays` gave."""
        embedding, name, ridge, labels = arrays["settings"].tolist()
        mix = arrays["mix"]
        return cls(
            calibration=Calibration(arrays["calibration"], arrays["rarity"], arrays["shift"]),
            word_round=WordRound(mix, arrays["second_shift"]) if mix[1:3].any() else None,
            choice=Choice(embedding, name, ridge),
            chosen_from=int(labels),
            n_known=n_known,
            **{name: arrays[name] for name in ("basis", "dense", "scale", "covered", "rows", "left_out", "seen")},
        )
