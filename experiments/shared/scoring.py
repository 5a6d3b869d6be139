"""Scores that several studies report."""

from __future__ import annotations

from typing import Any

from topicsteer.metrics import average_precision


def precision_on(rows: Any, truth: Any, scores: Any) -> dict[str, float]:
    """Macro and micro average precision on some documents, over the topics that occur in them."""
    found = average_precision(truth[rows], scores[rows])
    return {"macro": found.macro, "micro": found.micro}
