"""How labels reach the unlabelled documents: a probability for each document and known topic.

The factorisation obeys labels on labelled documents, but nothing in its objective carries them to the others. This
readout does, in two rounds. The first is a kernel ridge regression on the words and the latent semantics of documents
(and on embeddings, where there are any), to which the name of a topic is a small labelled document of its own; it is
calibrated once for all topics on the labelled documents, each left out in turn, and shifted to how frequent each topic
is among the unlabelled. The second asks which words the documents found so far use more than the others, labelled or
not, as naive Bayes does, and how far a topic leads by them; how much that counts is learnt from hidden labels, and
nothing if it finds them no better. All settings are chosen from the labelled documents. Both are linear in the words up
to row norms, so that a new document costs two small products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from topicsteer.guidance.ridge import Ridge, dense_features, latent_directions, projected, settle, unit_rows
from topicsteer.labels.folds import hidden_parts
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN, Supervision
from topicsteer.metrics import average_precision
from topicsteer.nmf import kernels as _kernels
from topicsteer.nmf.blocks import Matrix, row_sizes, rows_of
from topicsteer.system.threads import workers
from topicsteer.system.types import Array

COMPANY = 20_000  # unlabelled documents that frequencies and the words of topics are learnt from, at most
FOLDS = 3  # in which labels are hidden
ROUNDS = 3  # in which the words of topics are learnt, at most,
WORTH = 0.01  # and by how much they have to find hidden labels better to be used at all
SMOOTHING = 0.01  # what each word has in each topic before any document is seen
RENEWED = 1.1  # times as many labels as at the last choice of settings, from which they are chosen again
ENOUGH = 30  # labels without which a calibration cannot be fitted and a fixed one stands in,
SHARED = 0.8  # and the share of topics that need two labels for it
FIXED = np.array([0.0, 8.0, 2.0, 0.0, 0.0, -5.0])
FIXED_MIX, FIRST_ONLY = np.array([0.6, 0.2, 0.1, -0.8]), np.array([1.0, 0.0, 0.0, 0.0])
PAIRS = 300_000  # pairs of document and topic that a calibration is fitted to, at most
CUT_RANGE = (0.25, 0.4)


@dataclass(frozen=True, eq=False)
class Guide:
    """From documents to probabilities of the known topics.

    Parameters
    ----------
    basis : array (n_terms, q + n_covered or q + 2 n_covered)
        Directions of the latent semantics, the weights of the words for each covered topic, and the log ratios of the
        second round, if there is one.
    dense : array (3 blocks of latent dimensions and the embedding's, n_covered)
        Weights of the latent semantics and of the embeddings.
    scale : array (n_covered,)
        Factor that makes a score 0 where nothing speaks for the topic and 1 where everything does.
    calibration : array (6,)
        Five weights and the intercept of the logistic calibration.
    rarity : array (n_covered,)
        log(n_k / n) of the labelled documents.
    shift, second_shift : array (n_covered,)
        What is added on the scale of log odds for the frequency of each topic among all documents, in each round.
    mix : array (4,)
        Weights of the first round's log odds, of the log ratios and of their lead, and the intercept.
    settings : array (4,)
        Weight of the embeddings (0 if there are none) and of the names, the ridge, and from how many labels all this
        and the calibrations were learnt.
    covered : array of int (n_covered,)
        Numbers of the known topics with labels, or with a name that helps; the others have probability 0.
    rows : array of int (n_rows,)
        The labelled documents that were learnt from.
    left_out : array (n_rows, n_covered)
        Their probabilities when their own labels are hidden; NaN for the only document of a topic.
    seen : array (dense, dense)
        DᵀD of the labelled documents' latent semantics: where labels are.
    n_known : int
        Number of known topics.
    """

    basis: Array
    dense: Array
    scale: Array
    calibration: Array
    rarity: Array
    shift: Array
    second_shift: Array
    mix: Array
    settings: Array
    covered: NDArray[np.int64]
    rows: NDArray[np.int64]
    left_out: Array
    seen: Array
    n_known: int

    def probabilities(
        self, X: sp.csr_array, threads: int | None = None, *, embeddings: Array | None = None
    ) -> NDArray[np.float32]:
        """Probability of each known topic in each document (n_documents, n_known), labels not looked at."""
        out = np.zeros((X.shape[0], self.n_known), dtype=np.float32)
        for rows, D, words in projected(X, self.basis, self._dimensions, threads, self._weighed(embeddings)):
            out[rows, self.covered] = expit(self._odds(D, words))
        if embeddings is None:
            out[np.diff(X.indptr) == 0] = 0  # a document without terms says nothing
        return out

    def positions(self, X: sp.csr_array, threads: int | None = None) -> Array:
        """Where documents stand in the latent semantics: rows of equal length, whose product is a likeness."""
        return np.concatenate([D for _, D, _ in projected(X, self.directions, self._dimensions, threads)])

    @property
    def covers(self) -> NDArray[np.bool_]:
        """For each known topic whether anything is said of it."""
        return np.isin(np.arange(self.n_known), self.covered)

    @property
    def embedding(self) -> float:
        """Weight of the embeddings, 0 if there are none."""
        return float(self.settings[0])

    @property
    def directions(self) -> Array:
        """The latent semantics of the documents (n_terms, q), which labels have no part in."""
        return np.ascontiguousarray(self.basis[:, : self._dimensions])

    @property
    def _dimensions(self) -> int:
        return int(self.basis.shape[1] - len(self.covered) * (1 + bool(self.mix[1:3].any())))

    def _weighed(self, embeddings: Array | None) -> Array | None:
        if (embeddings is None) == bool(self.embedding):
            wanted = "needs the embeddings of documents" if self.embedding else "was learnt without embeddings"
            raise ValueError(f"This guide {wanted}.")
        return None if embeddings is None else unit_rows(embeddings) * np.sqrt(self.embedding)

    def _first(self, D: Array, words: Array) -> Array:
        return _calibrated((words + D @ self.dense) * self.scale, self.rarity, self.calibration) + self.shift

    def _odds(self, D: Array, words: Array) -> Array:
        k = len(self.covered)
        first = self._first(D, words[:, :k])
        if words.shape[1] == k:
            return first
        return _mixed(first, words[:, k:], self.mix) + self.second_shift


def guide(
    X: Matrix,
    supervision: Supervision,
    *,
    names: sp.csr_array | None = None,
    embeddings: Array | None = None,
    confidence: Array | None = None,
    directions: Array | None = None,
    before: Guide | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Guide | None:
    """Learn from the labelled documents, with all others for company; None if there is no label to learn from.

    Parameters
    ----------
    X : CSR (n_documents, n_terms), or rows on disk or on a cluster
        Rows of unit length. Of rows that are not in memory, only those that are learnt from are read.
    supervision : Supervision
        The labels: permitted and forbidden topics are learnt from, what is unknown is left open.
    names : CSR (n_known, n_terms), optional
        The words of each topic's name or description, as a document.
    embeddings : array (n_documents, any), optional
        Of the documents, from elsewhere.
    confidence : array (n_documents,), optional
        How far a document's labels can be trusted, above 0; 1 = as any other.
    directions : array, optional
        From :func:`latent_directions`, if they are at hand.
    before : Guide, optional
        Of the same documents, topics and names under a few labels less: what it chose and calibrated is taken over, and
        the work of the labels alone is done, until a tenth of the labels are new.
    seed : int, default=0
        For the decomposition and the samples.
    threads : int, optional
        None = all cores.

    Returns
    -------
    Guide or None

    Examples
    --------
    >>> from topicsteer.labels.forms import supervise
    >>> X = sp.csr_array(np.kron(np.eye(2), np.full((4, 3), 3**-0.5)).astype(np.float32))
    >>> found = guide(X, supervise({0: "a", 4: "b"}, 8)).probabilities(X)
    >>> found.argmax(axis=1)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    _kernels.prepare(X.dtype)
    rows = np.flatnonzero(supervision.labelled & (row_sizes(X) > 0))
    states = supervision.patterns[supervision.pattern[rows]]
    if not (states == PERMITTED).any():
        return None
    directions = latent_directions(X, seed) if directions is None else directions
    trust = np.ones(len(rows)) if confidence is None else np.asarray(confidence, dtype=np.float64)[rows]
    company = np.concatenate([rows, company_of(supervision, seed)])  # the labelled ones first
    X_company = rows_of(X, company)
    settled = None if before is None or len(rows) > RENEWED * before.settings[3] else tuple(before.settings[:3])
    with workers(threads):
        ridge = settle(X, rows, states, trust, names, embeddings, directions, settled)
        known = (states == PERMITTED).any(axis=0)
        covered = np.flatnonzero(known | np.isin(np.arange(len(known)), ridge.names))
        if settled is not None and before is not None and np.array_equal(covered, before.covered):
            E = None if embeddings is None else embeddings[company]
            odds = logit(np.clip(before.probabilities(X_company, threads, embeddings=E)[:, covered], 1e-6, 1 - 1e-6))
            lesson = _Lesson(X_company, odds, ridge, states[:, covered], covered, rows, trust, directions)
            return lesson.renew(before)
        if settled is not None:
            ridge = settle(X, rows, states, trust, names, embeddings, directions)
        D = dense_features(X_company, directions, None if embeddings is None else embeddings[company], ridge.embedding)
        return _Lesson(X_company, D, ridge, states[:, covered], covered, rows, trust, directions).learn(len(known))


def company_of(supervision: Supervision, seed: int) -> NDArray[np.intp]:
    """The unlabelled documents that frequencies and the words of topics are learnt from: all, or a sample."""
    unlabelled = np.flatnonzero(~supervision.labelled)
    if len(unlabelled) > COMPANY:
        unlabelled = np.sort(np.random.default_rng(seed).choice(unlabelled, COMPANY, replace=False))
    return unlabelled


def obey(probabilities: Array, supervision: Supervision) -> Array:
    """Probabilities of labelled documents replaced by what their labels say: 1 permitted, 0 forbidden."""
    states = supervision.patterns[supervision.pattern]
    return np.asarray(
        np.where(states == PERMITTED, 1, np.where(states == FORBIDDEN, 0, probabilities)), dtype=probabilities.dtype
    )


def best_cuts(probabilities: Array) -> Array:
    """For each topic the probability from which "yes" maximises the expected Jaccard index, drawn to the middle.

    Of the m most probable documents Σp are expected to be right, and the union has m plus the expected rest. Single
    topics are noisy, so each cut is averaged with that of all topics that have any probability, and kept in a range.
    """
    ranked = -np.sort(-probabilities.astype(np.float64), axis=0)
    right = np.cumsum(ranked, axis=0)
    many = np.arange(1, len(ranked) + 1)[:, None]
    best = (right / (many + right[-1:] - right)).argmax(axis=0)
    cuts = np.maximum(np.take_along_axis(ranked, best[None], axis=0)[0], 1e-3)
    typical = np.exp(np.log(cuts[ranked[0] > 0]).mean()) if ranked[0].any() else CUT_RANGE[0]
    return np.asarray(np.clip(np.sqrt(cuts * typical), *CUT_RANGE))


# --- both rounds ---


@dataclass(frozen=True, eq=False)
class _Lesson:
    """The labelled documents, and behind them the unlabelled ones that keep them company.

    D holds their latent semantics, or, where an earlier guide is renewed, the log odds that it gave them.
    """

    X: sp.csr_array
    D: Array
    ridge: Ridge
    states: Any
    covered: NDArray[np.int64]
    rows: NDArray[np.intp]
    trust: Array
    directions: Array

    def learn(self, n_known: int) -> Guide:
        """Both rounds."""
        states, ridge, n = self.states, self.ridge, len(self.rows)
        given = states == PERMITTED
        positive = given.sum(axis=0)
        target, mean = ridge.target(states, self.covered)
        part = hidden_parts(sp.csr_array(given), FOLDS, seed=0)
        B = ridge.solve(target)
        words, dense = (ridge.words.T @ B).astype(np.float32), (ridge.dense.T @ B).astype(np.float32)
        scale = (1 / np.maximum(1 - mean, 0.1)).astype(np.float32)
        kept = [np.concatenate([part != fold, ridge.trust[n:] > 0]) for fold in range(part.max() + 1)]
        in_folds = [self._scores(target, np.flatnonzero(inside)) * scale for inside in kept]
        scores = (self.X @ words + self.D @ dense) * scale
        if ridge.kernel is None:
            left_out = scores[:n].copy()
            for inside, hidden in zip(kept, in_folds, strict=True):
                left_out[~inside[:n]] = hidden[:n][~inside[:n]]
        else:
            left_out = ridge.left_out(target)[:n] * scale
        rarity = np.log(np.maximum(positive, 0.5) / n)
        taught = (states != UNKNOWN) & ~(given & (positive == 1))  # the only document of a topic says nothing left out
        fitted = given[taught].sum() >= ENOUGH and (positive[positive > 0] > 1).mean() >= SHARED and part.max() > 0
        fitted = fitted and not given[taught].all()  # one topic, and nothing known not to have it
        calibration = FIXED
        if fitted:
            weight = np.broadcast_to(self.trust[:, None], taught.shape)[taught]
            calibration = _pooled(_features(left_out, rarity)[taught], given[taught], weight)

        first = partial(_calibrated, rarity=rarity, calibration=calibration)
        shift = _prior_shift(first(scores[n:]), first(left_out))
        odds, folds = first(scores) + shift, [first(s) + shift for s in in_folds]
        mix, ratios, second_shift, found = self._second(odds, folds, part, fitted)
        hidden = np.where(given & (positive == 1), np.nan, first(left_out) + shift)
        if found is not None:
            hidden = np.where(np.isnan(found), hidden, found)
        Z = self.D[:n] if not ridge.embedding else dense_features(self.X[:n], self.directions)
        return Guide(
            basis=np.ascontiguousarray(np.hstack([self.directions, words, *ratios]), dtype=self.directions.dtype),
            dense=dense,
            scale=scale,
            calibration=calibration,
            rarity=rarity,
            shift=shift,
            second_shift=second_shift,
            mix=mix,
            settings=np.array([ridge.embedding, ridge.name, ridge.ridge, n]),
            covered=self.covered,
            rows=self.rows,
            left_out=expit(hidden).astype(np.float32),
            seen=Z.T @ Z,
            n_known=n_known,
        )

    def renew(self, before: Guide) -> Guide:
        """The same with more labels: weights of the words anew, choices and calibrations as they were."""
        n, given = len(self.rows), self.states == PERMITTED
        target, mean = self.ridge.target(self.states, self.covered)
        B = self.ridge.solve(target)
        words = (self.ridge.words.T @ B).astype(np.float32)
        ratios = [self._ratios(self.D, np.ones(n, dtype=np.bool_))] if before.mix[1:3].any() else []
        left_out = expit(self.D[:n]).astype(np.float32)  # of a new label: what was said before it was given
        _, old, now = np.intersect1d(before.rows, self.rows, return_indices=True)
        left_out[now] = before.left_out[old]
        Z = dense_features(self.X[:n], self.directions)
        return replace(
            before,
            basis=np.ascontiguousarray(np.hstack([self.directions, words, *ratios]), dtype=self.directions.dtype),
            dense=(self.ridge.dense.T @ B).astype(np.float32),
            scale=(1 / np.maximum(1 - mean, 0.1)).astype(np.float32),
            rarity=np.log(np.maximum(given.sum(axis=0), 0.5) / n),
            rows=self.rows,
            left_out=left_out,
            seen=Z.T @ Z,
        )

    def _scores(self, target: Array, inside: NDArray[np.intp]) -> Array:
        """First-round scores of everybody when only some labels are seen."""
        B = self.ridge.solve(target, inside)
        words = (self.ridge.words[inside].T @ B).astype(np.float32)
        return np.asarray(self.X @ words + self.D @ (self.ridge.dense[inside].T @ B).astype(np.float32))

    def _second(
        self, odds: Array, folds: Sequence[Array], part: NDArray[np.int64], fitted: bool
    ) -> tuple[Array, list[Array], Array, Array | None]:
        """Weights of the second round, its log ratios, its shift, and log odds of hidden labels; or the first alone.

        Each round takes the probabilities of the one before for labels. The folds go through all of it with their
        labels hidden, so that what is learnt from hidden labels holds for unlabelled documents. The round that finds
        hidden labels best is taken.
        """
        n = len(part)
        nothing = np.zeros(odds.shape[1])
        everyone = np.ones(n, dtype=np.bool_)
        hidden = part >= 0
        asked = hidden[:, None] & (self.states != UNKNOWN)
        given = self.states == PERMITTED
        if not fitted or given[asked].all():
            return FIXED_MIX, [self._ratios(odds, everyone)], nothing, None
        weight = np.broadcast_to(self.trust[:, None], asked.shape)[asked]
        kept = [everyone, *(part != fold for fold in range(len(folds)))]
        runs, first = [odds, *folds], [odds, *folds]
        best: tuple[Array, list[Array], Array, Array | None] = FIRST_ONLY, [], nothing, None
        record = self._found(_assemble(folds, part), asked) + WORTH
        for _ in range(ROUNDS):
            ratios = [self._ratios(run, inside) for run, inside in zip(runs, kept, strict=True)]
            used = [self.X @ ratio for ratio in ratios]
            seen = _assemble(used[1:], part)
            views = np.stack([_assemble(folds, part), seen, _lead(seen)], axis=-1)
            mix = _pooled(views[asked], given[asked], weight)
            runs = [_mixed(base, words, mix) for base, words in zip(first, used, strict=True)]
            guessed = _assemble(runs[1:], part)
            shift = _prior_shift(runs[0][n:], guessed[hidden])
            runs = [run + shift for run in runs]
            found = self._found(guessed, asked)
            if found > record:
                record = found
                best = mix, [ratios[0]], shift, np.where(hidden[:, None], guessed + shift, np.nan)
        return best

    def _ratios(self, odds: Array, inside: NDArray[np.bool_]) -> Array:
        """How much more each word is used in each topic than elsewhere, as a logarithm (n_terms, n_covered)."""
        P = expit(odds).astype(np.float32)
        states = np.where(inside[:, None], self.states, UNKNOWN)
        P[: len(states)] = np.where(states == UNKNOWN, P[: len(states)], states)
        within = np.asarray(self.X.T @ P) + SMOOTHING
        without = np.asarray(self.X.sum(axis=0)).reshape(-1, 1) + 2 * SMOOTHING - within
        ratios = np.log(within / within.sum(axis=0)) - np.log(np.maximum(without, SMOOTHING) / without.sum(axis=0))
        return np.asarray(ratios, dtype=self.directions.dtype)

    def _found(self, odds: Array, asked: NDArray[np.bool_]) -> float:
        """Macro and micro average precision of hidden labels."""
        rows = asked.any(axis=1)
        precision = average_precision(self.states[rows] == PERMITTED, np.where(asked, odds, -1e9)[rows])
        return float(np.nanmean(precision.topics) + precision.micro)


def _assemble(runs: Sequence[Array], part: NDArray[np.int64]) -> Array:
    """What each fold says of the labelled documents that were hidden in it; those that never were get the first's."""
    out = runs[0][: len(part)].copy()
    for fold, run in enumerate(runs):
        out[part == fold] = run[: len(part)][part == fold]
    return out


def _features(scores: Array, rarity: Array) -> Array:
    """What the calibration sees of a score: itself, its root, the lead over the best other topic, the rarity."""
    rare = np.broadcast_to(rarity, scores.shape)
    return np.stack([scores, np.sqrt(np.maximum(scores, 0)), _lead(scores), rare, scores * rare], axis=-1)


def _calibrated(scores: Array, rarity: Array, calibration: Array) -> Array:
    """Log odds of scores: their features times the calibration, without a copy for each."""
    own, root, lead, rare, both, constant = calibration
    odds = scores * (own + both * rarity).astype(scores.dtype)
    odds += root.astype(scores.dtype) * np.sqrt(np.maximum(scores, 0))
    odds += lead.astype(scores.dtype) * _lead(scores)
    return np.asarray(odds + (rare * rarity + constant).astype(scores.dtype))


def _mixed(first: Array, ratios: Array, mix: Array) -> Array:
    a, b, c, constant = mix.astype(ratios.dtype)
    return np.asarray(a * first + b * ratios + c * _lead(ratios) + constant)


def _lead(scores: Array) -> Array:
    """By how much each topic leads over the best of the others."""
    if scores.shape[1] < 2:
        return scores
    ranked = np.partition(scores, -2, axis=1)
    best, second = ranked[:, -1:], ranked[:, -2:-1]
    return np.asarray(scores - np.where(scores >= best, second, best))


def _pooled(features: Array, given: NDArray[np.bool_], weight: Array) -> Array:
    """Weights and intercept of one logistic regression for all topics."""
    if len(given) > PAIRS:  # of those not given, a sample stands for all
        yes, no = np.flatnonzero(given), np.flatnonzero(~given)
        some = np.random.default_rng(0).choice(no, max(PAIRS - len(yes), PAIRS // 10), replace=False)
        pick = np.concatenate([yes, some])
        weight = np.where(given, 1, len(no) / len(some))[pick] * weight[pick]
        features, given = features[pick], given[pick]
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread[spread < 1e-6] = 1  # what is the same everywhere gets no weight
    model = LogisticRegression(max_iter=1000).fit((features - mean) / spread, given, sample_weight=weight)
    slope = model.coef_[0] / spread
    return np.append(slope, model.intercept_[0] - slope @ mean)


def _prior_shift(odds: Array, labelled: Array) -> Array:
    """Half the way from how frequent topics are among labelled documents to how frequent they seem among the others.

    People label "three a topic" and not at random, so the frequencies of the labels say little of the pile's.
    """
    shift = np.zeros(odds.shape[1], dtype=odds.dtype)
    if not len(odds):
        return shift
    safe = partial(np.clip, a_min=1e-6, a_max=1 - 1e-6)
    expected = logit(safe(expit(labelled).mean(axis=0)))
    for _ in range(5):
        shift = 0.5 * (logit(safe(expit(odds + shift).mean(axis=0))) - expected)
    return shift
