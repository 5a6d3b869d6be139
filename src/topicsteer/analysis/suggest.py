"""Which documents to label next, which labels look wrong, and when to stop.

A label is worth most where it teaches something about many documents that are still in doubt. In the latent space each
label lowers the variance of what is near it; a batch is chosen greedily so that the variance left over, summed over the
unlabelled documents with their doubt as weight, falls fastest. That is uncertainty, density and diversity in one sum:
what is near a document just chosen has little left to gain.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.baselines import Rows
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.types import Array

SHORTLIST = 10_000  # documents looked at closely: so many of the most doubtful, and as many at random
NOISE = 1.0  # variance of a label beside that of a document's position, the usual ridge of the guide
SAME = 0.95  # cosine from which two documents are too alike for one batch
LIKELY = 0.1  # probability from which a topic is worth naming
FEW = 5  # labels up to which a topic is called rare
STEADY = 0.95  # agreement with the answers from nine tenths of the labels from which more labels bring little
UNMET = 0.05  # share of the topics that may still be without a label then
STATES = {PERMITTED: "permitted", FORBIDDEN: "forbidden", UNKNOWN: "unknown"}


@dataclass(frozen=True)
class Suggestion:
    """A document to label next: its row, its likely topics (numbers, strongest first), and why it was chosen."""

    row: int
    topics: tuple[int, ...]
    why: str


@dataclass(frozen=True)
class Doubt:
    """A label to look at again: document and topic, what was given, its left-out probability, how strong, and why.

    ``rival`` is the topic that the document reads like instead, if it does; ``only``: no other document has the topic.
    """

    row: int
    topic: int
    given: str
    probability: float
    strength: float
    why: str
    rival: int | None = None
    rival_probability: float | None = None
    only: bool = False


@dataclass(frozen=True)
class StoppingAdvice:
    """Whether more labels pay.

    Parameters
    ----------
    stop : bool
        More labels of this kind will change little.
    sentence : str
        The same in words.
    agreement : float
        How far the probabilities agree with those from nine tenths of the labels, mean of the topics; 1 = the same.
    doubtful : float
        Share of the unlabelled documents in which no topic is clear.
    unmet : float
        Topics without a label: those that were named, or, if more, as many as there seem to be beside the known ones
        by how many have one label and how many two (Chao 1984; a lower bound for labels given at random).
    """

    stop: bool
    sentence: str
    agreement: float
    doubtful: float
    unmet: float


def suggest(
    place: Callable[[Rows], Array],
    probabilities: Array,
    supervision: Supervision,
    seen: Array,
    n: int = 20,
    *,
    rows: Rows | None = None,
    seed: int = 0,
) -> list[Suggestion]:
    """Documents to label next, best first.

    Parameters
    ----------
    place : callable
        From row numbers to latent positions (n_rows, q).
    probabilities : array (n_documents, n_known)
        Of each known topic, labels not looked at.
    supervision : Supervision
        For the names and the counts of the topics, and for what is labelled.
    seen : array (q, q)
        ZᵀZ of the positions of the labelled documents.
    n : int, default=20
        Size of the batch; fewer come back if fewer differ.
    rows : array of int, optional
        Documents to choose from. Default: the unlabelled ones.
    seed : int, default=0
        For the sample that stands for the others where they are many.

    Returns
    -------
    list of Suggestion

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> Z = np.array([[1, 0, 0], [0.9, 0.1, 0], [0, 1, 0], [0, 1, 0.1], [0, 0.9, 0.1]])
    >>> P = np.array([[0.9], [0.9], [0.0], [0.0], [0.0]])
    >>> found = suggest(Z.__getitem__, P, supervise({0: "tea"}, 5), Z[:1].T @ Z[:1], 1)
    >>> found[0].row, found[0].why
    (3, 'unlike anything labelled yet')
    """
    rows = np.flatnonzero(~supervision.labelled) if rows is None else rows
    worth = _worth(probabilities[rows], supervision.counts)
    close, sample = _shortlist(worth, np.random.default_rng(seed))
    rows, worth = rows[close], worth[close]
    Z = np.asarray(place(rows), dtype=np.float32)
    unknown = np.linalg.inv(np.eye(Z.shape[1]) + seen.astype(np.float64) / NOISE)
    size = np.maximum(np.square(Z).sum(axis=1), 1e-9)
    strange = ((Z @ unknown.astype(np.float32)) * Z).sum(axis=1) / size
    far = np.median(strange)
    picks = _greedy(Z, unknown, np.where(sample, worth, 0), n)
    return [_suggestion(int(rows[i]), probabilities[rows[i]], supervision, bool(strange[i] >= far)) for i in picks]


def audit(left_out: Array, rows: Rows, supervision: Supervision) -> list[Doubt]:
    """Every label that was given, and what is missing, with the most doubtful first.

    Parameters
    ----------
    left_out : array (n_rows, n_known)
        Probability of each known topic in labelled documents, each predicted without its own labels.
    rows : array of int (n_rows,)
        The numbers of these documents.
    supervision : Supervision
        What was given.

    Returns
    -------
    list of Doubt
        A label is in doubt if it is improbable, and more so if a topic that was not given is probable. Where the labels
        of a document hold, a probable topic that was not given is listed as missing. The only label of a topic comes
        last: without it nothing is known of the topic.

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> given = supervise(["tea", "tea", "milk", "milk"], 4)
    >>> found = audit(np.array([[0.1, 0.9], [0.9, 0.2], [0.8, 0.1], [0.9, 0.1]]), np.arange(4), given)
    >>> found[0].row, found[0].why
    (1, 'labelled tea (0.20), but reads like milk (0.90)')
    """
    states = supervision.patterns[supervision.pattern[rows]]
    given, names, counts = states == PERMITTED, supervision.topics, supervision.counts
    left_out = np.nan_to_num(left_out)  # the only document of a topic, which is not judged
    other = np.where(given, 0, left_out)
    best = other.argmax(axis=1)
    holds = np.where(given, left_out, 1).min(axis=1) >= 0.5
    missing = (other >= 0.5) & (holds & given.any(axis=1))[:, None]
    doubts = []
    for i, k in [*np.argwhere(given), *np.argwhere(missing)]:
        p, j, only = float(left_out[i, k]), int(best[i]), bool(given[i, k] and counts[k] == 1)
        q = float(other[i, j])
        strength = p / 2 if missing[i, k] else 0.0 if only else (1 - p) * (0.5 + 0.5 * q)
        state, reads_like = STATES[int(states[i, k])], given[i, k] and not only and p < 0.5 and q > max(p, LIKELY)
        rival, rival_name, rival_probability = (j, names[j], q) if reads_like else (None, None, None)
        why = doubt_sentence(state, names[k], p, rival_name, rival_probability, only)
        doubts.append(Doubt(int(rows[i]), int(k), state, p, strength, why, rival, rival_probability, only))
    return sorted(doubts, key=lambda doubt: -doubt.strength)


def doubt_sentence(
    given: str,
    name: Hashable,
    probability: float,
    rival_name: Hashable | None = None,
    rival_probability: float | None = None,
    only: bool = False,
) -> str:
    """Why a label is in doubt, in words; the arguments are the fields of a `Doubt`, with names for topics.

    Examples
    --------
    >>> doubt_sentence("permitted", "tea", 0.1, "milk", 0.8)
    'labelled tea (0.10), but reads like milk (0.80)'
    """
    if only:
        return f"the only label of {name}: nothing to judge it by"
    if rival_name is not None:
        return f"labelled {name} ({probability:.2f}), but reads like {rival_name} ({rival_probability:.2f})"
    start = "labelled" if given == STATES[PERMITTED] else "not labelled"
    return f"{start} {name}, which is {'probable' if probability >= 0.5 else 'improbable'} ({probability:.2f})"


def stopping_advice(probabilities: Array, before: Array, counts: Rows) -> StoppingAdvice:
    """Whether more labels pay, from what the last tenth of them changed and how many topics seem not to have come up.

    Parameters
    ----------
    probabilities, before : array (n_unlabelled, n_known)
        From all labels, and from nine tenths of them.
    counts : array of int (n_known,)
        Labels of each topic.

    Returns
    -------
    Outlook

    Examples
    --------
    >>> same = np.array([[0.9, 0.0], [0.1, 0.8]])
    >>> outlook(same, same, np.array([9, 9])).stop
    True
    >>> print(outlook(same, same[:, ::-1], np.array([9, 9])).sentence)
    Go on: the last tenth of the labels changed 94 % of the answers.
    """
    if not counts.any():
        return StoppingAdvice(False, "Go on: there are no labels yet.", 0.0, 1.0, float(len(counts)))
    both = np.minimum(probabilities, before).sum(axis=0, dtype=np.float64)
    either = np.maximum(probabilities, before).sum(axis=0, dtype=np.float64)
    found = either > 0
    agreement = float((both[found] / either[found]).mean()) if found.any() else 0.0
    doubtful = float((probabilities.max(axis=1, initial=0) < 0.5).mean()) if len(probabilities) else 0.0
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    unmet = max(float((counts == 0).sum()), once * (once - 1) / (2 * (twice + 1)))
    steady, met = agreement >= STEADY, unmet <= UNMET * len(counts)
    sentence = "More labels bring little" if steady and met else "Go on"
    sentence += f": the last tenth of the labels changed {100 * (1 - agreement):.0f} % of the answers"
    sentence += "." if met else f", and about {unmet:.0f} topics seem to have no label yet."
    return StoppingAdvice(steady and met, sentence, agreement, doubtful, unmet)


# --- the parts ---


def _worth(probabilities: Array, counts: Rows) -> Array:
    """Doubt about a document: no topic is clear, and the variance of the answers, most for topics with few labels."""
    doubt = 1 - probabilities.max(axis=1, initial=0)
    covered = counts > 0
    if not covered.any():
        return np.asarray(doubt)
    rarity = 1 / (1 + counts[covered])
    p = probabilities[:, covered]
    return np.asarray(doubt + (p * (1 - p)) @ (rarity / rarity.mean()).astype(p.dtype))


def _shortlist(worth: Array, rng: np.random.Generator) -> tuple[Rows, NDArray[np.bool_]]:
    """Documents to look at closely, and which of them stand for all."""
    if len(worth) <= 2 * SHORTLIST:
        return np.arange(len(worth)), np.ones(len(worth), dtype=np.bool_)
    sample = rng.choice(len(worth), SHORTLIST, replace=False)
    close = np.union1d(sample, np.argpartition(-worth, SHORTLIST)[:SHORTLIST])
    return close, np.isin(close, sample)


def _greedy(Z: Array, unknown: Array, weight: Array, n: int) -> list[int]:
    """Pick by the fall of the weighted variance, Σ_r w_r (z_r C z)² / (z C z + noise), C renewed each time."""
    C = unknown.copy()
    S = ((Z * weight[:, None].astype(Z.dtype)).T @ Z).astype(np.float64)
    half = Z @ C.astype(Z.dtype)
    variance = (half * Z).sum(axis=1)
    fall = ((half @ S.astype(Z.dtype)) * half).sum(axis=1)
    length = np.maximum(np.linalg.norm(Z, axis=1), 1e-9)
    open_ = np.ones(len(Z), dtype=np.bool_)
    picks: list[int] = []
    while len(picks) < n and open_.any():
        i = int(np.where(open_, fall / (variance + NOISE), -1).argmax())
        picks.append(i)
        z = Z[i].astype(np.float64)
        h = C @ z
        s = z @ h + NOISE
        t = C @ (S @ h)
        along, across, alike = (Z @ np.stack([h, t, z], axis=1).astype(Z.dtype)).T
        # C falls by h hᵀ / s, so the variance by (z_r h)² / s, and z C S C z by the terms of the same product.
        fall = np.maximum(fall - 2 * along * across / s + np.square(along) * (h @ S @ h) / s**2, 0)
        variance = np.maximum(variance - np.square(along) / s, 0)
        C -= np.outer(h, h) / s
        open_ &= alike < SAME * length * length[i]
        open_[i] = False
    return picks


def _suggestion(row: int, p: Array, supervision: Supervision, strange: bool) -> Suggestion:
    names, counts = supervision.topics, supervision.counts
    likely = tuple(int(k) for k in np.argsort(-p, kind="stable")[:3] if p[k] >= LIKELY)
    rare = [k for k in likely if counts[k] <= FEW and p[k] < 0.8]
    if not likely:
        why = "unlike anything labelled yet" if strange else "no topic fits, though others like it are labelled"
    elif rare:
        labels = counts[rare[0]]
        why = f"may be a rare topic: {names[rare[0]]} has {labels} label{'s' if labels != 1 else ''}"
    elif len(likely) > 1 and p[likely[1]] >= 0.5 * p[likely[0]]:
        why = f"between {names[likely[0]]} and {names[likely[1]]}"
    elif p[likely[0]] < 0.5:
        why = f"perhaps {names[likely[0]]}, but not surely"
    else:
        why = f"probably {names[likely[0]]}; stands for many that are not labelled"
    return Suggestion(row, likely, why)
