"""A slow and obvious dense TS-NMF, straight from the paper's equations: the oracle of the tests."""

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
    """Coordinate descent one number at a time: W, then (H, W) in turn with ``sweeps(iteration)`` sweeps each.

    With prices P the rows of H have length 1; H is updated under the ridge Σ e P w, which stands for Σ e P w ‖h‖.
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
    """Minimise ½ w gram wᵀ - cross w over w ≥ 0; a sweep visits what could move when it began."""
    for _ in range(sweeps):
        candidates = [k for k in range(len(w)) if permitted[k] and (w[k] > 0 or (gram @ w - cross)[k] < 0)]
        for k in candidates:
            if gram[k, k] > 0:
                w[k] = max(0.0, w[k] - (gram[k] @ w - cross[k]) / gram[k, k])


def divide(above, below):
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
