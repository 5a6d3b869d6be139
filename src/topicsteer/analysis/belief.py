"""The belief of a model about documents that have none of the known topics, in one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topicsteer.analysis.columns import missing
from topicsteer.analysis.topics import Topics
from topicsteer.guidance.outside import FEW_LABELS
from topicsteer.system.values import ALL, NONE

# How to declare it, in Python and on the command line; the workbench has a setting instead.
DECLARE_OPEN = 'set world="open" (--world open)'


def believed(topics: Topics, is_open: bool, declared: object) -> str:
    """The sentence.

    Parameters
    ----------
    topics : Topics
        The fitted topics.
    is_open : bool
        Whether the model believes that documents may have none of the known topics.
    declared : str or None
        The world that the user declared.
    """
    known, free = topics.n_known - len(topics.found), len(topics) - topics.n_known
    if not known:
        return "There are no known topics."
    yours = f"your {known:,} topics" if known > 1 else "your topic"
    lack = f"have none of {yours}" if known > 1 else "do not have your topic"
    if is_open:
        described = {0: "no free topic describes them", 1: "1 free topic describes them"}
        many = described.get(free, f"{free:,} free topics describe them")
        return f"About {topics.none_share:.0%} of the documents {lack}; {many}."
    if declared == "closed":
        return f"Every document has one of {yours}, as declared."
    counts = topics.labelled[topics.labelled > 0]
    if not counts.size:
        return (
            f"Without labels it is unknown how many documents {lack}. If you know that some do, {DECLARE_OPEN}. "
            'Or label a few documents of each topic, and some as "none of these".'
        )
    if np.median(counts) < FEW_LABELS:
        return (
            f"Labels are too few to decide whether some documents {lack}, so each counts as having one. "
            f'If some do, {DECLARE_OPEN}, or mark a few of them as "none of these".'
        )
    overlap = ""
    if topics.open and free:
        wanted = (
            f"{free:,} free topics that you asked for overlap" if free > 1 else "free topic that you asked for overlaps"
        )
        overlap = f" The {wanted} with them."
    return f"Every document seems to have one of {yours}.{overlap}"


def corrected(shares: Mapping[str, Sequence[Any]]) -> tuple[float, str] | None:
    """The share of documents with none of the known topics in a table of shares, and a sentence to follow the belief.

    None if the labels do not give it an interval.

    Examples
    --------
    >>> corrected({"topic": ["(none)"], "group": ["(all)"], "share": [0.12], "low": [0.1], "high": [0.15]})
    (0.12, 'Corrected by the labels, their share is 12% (10% to 15%).')
    """
    names = ("topic", "group", "share", "low", "high")
    for topic, group, share, low, high in zip(*(shares.get(name, ()) for name in names), strict=True):
        if (topic, group) == (NONE, ALL) and not missing(low):
            return share, f"Corrected by the labels, their share is {share:.0%} ({low:.0%} to {high:.0%})."
    return None
