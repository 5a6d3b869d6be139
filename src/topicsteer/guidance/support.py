"""Known topics that nothing ties to a document: no label, and no word that occurs in the corpus. They stay empty."""

from collections.abc import Hashable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.guidance.guide import Guide
from topicsteer.guidance.penalties import topic_penalties
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, Supervision
from topicsteer.nmf.protocols import Rows
from topicsteer.system.failures import warn_user
from topicsteer.system.types import Array

# Number of topics that a warning lists.
SHOWN = 8
# Surest documents of each name without a label that count as its labels in an open world, and their least evidence.
NAME_LABELS, NAME_EVIDENCE = 10, 0.5


def unsupported_topics(supervision: Supervision, guide: Guide | None) -> list[Hashable]:
    """Names of these topics; none after an edit that changed the number of known topics."""
    names, counts = supervision.topics, supervision.counts
    covered = np.zeros(len(names), dtype=np.bool_) if guide is None else guide.covers[: guide.n_known]
    if len(covered) != len(names):
        return []
    return [name for name, tied in zip(names, covered | (counts > 0), strict=True) if not tied]


def warn_of_unsupported(supervision: Supervision, guide: Guide | None) -> None:
    """Warn about these topics."""
    empty = [repr(str(name)) for name in unsupported_topics(supervision, guide)]
    if not empty:
        return
    many = ", ".join(empty[:SHOWN]) + (f" and {len(empty) - SHOWN} more" if len(empty) > SHOWN else "")
    warn_user(
        f"Nothing ties these topics to a document, so they are empty: {many}. None of their words occurs in the "
        "corpus, and they have no label. Label a document, or add keywords that occur."
    )


def with_name_labels(supervision: Supervision, rows: NDArray[np.intp], evidence: Array) -> Supervision:
    """The labels, with the surest documents of each name without a label as labels of its topic.

    Groups of an open world have labels of this kind. Names without any would be rare topics next to them.

    Parameters
    ----------
    supervision : Supervision
        Labels of known topics, followed by groups.
    rows : array of int (n_rows,)
        Row numbers of some documents.
    evidence : array (n_rows, n_known)
        Probability of each name in these documents.
    """
    pattern, patterns, free = supervision.pattern.copy(), [supervision.patterns], ~supervision.labelled[rows]
    best, n_patterns = evidence.argmax(axis=1), len(supervision.patterns)
    for k in np.flatnonzero(supervision.counts[: evidence.shape[1]] == 0):
        own = np.flatnonzero(free & (best == k) & (evidence[:, k] >= NAME_EVIDENCE))
        surest = own[np.argsort(-evidence[own, k], kind="stable")[:NAME_LABELS]]
        pattern[rows[surest]] = n_patterns + len(patterns) - 1
        only = np.full((1, len(supervision.topics)), FORBIDDEN, dtype=np.int8)
        only[0, k] = PERMITTED
        patterns.append(only)
    return Supervision(supervision.topics, pattern, np.vstack(patterns))


def leave_empty(X: Rows, known: int, n_components: int) -> sp.csr_array | None:
    """Penalties that leave all known topics empty, for a fit without a guide; None without known topics."""
    if not known:
        return None
    return topic_penalties(np.zeros((X.shape[0], known)), np.zeros(known, dtype=np.bool_), n_components)
