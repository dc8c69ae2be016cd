"""Newton's method on all rows and classes, from where adaptive steps have come to rest."""

from __future__ import annotations

import time

import numpy as np

from ..._fenchel_young.losses.loss import FenchelYoungLoss
from ..._fenchel_young.solver.minimize_model import minimize_fenchel_young

# Seconds that it may take in any case.
MIN_SECONDS = 1.0
# Largest time in units of the time of max_iter epochs.
MAX_TIME_RATIO = 2.0
# Steps end after two decreases of the objective below this part of log K.
MIN_DECREASE = 1e-4
# Steps end at an objective below this part of log K. Without a ridge, the weights of separable classes would
# grow without limit.
LOW_OBJECTIVE = 5e-3


def refine_in_memory(model, X, targets, use, state, options, seconds, n_epochs):
    """Newton steps on the exact objective from ``state``, which is changed; returns the objective, or None.

    Parameters
    ----------
    model : ExtremeSoftmaxSGD
    X : ndarray or CSR matrix
    targets : ExtremeTargets
    use : ndarray of bool
        The rows that the fit steps on.
    state : SoftmaxState
        Of adaptive steps.
    options : SamplingOptions
    seconds : float
        Time of the epochs.
    n_epochs : int
        Their number.
    """
    K, place = state.n_classes, options.plan.place
    X, q, weight = _given(X, targets, use, model.label_choice, K)
    loss = FenchelYoungLoss(
        "softmax", X, q, K, weight, fit_intercept=state.bias is not None, n_threads=options.n_threads
    )
    start = np.empty(loss.shape)
    start[: X.shape[1]] = state.W[:, place]
    if state.bias is not None:
        start[-1] = state.bias[place]
    limit = max(MIN_SECONDS, MAX_TIME_RATIO * seconds / n_epochs * options.max_iter)
    if model.max_time is not None:
        limit = min(limit, model.max_time - seconds)
        if limit <= 0:
            return None
    enough, values, flat = MIN_DECREASE * np.log(K), [], [0]

    def is_enough(intermediate_result):
        values.append(intermediate_result.fun)
        small = len(values) > 1 and values[-2] - values[-1] < enough
        flat[0] = flat[0] + 1 if small else 0
        return flat[0] >= 2 or values[-1] <= LOW_OBJECTIVE * np.log(K)

    begin = time.perf_counter()
    first = loss.derivatives(loss.scores(start))[0] + options.alpha / 2 * float((start**2).sum())
    if not LOW_OBJECTIVE * np.log(K) < first < np.inf:
        return None
    result = minimize_fenchel_young(
        loss, options.alpha, start, tol=1e-6, max_iter=100, max_time=limit, callback=is_enough
    )
    if model.verbose:
        print(
            f"{type(model).__name__} ends with {result.nit} Newton steps on all rows and classes: objective "
            f"{result.fun:.5f}, {time.perf_counter() - begin:.2f} s"
        )
    state.W[:, place] = result.x[: X.shape[1]]
    if state.bias is not None:
        state.bias[place] = result.x[-1]
    # the log-loss is more by the mean entropy of the targets
    return float(result.fun) + loss.magnitude


def _given(X, targets, use, label_choice, K):
    """Rows, classes or distributions, and weights of what the steps see."""
    if not use.all():
        X = X[use]
    weight = None if targets.weight is None else targets.weight[use]
    if not targets.multilabel:
        return X, targets.codes[use], weight
    first = targets.first
    rows = np.flatnonzero(use)
    if label_choice == "first":
        return X, targets.codes[first[rows]], weight
    q = np.zeros((len(rows), K))
    sizes = np.diff(first)
    of = np.repeat(np.cumsum(use) - 1, sizes)
    chosen = np.repeat(use, sizes)
    q[of[chosen], targets.codes[chosen]] = np.repeat(1.0 / np.maximum(sizes, 1), sizes)[chosen]
    return X, q, weight
