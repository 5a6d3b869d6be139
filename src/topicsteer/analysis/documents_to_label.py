"""Active learning: documents to label next, and labels that look wrong.

The most useful label reduces the uncertainty about many unlabelled documents. In the latent space, a label lowers the
variance of the documents near it. A batch is chosen greedily: each choice minimises the remaining variance, summed over
unlabelled documents and weighted by their doubt. This one sum combines uncertainty, density and diversity, because the
neighbours of a chosen document have little variance left.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.survey_design import SAME, doubt_probabilities, draw
from topicsteer.labels.forest import Forest
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.system.types import Array

Rows = NDArray[np.integer[Any]]

# Candidates in a large corpus: this many of the most doubtful documents, and as many at random.
SHORTLIST = 10_000
# Variance of a label relative to the prior variance of a position; the usual ridge of the guide.
NOISE = 1.0
# Topics with at least this probability are named as likely.
LIKELY = 0.1
# A topic with fewer labels is rare.
FEW = 5
# Names of the label states, for people.
STATES = {PERMITTED: "permitted", FORBIDDEN: "forbidden", UNKNOWN: "unknown"}


@dataclass(frozen=True)
class Suggestion:
    """A document to label next: row, likely topics (numbers, strongest first) and reason.

    ``probability`` is the probability of a draw by doubt.
    """

    row: int
    topics: tuple[int, ...]
    why: str
    probability: float | None = None


@dataclass(frozen=True)
class Doubt:
    """A label to check: document, topic, label, leave-one-out probability, strength of the doubt and reason.

    ``rival`` is a more probable topic of the document, if there is one. ``only`` marks the single label of a topic.
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


def suggest(
    positions: Callable[[Rows], Array],
    probabilities: Array,
    supervision: Supervision,
    seen: Array,
    n: int = 20,
    *,
    rows: Rows | None = None,
    shortlist: int = SHORTLIST,
    seed: int = 0,
) -> list[Suggestion]:
    """Choose documents to label next, best first.

    Parameters
    ----------
    positions : callable
        Returns latent positions (n_rows, q) for row numbers.
    probabilities : array (n_documents, n_known)
        Probability of each known topic; labels are ignored.
    supervision : Supervision
        The labels so far.
    seen : array (q, q)
        ZᵀZ of the positions of the labelled documents.
    n : int, default=20
        Size of the batch; smaller if too few documents differ.
    rows : array of int, optional
        Documents to choose from. Default: the unlabelled documents.
    shortlist : int
        Size of the sample that represents a large corpus, and number of the best documents that are compared closely.
    seed : int, default=0
        Seed of the sample that represents a large corpus.

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
    if not len(rows):
        return []
    worth = _worth(probabilities[rows], supervision.counts)
    close, sample = _shortlist(worth, shortlist, np.random.default_rng(seed))
    rows, worth = rows[close], worth[close]
    Z = np.asarray(positions(rows), dtype=np.float32)
    unknown = np.linalg.inv(np.eye(Z.shape[1]) + seen.astype(np.float64) / NOISE)
    size = np.maximum(np.square(Z).sum(axis=1), 1e-9)
    strange = ((Z @ unknown.astype(np.float32)) * Z).sum(axis=1) / size
    far = np.median(strange)
    picks = greedy_choice(Z, unknown, np.where(sample, worth, 0), n)
    return [suggestion_of(int(rows[i]), probabilities[rows[i]], supervision, bool(strange[i] >= far)) for i in picks]


def audit(left_out: Array, rows: Rows, supervision: Supervision) -> list[Doubt]:
    """Return all labels, and labels that seem to be missing, most doubtful first.

    Parameters
    ----------
    left_out : array (n_rows, n_known)
        Leave-one-out probabilities of the known topics in labelled documents.
    rows : array of int (n_rows,)
        Row numbers of these documents.
    supervision : Supervision
        The labels.

    Returns
    -------
    list of Doubt
        An improbable label is doubtful, more so if another topic is probable. If all labels of a document are probable,
        other probable topics are listed as missing. The single label of a topic comes last, because nothing else is
        known about the topic. In a tree, labels are the deepest ones. Topics below a label are not missing, and topics
        above or below a label do not contradict it.

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
    left_out = np.nan_to_num(left_out)  # NaN marks the single document of a topic
    other = np.where(given, 0, left_out)
    holds = np.where(given, left_out, 1).min(axis=1) >= 0.5
    missing = (other >= 0.5) & (holds & given.any(axis=1))[:, None]
    forest, doubts = supervision.forest, []
    labels = forest.deepest(given)
    for k in range(len(forest)):
        missing[np.ix_(labels[:, k], np.array(forest.descendants(k), dtype=np.int64))] = False
    for i, k in [*np.argwhere(labels), *np.argwhere(missing)]:
        others = other[i].copy()
        others[list(forest.descendants(k))] = 0
        j = int(others.argmax())
        p, q = float(left_out[i, k]), float(other[i, j])
        only = bool(given[i, k] and counts[k] == 1)
        strength = 0.0 if only else (1 - p) * (0.5 + 0.5 * q)
        if missing[i, k]:
            strength = p / 2
        state = STATES[int(states[i, k])]
        reads_like = given[i, k] and not only and p < 0.5 and q > max(p, LIKELY)
        rival, rival_name, chance = (j, names[j], q) if reads_like else (None, None, None)
        why = doubt_sentence(state, names[k], p, rival_name, chance, only)
        doubts.append(Doubt(int(rows[i]), int(k), state, p, strength, why, rival, chance, only))
    return sorted(doubts, key=lambda doubt: -doubt.strength)


def doubt_sentence(
    given: str,
    name: Hashable,
    probability: float,
    rival_name: Hashable | None = None,
    rival_probability: float | None = None,
    only: bool = False,
) -> str:
    """Return the reason for a doubt; the arguments are the fields of a `Doubt`, with topic names.

    Examples
    --------
    >>> doubt_sentence("permitted", "tea", 0.1, "milk", 0.8)
    'labelled tea (0.10), but reads like milk (0.80)'
    """
    if only:
        return f"the only label of {name}, so it cannot be checked"
    if rival_name is not None:
        return f"labelled {name} ({probability:.2f}), but reads like {rival_name} ({rival_probability:.2f})"
    start = "labelled" if given == STATES[PERMITTED] else "not labelled"
    return f"{start} {name}, which is {'probable' if probability >= 0.5 else 'improbable'} ({probability:.2f})"


# --- steps of suggest ---


def _worth(probabilities: Array, counts: Rows) -> Array:
    """Doubt about each document: no clear topic, plus the variance of its probabilities, weighted to rare topics."""
    doubt = 1 - probabilities.max(axis=1, initial=0)
    covered = counts > 0
    if not covered.any():
        return np.asarray(doubt)
    rarity = 1 / (1 + counts[covered])
    p = probabilities[:, covered]
    return np.asarray(doubt + (p * (1 - p)) @ (rarity / rarity.mean()).astype(p.dtype))


def _shortlist(worth: Array, size: int, rng: np.random.Generator) -> tuple[Rows, NDArray[np.bool_]]:
    """Candidates in a large corpus, and a mask of the random sample among them."""
    if len(worth) <= 2 * size:
        return np.arange(len(worth)), np.ones(len(worth), dtype=np.bool_)
    sample = rng.choice(len(worth), size, replace=False)
    close = np.union1d(sample, np.argpartition(-worth, size)[:size])
    return close, np.isin(close, sample)


def greedy_choice(Z: Array, unknown: Array, weight: Array, n: int) -> list[int]:
    """Pick by the reduction of weighted variance, Σ_r w_r (z_r C z)² / (z C z + noise), and update C each time."""
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
        # C decreases by h hᵀ / s, and the variance by (z_r h)² / s.
        # The terms of the same product are subtracted from z C S C z.
        fall = np.maximum(fall - 2 * along * across / s + np.square(along) * (h @ S @ h) / s**2, 0)
        variance = np.maximum(variance - np.square(along) / s, 0)
        C -= np.outer(h, h) / s
        open_ &= alike < SAME * length * length[i]
        open_[i] = False
    return picks


def _likely(p: Array, forest: Forest) -> tuple[int, ...]:
    """Up to three likely topics, strongest first.

    Of a topic in a tree and the topics below it, the deepest that are at least half as probable count.
    """
    found = [int(k) for k in np.argsort(-p, kind="stable") if p[k] >= LIKELY]
    strong = {k: [d for d in forest.descendants(k) if p[d] >= max(LIKELY, 0.5 * p[k])] for k in found}
    kept = [k for k in found if not strong[k]]
    found = [k for k in kept if not {*forest.ancestors(k)} & {*kept}]
    return tuple(found[:3])


def suggestion_of(row: int, p: Array, supervision: Supervision, strange: bool) -> Suggestion:
    """Give the reason to label a document."""
    names, counts = supervision.topics, supervision.counts
    likely = _likely(p, supervision.forest)
    rare = [k for k in likely if counts[k] < FEW and p[k] < 0.8]
    if not likely:
        why = "unlike anything labelled yet" if strange else "no topic fits, although similar documents are labelled"
    elif rare:
        labels = counts[rare[0]]
        why = f"may be {names[rare[0]]}, which has only {labels} label{'s' if labels != 1 else ''}"
    elif len(likely) > 1 and p[likely[1]] >= 0.5 * p[likely[0]]:
        why = f"between {names[likely[0]]} and {names[likely[1]]}"
    elif p[likely[0]] < 0.5:
        why = f"perhaps {names[likely[0]]}, but uncertain"
    else:
        why = f"probably {names[likely[0]]}; typical of many unlabelled documents"
    return Suggestion(row, likely, why)


# Ways to choose; "useful" is the default.
WAYS = ("useful", "random", "shares")
# Documents for shares are drawn at random until this many labels were drawn by chance.
FIRST_AT_RANDOM = 50


def least_sure(memberships: Array, threshold: float, topic: int, name: str, rows: NDArray[np.intp]) -> list[Suggestion]:
    """Return documents that are given a topic, the least sure ones first.

    Parameters
    ----------
    memberships : array (n_documents, n_known)
    threshold : float
        Threshold of the topic.
    topic : int
        Number of the topic.
    name : str
        Its name.
    rows : array of int
        Documents to choose from.

    Examples
    --------
    >>> P = np.array([[0.9], [0.4], [0.1], [0.6]])
    >>> [(one.row, one.why) for one in least_sure(P, 0.3, 0, "tea", np.arange(4))][:2]
    [(1, 'given tea, with 40 %'), (3, 'given tea, with 60 %')]
    """
    given = rows[memberships[rows, topic] >= threshold]
    order = given[np.argsort(memberships[given, topic], kind="stable")]
    return [
        Suggestion(int(i), (topic,), f"given {name}, with {memberships[i, topic]:.0%}".replace("%", " %"))
        for i in order
    ]


def by_doubt(
    memberships: Array, rows: NDArray[np.intp], n: int, rng: np.random.Generator, forest: Forest
) -> list[Suggestion]:
    """Return documents drawn with known probability, doubtful ones more often.

    Examples
    --------
    >>> P = np.array([[0.0], [0.5], [0.5], [1.0]])
    >>> found = by_doubt(P, np.arange(4), 4, np.random.default_rng(0), Forest((-1,)))
    >>> [(one.row, one.probability) for one in found]
    [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)]
    """
    if not len(rows):
        return []
    probability = doubt_probabilities(memberships[rows], n)
    drawn = rng.permutation(draw(probability, rng)) if n < len(rows) else np.arange(len(rows))
    why = "drawn by doubt with known probability"
    return [Suggestion(int(rows[i]), _likely(memberships[rows[i]], forest), why, float(probability[i])) for i in drawn]


def at_random(rows: NDArray[np.intp], n: int, seed: int) -> list[Suggestion]:
    """Return random documents."""
    drawn = np.random.default_rng(seed).permutation(rows)[:n]
    return [Suggestion(int(row), (), "random") for row in drawn]


# The surest documents that come before documents near the threshold. Sure documents alone teach a model less than
# random ones.
SUREST = 3


def mixed_order(memberships: Array, threshold: float, answers: int = 0) -> Rows:
    """Return the order in which documents are proposed: the surest, then in turn one near the threshold and a sure one.

    Parameters
    ----------
    memberships : array (n_documents,)
    threshold : float
    answers : int
        Number of documents of the topic that were proposed before.

    Examples
    --------
    >>> mixed_order(np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.95]), 0.5)
    array([5, 0, 1, 4, 2, 3])
    """
    sure, near = np.argsort(-memberships, kind="stable"), np.argsort(np.abs(memberships - threshold), kind="stable")
    first = max(SUREST - answers, 0)
    rest = np.roll(sure, -first)
    turns = [rest, near] if not first and (answers - SUREST) % 2 else [near, rest]
    order = [*sure[:first].tolist(), *np.stack(turns, axis=1).ravel().tolist()]
    return np.array(list(dict.fromkeys(order)), dtype=np.int64)


# After this many answers about a topic comes another one.
IN_A_ROW = 5
# No topic is added once there are this many questions.
MOST = 5_000


@dataclass(frozen=True, eq=False)
class Questions:
    """Documents to ask about one topic, the best question first.

    Parameters
    ----------
    topic : int
        Number of the topic.
    rows : array of int
    """

    topic: int
    rows: NDArray[np.int64]


def questions(
    memberships: Array,
    thresholds: Array,
    finished: NDArray[np.bool_],
    denied: Mapping[int, Sequence[int]],
    yes: NDArray[np.int64],
    answers: NDArray[np.int64],
) -> list[Questions]:
    """Choose questions, topic by topic: the topic with the fewest answers first.

    Parameters
    ----------
    memberships : array (n_documents, n_known)
        Probability of each known topic.
    thresholds : array (n_known,)
        Threshold of each topic.
    finished : array of bool (n_documents,)
        Documents that are not asked about at all.
    denied : mapping of topic to rows
        Documents that lack a topic, by a label.
    yes : array of int (n_known,)
        Number of documents that have each topic by a label.
    answers : array of int (n_known,)
        Number of answers, yes or no, to questions about each topic.

    Returns
    -------
    list of Questions
        Topics without a likely document are left out, and topics after the first `MOST` questions.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.6, 0.2], [0.2, 0.7], [0.05, 0.02]])
    >>> nothing = np.zeros(2, dtype=np.int64)
    >>> for one in questions(P, np.array([0.5, 0.5]), np.zeros(4, dtype=bool), {}, nothing, nothing):
    ...     print(one.topic, one.rows)
    0 [0 1 2]
    1 [2 1 0]
    """
    found = list[Questions]()
    for k in sorted(range(memberships.shape[1]), key=lambda k: (answers[k] // IN_A_ROW, k)):
        if sum(len(one.rows) for one in found) >= MOST:
            break
        rows = np.flatnonzero(~finished & (memberships[:, k] >= LIKELY))
        rows = rows[~np.isin(rows, list(denied.get(k, ())))]
        p = memberships[rows, k]
        near = np.argsort(np.abs(p - thresholds[k]), kind="stable")
        order = mixed_order(p, thresholds[k], answers[k]) if yes[k] < FEW else near
        if len(rows):
            found.append(Questions(k, rows[order]))
    return found
