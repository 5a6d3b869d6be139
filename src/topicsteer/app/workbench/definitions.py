"""Definitions of topics over time: a label may be older than the present definition of its topic."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from topicsteer.app.workbench.event_log import Event, Topic


class Definitions:
    """The descriptions of each topic, each with the event that brought it.

    Examples
    --------
    >>> tea, hot = Topic(1, "tea", description="a plant"), Topic(1, "tea", description="a hot drink")
    >>> definitions = Definitions()
    >>> definitions.apply(1, Event.of_topic(None, tea))
    >>> definitions.apply(5, Event.of_topic(tea, hot))
    >>> definitions.older(1, 3), definitions.older(1, 7)
    (True, False)
    """

    def __init__(self) -> None:
        self._texts: dict[int, list[tuple[int, str]]] = defaultdict(list)

    def apply(self, seq: int, event: Event) -> None:
        """Take note of a description that changed."""
        topic = Topic.parse(event.state) if event.document is None else None
        texts = self._texts[event.key] if topic is not None else []
        if topic is not None and (not texts or texts[-1][1] != topic.description):
            texts.append((seq, topic.description))

    def older(self, key: int, seq: int) -> bool:
        """Return whether the label of an event was given under another definition; none at all is no definition."""
        texts = self._texts.get(key, [])
        place = bisect_right(texts, seq, key=lambda text: text[0]) - 1
        return place >= 0 and texts[place][1] not in ("", texts[-1][1])
