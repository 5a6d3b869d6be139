"""Type aliases that many modules share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]
# Called with the stage, the work done, the total (None if unknown) and a detail.
Progress: TypeAlias = Callable[[str, int, int | None, str], object]
# Called with the name of a step.
Report: TypeAlias = Callable[[str], object]
JSON: TypeAlias = Mapping[str, "JSON"] | Sequence["JSON"] | str | int | float | bool | None
