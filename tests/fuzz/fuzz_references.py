"""What each estimator minimises, written down once more, and a value that its minimum is not above.

An objective is a function of a fitted model's coefficients. The reference value comes from SciPy's L-BFGS-B
on an equal smooth problem, or from the quadratic programs of reference_bounded. It is the value at a point,
so it can be above the minimum but never below. No certificate may contradict it.
"""

import numpy as np
import reference_bounded
import reference_oba
import reference_sparsemax
from scipy import optimize
from scipy.special import log_softmax, softmax, xlogy


def coefficients(model):
    """W (K, p) and b (K,) in float64."""
    W = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    return W, np.broadcast_to(np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)), len(W))


def _ones(s, n):
    return np.ones(n) if s is None else np.asarray(s, dtype=np.float64)


def l1_logistic(model, X, codes, K, s, offset=0.0):
    """(objective of the model, best value, value at zero)."""
    W, b = coefficients(model)
    penalised = np.ones(X.shape[1]) / model.C
    s = _ones(s, len(X))
    if K == 2:
        smooth = reference_oba.logistic(X, np.where(codes == 1, 1.0, -1.0), s, model.fit_intercept, offset)
        l1 = penalised
        x = np.concatenate([W[0], b]) if model.fit_intercept else W[0]
        free = 1
    else:
        smooth = reference_oba.multinomial(X, codes, K, s, model.fit_intercept, offset)
        l1, x, free = np.repeat(penalised, K), W.T.ravel(), K
        x = np.concatenate([x, b]) if model.fit_intercept else x
    l1 = np.concatenate([l1, np.zeros(free)]) if model.fit_intercept else l1
    best = reference_oba.objective(smooth, l1, reference_oba.split_lbfgsb(smooth, l1, 2000))
    zero = smooth.value(np.zeros(smooth.size))
    return reference_oba.objective(smooth, l1, x), best, zero


def lasso(model, X, y, s):
    s = _ones(s, len(X))
    total, (W, b) = s.sum(), coefficients(model)
    # centred, as an intercept may be large; free variables are the same up to a shift
    offset = np.average(y, weights=s) if model.fit_intercept else 0.0
    smooth = reference_oba.least_squares(X, y - offset, s / total, model.fit_intercept)
    l1, x = np.full(X.shape[1], float(model.alpha)), W[0]
    if model.fit_intercept:
        l1, x = np.append(l1, 0.0), np.append(x, b[0] - offset)
    best = reference_oba.objective(smooth, l1, reference_oba.split_lbfgsb(smooth, l1, 2000))
    return reference_oba.objective(smooth, l1, x), best, smooth.value(np.zeros(smooth.size))


def bounded(model, X, targets, s, bounds):
    """Of each output: ``targets`` are y, or the signs of each class."""
    found, options = [], {"alpha": model.alpha, "l1_ratio": model.l1_ratio}
    if hasattr(model, "quantile"):
        options |= {"quantile": model.quantile, "epsilon": model.epsilon}
    for (w, b), t in zip(zip(*coefficients(model)), targets):
        f = reference_bounded.objective(X, t, w, b, model.loss, sample_weight=s, **options)
        zero = reference_bounded.objective(X, t, 0 * w, 0.0, model.loss, sample_weight=s, **options)
        best = reference_bounded.solve(
            X, t, model.loss, bounds, fit_intercept=model.fit_intercept, sample_weight=s, rel=1e-6, **options
        )[2]
        found.append((f, best, zero))
    return tuple(np.array(column) for column in zip(*found))


def softmax_rows(Z, Q):
    logs = log_softmax(Z, axis=1)
    return (xlogy(Q, Q) - Q * logs).sum(axis=1), softmax(Z, axis=1) - Q


def sparsemax_rows(Z, Q):
    """max over p of <z, p> - |p|^2 / 2, less the same at q."""
    P = reference_sparsemax.rows(Z)[0]
    return ((P - Q) * Z).sum(axis=1) - 0.5 * (P**2 - Q**2).sum(axis=1), P - Q


def box_rows(Z, Q):
    """LP-SparseMAP of labels without factors: each is clipped by itself."""
    P = np.clip(Z, 0.0, 1.0)
    return ((P - Q) * Z).sum(axis=1) - 0.5 * (P**2 - Q**2).sum(axis=1), P - Q


def logistic_rows(Z, Q):
    sign = 2 * Q - 1
    return np.logaddexp(0.0, -sign * Z).sum(axis=1), -sign * np.exp(-np.logaddexp(0.0, sign * Z))


def table(model, X, Q, s, rows, penalize_intercept):
    """A matrix of coefficients under an L2 penalty: alpha/2 |W|^2 + sum_i w_i L(W x_i + b; q_i)."""
    s, (W, b) = _ones(s, len(X)), coefficients(model)
    s = s / s.sum()
    A = np.hstack([X, np.ones((len(X), 1))]) if model.fit_intercept else X
    ridge = np.full((A.shape[1], 1), float(model.alpha))
    if model.fit_intercept and not penalize_intercept:
        ridge[-1] = 0.0

    def fun(v):
        T = v.reshape(A.shape[1], -1)
        f, G = rows(A @ T, Q)
        return s @ f + 0.5 * np.sum(ridge * T**2), (A.T @ (s[:, None] * G) + ridge * T).ravel()

    zero, options = (
        np.zeros(A.shape[1] * Q.shape[1]),
        {"maxiter": 2000, "maxfun": 20000, "ftol": 0, "gtol": 1e-12},
    )
    best = optimize.minimize(fun, zero, jac=True, method="L-BFGS-B", options=options).fun
    v = np.vstack([W.T, b]) if model.fit_intercept else W.T
    return fun(v.ravel())[0], best, fun(zero)[0]
