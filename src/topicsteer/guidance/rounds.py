"""Both rounds of a guide for some topics, as one linear map and two calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.guidance.calibration import Calibration
from topicsteer.guidance.word_round import WordRound
from topicsteer.system.types import Array

# In files, this mix stands for a guide without a second round.
NO_SECOND_ROUND = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False)
class Rounds:
    """Both rounds for some topics: from features and products with terms to log odds; see `Guide` for the fields."""

    dense: Array
    scale: Array
    calibration: Calibration
    word_round: WordRound | None
    covered: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Number of columns of the basis: term weights, and log ratios if there is a second round."""
        return len(self.covered) * (1 if self.word_round is None else 2)

    def odds(self, D: Array, products: Array) -> Array:
        """Log odds of the covered topics."""
        k = len(self.covered)
        first = self.calibration.odds((products[:, :k] + D @ self.dense) * self.scale)
        return first if self.word_round is None else self.word_round.odds(first, products[:, k : self.width])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All fields as arrays under their names in files."""
        second = self.word_round or WordRound(NO_SECOND_ROUND, np.zeros(len(self.covered)))
        return {
            "calibration": self.calibration.weights,
            "rarity": self.calibration.rarity,
            "shift": self.calibration.shift,
            "mix": second.mix,
            "second_shift": second.shift,
            **{name: getattr(self, name) for name in ("dense", "scale", "covered")},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Rounds:
        """The rounds of these :meth:`arrays`."""
        mix = arrays["mix"]
        return cls(
            calibration=Calibration(arrays["calibration"], arrays["rarity"], arrays["shift"]),
            word_round=WordRound(mix, arrays["second_shift"]) if mix[1:3].any() else None,
            **{name: arrays[name] for name in ("dense", "scale", "covered")},
        )
