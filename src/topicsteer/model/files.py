"""What a fitted model consists of, as plain values and arrays for `topicsteer.system.arrays`, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from topicsteer.corpora import Documents
from topicsteer.estimator import TSNMF
from topicsteer.guidance.guide import Guide
from topicsteer.labels.supervision import Supervision
from topicsteer.nmf.statistics import Hand, Past
from topicsteer.system import arrays as storage
from topicsteer.system.types import Array
from topicsteer.text import TextVectorizer

GUIDE_ARRAYS = (
    *("basis", "dense", "scale", "calibration", "rarity", "shift", "second_shift", "mix", "settings"),
    *("covered", "rows", "left_out", "seen"),
)
PAST_ARRAYS = ("cross", "gram", "charge", "totals", "scale")
SETTINGS = ("free_topics", "complete", "guidance", "random_state")  # of a TopicModel, which are stored as they are,
WORDS = ("pinned", "banned", "descriptions")  # and those that are dicts of topics, or None


@dataclass(frozen=True, eq=False)
class Parts:
    """What a fitted TopicModel consists of.

    ``settings`` are the arguments of the TopicModel that is to be, ``names`` those of all topics; ``groups`` says
    which topics of the guide make up each known one, and ``texts`` is None if they are not stored. For updates there
    are ``digests``, to recognise documents, their ``weights``, the documents at ``hand``, None if they are not kept,
    with the sums of all others in ``estimator.past_``, and from how many documents the guide's choices were learnt.
    """

    settings: dict[str, Any]
    names: Sequence[str]
    ids: Sequence[Hashable]
    texts: Sequence[str] | None
    fingerprint: str
    vectorizer: TextVectorizer
    estimator: TSNMF
    supervision: Supervision
    guide: Guide | None
    groups: list[list[int]]
    profiles: Array
    memberships: Array
    cuts: Array
    digests: NDArray[np.uint64]
    weights: Array
    hand: Hand | None
    learnt_from: int


def write(path: str | Path, parts: Parts) -> None:
    """Write a model to a folder; an older one there is replaced only when all is written."""
    options, terms, idf = parts.vectorizer.get_state()
    estimator = parts.estimator
    parameters = {k: v for k, v in estimator.get_params().items() if isinstance(v, str | int | float | None)}
    meta: dict[str, Any] = {
        "kind": "TopicModel",
        "names": list(parts.names),
        "known": len(parts.supervision.topics),
        "groups": parts.groups,
        **{name: parts.settings[name] for name in SETTINGS},
        **{name: _plain_words(parts.settings[name]) for name in WORDS},
        "vectorizer": options,
        "lemmatizer": parts.vectorizer.lemmatizer is not None,
        "vocabulary": terms,
        "estimator": parameters | {"n_iter": estimator.n_iter_, "ended": estimator.ended_},
        "fingerprint": parts.fingerprint,
        "ids": [_plain_id(i) for i in parts.ids],
        "texts": None if parts.texts is None else list(parts.texts),
        "learnt_from": parts.learnt_from,
    }
    arrays = {
        "components": estimator.components_,
        "document_topics": estimator.document_topics_,
        "idf": idf,
        "profiles": parts.profiles,
        "pattern": parts.supervision.pattern,
        "patterns": parts.supervision.patterns,
        "history": estimator.objective_history_,
        "memberships": parts.memberships,
        "cuts": parts.cuts,
        "digests": parts.digests,
        "weights": parts.weights,
    }
    if parts.guide is not None:
        arrays |= {f"guide_{name}": getattr(parts.guide, name) for name in GUIDE_ARRAYS}
    if parts.hand is not None:
        hand, past = parts.hand, estimator.past_
        arrays |= {f"hand_{name}": getattr(hand.X, name) for name in ("data", "indices", "indptr")}
        arrays |= {"hand_rows": hand.rows, "hand_keys": hand.keys}
        arrays |= {} if hand.embeddings is None else {"hand_embeddings": hand.embeddings}
        arrays |= {f"past_{name}": getattr(past, name) for name in PAST_ARRAYS}
    storage.save(path, meta, arrays)


def read(path: str | Path, lemmatizer: Callable[[str], str] | None = None) -> Parts:
    """Read what :func:`write` wrote; ``lemmatizer`` is that of the fit, if there was one."""
    meta, arrays = storage.load(path)
    try:
        if meta["kind"] != "TopicModel":
            raise storage.StorageError(f"{path} holds a {meta['kind']}, not a TopicModel.")
        if meta["lemmatizer"] and lemmatizer is None:
            raise storage.StorageError(f"{path} was fitted with a lemmatizer: give the same one to load.")
        return _parts(meta, arrays, lemmatizer)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, storage.StorageError):
            raise
        raise storage.StorageError(f"{path} is not a complete model: {error!r}. Save it again.") from error


def _parts(meta: dict[str, Any], arrays: dict[str, Any], lemmatizer: Any) -> Parts:
    known, names, groups = meta["known"], list(meta["names"]), meta["groups"]
    estimator = TSNMF(**{k: v for k, v in meta["estimator"].items() if k in TSNMF().get_params()})
    for name, value in (
        ("components_", arrays["components"]),
        ("document_topics_", arrays["document_topics"]),
        ("objective_history_", arrays["history"]),
        ("n_features_in_", arrays["components"].shape[1]),
        ("topic_names_", np.array(names, dtype=object)),
        ("n_known_", known),
        ("n_iter_", meta["estimator"]["n_iter"]),
        ("ended_", meta["estimator"]["ended"]),
    ):
        setattr(estimator, name, value)
    hand = None
    if "hand_rows" in arrays:
        words = (arrays["hand_data"], arrays["hand_indices"], arrays["hand_indptr"])
        X = sp.csr_array(words, shape=(len(arrays["hand_rows"]), arrays["components"].shape[1]))
        hand = Hand(arrays["hand_rows"], X, arrays["hand_keys"], arrays.get("hand_embeddings"))
        estimator.past_ = Past(*(arrays[f"past_{name}"] for name in PAST_ARRAYS))
    learnt = {name: arrays[f"guide_{name}"] for name in GUIDE_ARRAYS if f"guide_{name}" in arrays}
    return Parts(
        settings={name: meta[name] for name in SETTINGS} | {name: meta.get(name) for name in WORDS},
        names=names,
        ids=meta["ids"],
        texts=meta["texts"],
        fingerprint=meta["fingerprint"],
        vectorizer=TextVectorizer.from_state(
            meta["vectorizer"], meta["vocabulary"], arrays["idf"], lemmatizer=lemmatizer
        ),
        estimator=estimator,
        supervision=Supervision(tuple(names[:known]), arrays["pattern"], arrays["patterns"]),
        guide=Guide(**learnt, n_known=sum(map(len, groups))) if learnt else None,
        groups=groups,
        profiles=arrays["profiles"],
        memberships=arrays["memberships"],
        cuts=arrays["cuts"],
        digests=arrays["digests"],
        weights=arrays["weights"],
        hand=hand,
        learnt_from=meta["learnt_from"],
    )


def digests(documents: Documents) -> NDArray[np.uint64]:
    """A number for each document, to recognise it again by its id and text."""
    found = b"".join(
        hashlib.sha256(f"{name}\x00{text}".encode("utf-8", "surrogatepass")).digest()[:8]
        for name, text in zip(documents.ids, documents.texts, strict=True)
    )
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)


def fingerprint(numbers: NDArray[np.uint64]) -> str:
    """A short hash of documents in their order, from :func:`digests`."""
    return hashlib.sha256(numbers.astype("<u8").tobytes()).hexdigest()[:16]


def _plain_words(words: Any) -> Any:
    """Texts or lists of words for each topic, as JSON has them."""
    if words is None:
        return None
    return {str(topic): value if isinstance(value, str) else list(value) for topic, value in words.items()}


def _plain_id(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int) else str(value)
