"""The scale of X: a matrix with extreme entries is factorised after division by a power of two.

Sums of squares would overflow or vanish otherwise. A power of two changes no digit, and matrices of ordinary scale are
not touched at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from topicsteer.nmf.loop import Callback
from topicsteer.system.types import Array

# Exponents of two between which the largest entry of X is left alone: about 1e-6 and 1e12.
LOWEST, HIGHEST = -20, 40


@dataclass(frozen=True)
class Scale:
    """A factor 2**exponent: 1 for data of ordinary scale.

    Examples
    --------
    >>> Scale.of(1e30).down(np.array([1e30]))
    array([0.78886091])
    >>> Scale.of(0.3)
    Scale(exponent=0)
    """

    exponent: int = 0

    @classmethod
    def of(cls, largest: float) -> Scale:
        """The scale of data with this largest entry."""
        exponent = math.frexp(largest)[1]
        return cls() if largest == 0 or LOWEST <= exponent <= HIGHEST else cls(exponent)

    def __bool__(self) -> bool:
        return self.exponent != 0

    def down(self, values: Array) -> Array:
        """Values divided by the factor."""
        return self._times(values, -self.exponent)

    def up(self, values: Array, power: int = 1) -> Array:
        """Values multiplied by a power of the factor; infinity or 0 where they leave the range of their type."""
        return self._times(values, power * self.exponent)

    def refuse(self, why: str) -> None:
        """Raise ValueError if the scale is not 1."""
        if self:
            raise ValueError(
                f"The largest entry of X is about 2**{self.exponent}, and {why}: multiply X by 2.0**{-self.exponent}."
            )

    def _times(self, values: Array, exponent: int) -> Array:
        if not self:
            return values
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(values, exponent))


def upscaled(scale: Scale, W: Array, H: Array) -> tuple[Array, Array]:
    """The factors of X from the factors of X divided by its scale; H gets the scale, and cannot overflow."""
    if not scale:
        return W, H
    large = np.maximum(np.frexp(H.max(axis=1, initial=0))[1], 0)
    return np.ldexp(W, large), scale.up(np.ldexp(H, -large[:, None]))


def downscaled(X: sp.csr_array, fixed: bool) -> tuple[sp.csr_array, Scale]:
    """X divided by its scale, which is refused if something else is ``fixed`` relative to it."""
    scale = Scale.of(float(X.data.max(initial=0)))
    if not scale:
        return X, scale
    if fixed:
        scale.refuse("penalties are relative to its scale")
    return sp.csr_array((scale.down(X.data), X.indices, X.indptr), shape=X.shape), scale


def reporting(callback: Callback | None, scale: Scale, verbose: bool) -> Callback:
    """A callback that may print one line per iteration, then calls the user's callback, in the scale of X."""

    def report(iteration: int, objective: float, seconds: float) -> object:
        objective = float(scale.up(np.asarray(objective), 2))
        if verbose:
            print(f"iteration {iteration:4d}   objective {objective:.6g}   {seconds:.1f} s")
        return callback(iteration, objective, seconds) if callback is not None else None

    return report
