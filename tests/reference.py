"""Slow and obvious twins: dense TS-NMF from the paper's equations, and parts of the guide as loops."""

import numpy as np


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


def rivals(parents, covered, more):
    """Positions of the rivals of each covered topic, and of further classes, which are rivals of all.

    Parents that are not covered do not exist. A topic competes with topics as deep as itself, and with topics that are
    less deep and have nothing below them.
    """

    def above(k):
        k = parents[k]
        while k >= 0 and k not in covered:
            k = parents[k]
        return k

    own = {k: above(k) for k in covered}
    deep = {k: depth(own, k) for k in covered}
    leaves = [k for k in covered if k not in own.values()]
    last = list(range(len(covered), len(covered) + more))
    found = []
    for k in covered:
        others = [j for j in covered if j != k and (deep[j] == deep[k] or (deep[j] < deep[k] and j in leaves))]
        found.append([covered.index(j) for j in others] + last)
    roots = [covered.index(k) for k in covered if own[k] < 0]
    return found + [[*roots, *(j for j in last if j != k)] for k in last]


def log_ratios(X, P, smoothing):
    """Naive Bayes of each class against the rest of the documents, term by term."""
    out = np.zeros((X.shape[1], P.shape[1]))
    for k, p in enumerate(P.T):
        inside = [smoothing + sum(p[i] * X[i, j] for i in range(len(X))) for j in range(X.shape[1])]
        outside = [smoothing + sum((1 - p[i]) * X[i, j] for i in range(len(X))) for j in range(X.shape[1])]
        for j in range(X.shape[1]):
            out[j, k] = np.log(inside[j] / sum(inside)) - np.log(outside[j] / sum(outside))
    return out


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


def authors_start(X, labels, n_topics, rng):
    """First W and H of the program of the paper's authors; ``labels`` has a list of topics per document."""
    H = []
    for k in range(n_topics):
        rows = [i for i, own in enumerate(labels) if k in own]
        rows = rows or rng.randint(0, len(X), size=20)
        H.append(sum(X[i] for i in rows) / len(rows))
    return rng.uniform(size=(len(X), n_topics)), np.array(H)


def authors(X, labels, L, E, rng, iterations, tol=1e-4):
    """TS-NMF as in the program of the paper's authors: entries at zero stay, and ‖X - WH‖ ends the loop."""
    W, H = authors_start(X, labels, L.shape[1], rng)
    W *= L
    norm = np.linalg.norm(X - W @ H)
    done = 0
    while done < iterations:
        above, below = W.T @ (X * E), W.T @ ((W @ H) * E)
        for r, j in zip(*np.nonzero(H), strict=True):
            H[r, j] *= above[r, j] / below[r, j]
        above, below = (X * E) @ H.T, ((W @ H) * E) @ H.T
        for i, r in zip(*np.nonzero(W), strict=True):
            W[i, r] *= above[i, r] / below[i, r]
        before, norm, done = norm, np.linalg.norm(X - W @ H), done + 1
        if (before - norm) / before < tol:
            break
    return W, H, done
