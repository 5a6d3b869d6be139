"""A coder: a language model, an old classifier, a dictionary or a second person, with its topics per document."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.labels.codebook import Lineage
from topicsteer.labels.forms import NO_PARENTS, supervise
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.failures import warn_user
from topicsteer.system.types import Array

# The name of the labels of the model, which is no name of a coder.
PEOPLE = "people"
# Greatest number of characters of a coder's name.
LONGEST_NAME = 80


@dataclass(frozen=True, eq=False)
class Coder:
    """The answers of one coder. They are never labels: no fit learns a topic from them.

    Parameters
    ----------
    name : str
        Its name, such as "gpt".
    answers : Supervision
        Its topics per document, over the known topics of the model. Unlabelled documents have no answer.

    Examples
    --------
    >>> coder = coder_of("gpt", [["tea"], [], ["(none)"]], 3, ["tea", "milk"])
    >>> coder.states
    array([[ 1,  0],
           [-1, -1],
           [ 0,  0]], dtype=int8)
    >>> coder.predictions
    array([[ 1.,  0.],
           [nan, nan],
           [ 0.,  0.]])
    """

    name: str
    answers: Supervision

    @property
    def states(self) -> NDArray[np.int8]:
        """Answers per document and topic: 1 yes, 0 no, -1 no answer."""
        return np.asarray(self.answers.patterns[self.answers.pattern])

    @property
    def predictions(self) -> Array:
        """Numbers per document and topic: 1 for a yes, 0 for a no, NaN without an answer."""
        return np.where(self.states == UNKNOWN, np.nan, self.states.astype(np.float64))


def check_coder_name(name: object) -> str:
    """Return the name of a coder, or raise ValueError if it is none.

    Examples
    --------
    >>> check_coder_name("people")
    Traceback (most recent call last):
    ValueError: a coder cannot have the name 'people', which stands for the labels of the model: choose another.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ValueError(f"{name!r} is not a name of a coder: expected 1 to {LONGEST_NAME} visible characters.")
    if name.strip() == PEOPLE:
        raise ValueError(
            f"a coder cannot have the name {PEOPLE!r}, which stands for the labels of the model: choose another."
        )
    return name.strip()


def coder_of(
    name: str,
    y: Any,
    n_documents: int,
    topics: Sequence[Hashable],
    *,
    lineage: Lineage = NO_PARENTS,
) -> Coder:
    """Make a coder from its answers in any form of labels.

    Answers outside the known topics are not known topics: they are dropped with a warning. A document with no other
    answer then has none of the known topics.

    Parameters
    ----------
    name : str
        Name of the coder.
    y : labels in any form
        As in `supervise`; an answer is complete, so that all other topics are a no. An indicator has one column per
        known topic.
    n_documents : int
        Number of documents.
    topics : sequence
        The known topics.
    lineage : Lineage, optional
        The parents of topics. An answer is then one for all topics above it, and leaves the topics below it open.
    """
    name = check_coder_name(name)
    try:
        indicator = getattr(y, "ndim", 1) == 2
        found = supervise(y, n_documents, topics=topics if indicator else None, lineage=lineage)
    except ValueError as error:
        raise ValueError(f"coder {name}: {error}") from None
    known = {str(topic): k for k, topic in enumerate(topics)}
    given = (found.patterns == PERMITTED).any(axis=0)
    outside = [str(topic) for k, topic in enumerate(found.topics) if str(topic) not in known and given[k]]
    if outside:
        listed = ", ".join(map(repr, outside[:5])) + (", ..." if len(outside) > 5 else "")
        warn_user(
            f"coder {name}: {len(outside):,} answer{'s' * (len(outside) > 1)} outside the known topics ({listed}) "
            "count as none of them. If a name is spelt differently, write it as in the model."
        )
    patterns = np.full((len(found.patterns), len(topics)), FORBIDDEN, dtype=np.int8)
    for k, topic in enumerate(found.topics):
        if str(topic) in known:
            patterns[:, known[str(topic)]] = found.patterns[:, k]
    patterns[0] = UNKNOWN
    answers = Supervision(tuple(topics), found.pattern, patterns, lineage.forest(topics))
    return Coder(name, answers)
