"""Input for other viewers: topicwizard and pyLDAvis."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.topics import Topics


def topic_data(
    topics: Topics, texts: Sequence[str], X: sp.csr_array, transform: Callable[..., object]
) -> dict[str, object]:
    """The content of topicwizard's ``TopicData``."""
    return {
        "corpus": list(texts),
        "document_term_matrix": X,
        "vocab": topics.vocabulary,
        "document_topic_matrix": topics.W,
        "document_representation": topics.W,
        "topic_term_matrix": topics.H,
        "transform": transform,
        "topic_names": list(topics.names),
        "classes": None,
        "topic_colors": None,
    }


def pyldavis(topics: Topics, X: sp.csr_array) -> Any:
    """Prepared data of pyLDAvis, in the order of the topics, numbered from 1; its 0 means "no topic"."""
    try:
        import pyLDAvis
    except ImportError as error:
        raise ImportError("to_pyldavis needs the package pyLDAvis: pip install pyLDAvis") from error
    used = np.flatnonzero(topics.proportions.sum(axis=1) > 0)
    parts = topics.proportions[used].astype(np.float64)
    terms = topics.H.astype(np.float64) + 1e-12  # pyLDAvis takes logarithms
    return pyLDAvis.prepare(
        terms / terms.sum(axis=1, keepdims=True),
        parts / parts.sum(axis=1, keepdims=True),
        np.diff(X.indptr)[used],
        topics.vocabulary,
        np.maximum(np.asarray(X.sum(axis=0)).ravel(), 1e-12),
        sort_topics=False,
    )
