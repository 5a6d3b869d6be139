"""Slow and obvious twins: dense TS-NMF from the paper's equations, and the guide from scikit-learn's estimators."""

import numpy as np
from scipy.special import expit, logit
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import MultinomialNB


def objective(X, W, H, L, E=1.0):
    """D = Σ E (X - (W∘L)H)²."""
    return float((E * (X - (W * L) @ H) ** 2).sum())


def mu(X, W, H, L, E, iterations):
    """The appendix's multiplicative rules with an n × t error weight E (all ones: equations 9 and 10)."""
    W, H = W * L, H.copy()
    history = [objective(X, W, H, L, E)]
    for _ in range(iterations):
        H = H * divide(W.T @ (X * E), W.T @ ((W @ H) * E))
        W = W * divide(((X * E) @ H.T) * L, (((W @ H) * E) @ H.T) * L)
        history.append(objective(X, W, H, L, E))
    return W, H, history


def hals(X, W, H, L, e, iterations, sweeps, P=None):
    """Coordinate descent on one number at a time: W, then H and W in turn with ``sweeps(iteration)`` sweeps each.

    With penalties P the rows of H have length 1. H is updated under the ridge Σ e P w, a bound of Σ e P w ‖h‖.
    """
    unit, P = P is not None, np.zeros_like(W) if P is None else P
    W, H = W * L, H.copy()

    def normalise():
        norms = np.linalg.norm(H, axis=1)
        H[:] /= norms[:, None]
        W[:] *= norms

    def update_W(sweeps):
        gram, cross = H @ H.T, X @ H.T - P
        for i in range(len(W)):
            coordinate_descent(W[i], gram, cross[i], L[i] != 0, sweeps)

    def update_H(sweeps):
        gram, cross = (e[:, None] * W).T @ W, X.T @ (e[:, None] * W)
        gram += np.diag((e[:, None] * P * W).sum(axis=0))
        for j in range(H.shape[1]):
            h = H[:, j].copy()
            coordinate_descent(h, gram, cross[j], np.ones(len(h), bool), sweeps)
            H[:, j] = h
        if unit:
            normalise()

    if unit:
        normalise()
    update_W(1)
    for iteration in range(iterations):
        update_H(sweeps(iteration))
        update_W(sweeps(iteration))
    return W, H


def coordinate_descent(w, gram, cross, permitted, sweeps):
    """Minimise ½ w gram wᵀ - cross w over w ≥ 0; a sweep visits the coordinates that could move when it began."""
    for _ in range(sweeps):
        candidates = [k for k in range(len(w)) if permitted[k] and (w[k] > 0 or (gram @ w - cross)[k] < 0)]
        for k in candidates:
            if gram[k, k] > 0:
                w[k] = max(0.0, w[k] - (gram[k] @ w - cross[k]) / gram[k, k])


def divide(above, below):
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def guidance(X, Z, states, fold_of, ridge, document_weight, by_folds=False, fixed=None):
    """Both rounds of the guide: log odds of all documents, and leave-one-out log odds of labelled documents.

    Labelled documents come first. ``Z`` holds terms, latent semantics and embeddings. ``states`` is 1, 0 or -1 for each
    labelled document. ``fold_of`` is the fold that hides it, or -1. ``fixed`` is a calibration and a mix to use.
    """
    n, given, known = len(states), states == 1, states != -1
    counts = given.sum(axis=0)
    mean, rarity = counts / known.sum(axis=0), np.log(counts / n)
    target = np.where(known, states - mean, 0)

    def scores(seen, asked):
        model = KernelRidge(alpha=ridge).fit(Z[seen], target[seen], sample_weight=document_weight[seen])
        return model.predict(Z[asked]) / (1 - mean)

    def views(score):
        rare = np.broadcast_to(rarity, score.shape)
        return np.stack([score, np.sqrt(np.maximum(score, 0)), lead(score), rare, score * rare], axis=-1)

    everybody, labelled = np.arange(len(X)), np.arange(n)
    seen = [labelled, *(labelled[fold_of != fold] for fold in range(3))]
    left = [fold_of != fold_of[i] if by_folds else labelled != i for i in labelled]
    alone = views(np.vstack([scores(labelled[rest], [i]) for i, rest in enumerate(left)]))
    single = given & (counts == 1)
    calibrate = linear(fixed[0]) if fixed else regression(alone, given, known & ~single, document_weight)
    runs = [calibrate(views(scores(rows, everybody))) for rows in seen]
    shift = prior_shift(runs[0][n:], calibrate(alone))
    bases = runs = [run + shift for run in runs]
    answer = runs[0], np.where(single, np.nan, calibrate(alone) + shift)

    def second(base, run, rows):
        ratio = X @ log_ratios(X, expit(run), states, rows)
        return np.stack([base, ratio, lead(ratio)], axis=-1)

    if fixed:
        return linear(fixed[1])(second(runs[0], runs[0], labelled)), answer[1]

    def hidden(some):
        return np.array([some[1 + max(fold, 0)][i] for i, fold in enumerate(fold_of)])

    def quality(odds):
        topics = [
            average_precision_score(given[pairs, k], odds[pairs, k]) for k, pairs in enumerate(asked.T) if judged[k]
        ]
        pairs = asked & judged
        return np.mean(topics) + average_precision_score(given[pairs], odds[pairs])

    asked = known & (fold_of >= 0)[:, None]
    judged = (asked & given).any(axis=0)
    record = quality(hidden(bases)) + 0.01
    for _ in range(3):
        found = [second(*given_to) for given_to in zip(bases, runs, seen, strict=True)]
        mix = regression(hidden(found), given, asked, document_weight)
        runs = [mix(view) for view in found]
        shift = prior_shift(runs[0][n:], hidden(runs)[fold_of >= 0])
        runs = [run + shift for run in runs]
        if quality(hidden(runs) - shift) > record:
            record = quality(hidden(runs) - shift)
            answer = runs[0], np.where((fold_of >= 0)[:, None], hidden(runs), answer[1])
    return answer


def lead(scores):
    """The score of each topic minus the best score of the other topics."""
    others = [np.delete(scores, k, axis=1).max(axis=1) for k in range(scores.shape[1])]
    return scores - np.stack(others, axis=1)


def regression(views, given, pairs, document_weight):
    """One logistic regression for all topics, on standardised views; returns a function from views to log odds."""
    centre, spread = views[pairs].mean(axis=0), views[pairs].std(axis=0)
    spread[spread < 1e-6] = np.inf
    weight = np.broadcast_to(document_weight[:, None], pairs.shape)[pairs]
    model = LogisticRegression(max_iter=1000).fit((views[pairs] - centre) / spread, given[pairs], weight)
    return lambda some: model.intercept_ + (some - centre) / spread @ model.coef_[0]


def linear(weights):
    return lambda views: views @ weights[:-1] + weights[-1]


def prior_shift(odds, labelled):
    """Half of the way from the frequency among labelled documents to that among the others."""
    shift = np.zeros(odds.shape[1])
    for _ in range(5):
        shift = (logit(expit(odds + shift).mean(axis=0)) - logit(expit(labelled).mean(axis=0))) / 2
    return shift


def log_ratios(X, P, states, rows):
    """Naive Bayes of each topic against the rest, on labels where available and on probabilities elsewhere."""
    P = P.copy()
    P[rows] = np.where(states[rows] == -1, P[rows], states[rows])
    twice, classes = np.vstack([X, X]), np.repeat([0, 1], len(X))
    models = [MultinomialNB(alpha=0.01).fit(twice, classes, np.concatenate([1 - p, p])) for p in P.T]
    return np.stack([model.feature_log_prob_[1] - model.feature_log_prob_[0] for model in models], axis=1)


def leading_vectors(X, size):
    """Right singular vectors with the largest singular values, as columns."""
    return np.linalg.svd(np.asarray(X, dtype=np.float64), full_matrices=False)[2][:size].T


def numbered_words(words):
    """Distinct words in order of appearance, and the number of each word."""
    known = {}
    ids = [known.setdefault(word, len(known)) for word in words]
    return list(known), ids


def ppi_mean(y, f, f_unlabelled, weight):
    """The point estimate of PPI++ (Angelopoulos, Duchi and Zrnic 2023), equation by equation."""
    rectifier = sum(y[i] - weight * f[i] for i in range(len(y))) / len(y)
    return sum(weight * value for value in f_unlabelled) / len(f_unlabelled) + rectifier


def score_interval(share, n, z):
    """Ends of the interval of shares p with |share - p| <= z sqrt(p (1 - p) / n), found by bisection."""

    def inside(p):
        return abs(share - p) <= z * (p * (1 - p) / n) ** 0.5 + 1e-15

    ends = []
    for outer in (0.0, 1.0):
        good, bad = share, outer
        if inside(bad) and bad == share:
            ends.append(outer)
            continue
        for _ in range(200):
            middle = (good + bad) / 2
            good, bad = (middle, bad) if inside(middle) else (good, middle)
        ends.append(good)
    return ends


def depth(parents, k):
    """Number of topics above a topic."""
    return 0 if parents[k] < 0 else 1 + depth(parents, parents[k])


def combined(parents, cuts, probabilities, covered):
    """Consistent probabilities of a tree, document by document; see topicsteer.guidance.tree.combine_cuts."""
    out = np.zeros((len(probabilities[0]), len(parents)))
    for i, row in enumerate(out):
        views = {k: [] for k in range(len(parents))}
        for cut, P, known in zip(cuts, probabilities, covered, strict=True):
            for k, p, yes in zip(cut, P[i], known, strict=True):
                views[k] += [log_odds(p)] if yes else []
        odds, change = {k: np.mean(own) for k, own in views.items() if own}, {}
        levels = sorted(range(len(parents)), key=lambda k: depth(parents, k))
        for k in levels[::-1]:
            below = [j for j in odds if parents[j] == k]
            if below:
                either = log_odds(1 - np.prod([1 - 1 / (1 + np.exp(-odds[j])) for j in below]))
                odds[k] = (odds[k] + either) / 2 if k in odds else either
                change[k] = odds[k] - either
        for k in levels:
            if k in odds and parents[k] >= 0:
                step = change[parents[k]] / 2
                odds[k] = min(odds[k] + step, odds[parents[k]])
                change[k] = change.get(k, 0) + step
        for k, value in odds.items():
            row[k] = 1 / (1 + np.exp(-value))
    return out


def log_odds(p):
    p = min(max(float(p), 1e-6), 1 - 1e-6)
    return np.log(p / (1 - p))


def expected(probabilities, patterns, rows, parents, cut):
    """Expected labels of a cut, document by document; see topicsteer.guidance.tree.expected_labels."""

    def line(k):
        return [k, *(line(parents[k]) if parents[k] >= 0 else [])]

    out = np.zeros((len(rows), len(cut)))
    for i, states in enumerate(patterns[rows]):
        for end in range(len(parents)):
            inside = [j for j, k in enumerate(cut) if end in line(k)[1:]]
            reached = any(states[k] == 1 for k in range(len(parents)) if parents[k] == end)
            unknown = [j for j in inside if states[cut[j]] == -1]
            if states[end] != 1 or reached or not unknown:
                continue
            known = [s[[cut[j] for j in inside]] for s in patterns if s[end] == 1]
            known = [s for s in known if (s != -1).all()]
            rest = np.mean([not s.any() for s in known]) if known else 0
            for j in unknown:
                share = probabilities[i, j] / sum(probabilities[i, unknown])
                out[i, j] = max((1 - rest) * share, 1e-6)
    return out
