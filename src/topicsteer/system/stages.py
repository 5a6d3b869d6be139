"""Seconds of each stage of a long piece of work, measured by its progress calls."""

from __future__ import annotations

import time

from topicsteer.system.types import Progress


class Stages:
    """A progress callback that passes calls on and adds up the seconds of each stage.

    A stage lasts until the next one begins. The steps of the guide are stages of their own.

    Parameters
    ----------
    progress : callable, optional
        The callback of the user.
    first : str
        Name of the stage that begins now.

    Examples
    --------
    >>> stages = Stages(None, "terms")
    >>> stages("guide", 0, None, "weights, fold 1 of 3")
    >>> stages("fit", 3, 100, "objective 2.5")
    >>> list(stages.end())
    ['terms', 'weights', 'fit']
    """

    def __init__(self, progress: Progress | None, first: str) -> None:
        self._progress, self._now, self._since = progress, first, time.perf_counter()
        self._seconds: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int | None, detail: str) -> None:
        """As a progress callback."""
        step = detail.partition(",")[0]
        name = step if stage == "guide" and step else stage
        if name != self._now:
            self._change(name)
        if self._progress is not None:
            self._progress(stage, done, total, detail)

    def end(self) -> dict[str, float]:
        """Seconds of each stage in order of their beginning; the last one ends now."""
        self._change("")
        return {name: round(seconds, 3) for name, seconds in self._seconds.items()}

    def _change(self, name: str) -> None:
        now = time.perf_counter()
        self._seconds[self._now] = self._seconds.get(self._now, 0.0) + now - self._since
        self._now, self._since = name, now
