"""The slow, obvious side of the bounded linear models: the objective, and a solver that certifies its answer.

Every loss but the logistic is a small quadratic program in the residuals (`PIECES`); the logistic loss is
smooth. One dense interior-point method minimises both, and the bound that `solve` checks its answer against
uses nothing of how the answer was found. Nothing here comes from sparsekit.
"""

from functools import cache

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit
from threadpoolctl import ThreadpoolController

REGRESSION = ("absolute", "quantile", "squared", "huber", "epsilon_insensitive")
CLASSIFICATION = ("log_loss", "hinge", "squared_hinge", "modified_huber")
LINEAR = ("absolute", "quantile", "epsilon_insensitive", "hinge")  # piecewise linear


def losses(loss, z, y, quantile=0.5, epsilon=0.1):
    """l(z_i, y_i) of each row; y is -1 or 1 for the losses of classification."""
    r, m = y - z, y * z
    if loss == "absolute":
        return np.abs(r)
    if loss == "quantile":
        return quantile * np.maximum(r, 0) + (1 - quantile) * np.maximum(-r, 0)
    if loss == "squared":
        return r**2 / 2
    if loss == "huber":
        return np.where(np.abs(r) <= epsilon, r**2 / 2, epsilon * np.abs(r) - epsilon**2 / 2)
    if loss == "epsilon_insensitive":
        return np.maximum(np.abs(r) - epsilon, 0)
    if loss == "log_loss":
        return np.logaddexp(0, -m)
    if loss == "hinge":
        return np.maximum(0, 1 - m)
    if loss == "squared_hinge":
        return np.maximum(0, 1 - m) ** 2
    if loss == "modified_huber":
        return np.where(m >= -1, np.maximum(0, 1 - m) ** 2, -4 * m)
    raise ValueError(loss)


def objective(X, y, w, b, loss, *, alpha=0.0, l1_ratio=0.0, sample_weight=None, quantile=0.5, epsilon=0.1):
    """P(w, b); a sparse X is made dense."""
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    w = np.asarray(w, dtype=np.float64)
    z = X.astype(np.float64) @ w + float(b)
    value = np.average(losses(loss, z, np.asarray(y, float), quantile, epsilon), weights=sample_weight)
    return value + alpha * (l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * (w @ w))


def as_bounds(bounds, p):
    """Two arrays (p,) with infinities for None, and for what is as far."""
    sides = [np.float64(d if v is None else v) for v, d in zip(bounds, (-np.inf, np.inf))]
    return [
        np.broadcast_to(np.where(np.abs(v) > 1e20, np.copysign(np.inf, v), v), (p,)).copy() for v in sides
    ]


def pieces(loss, quantile, epsilon):
    """The loss of u as min sum_k d_k v_k^2 / 2 + c_k v_k over u = sum_k a_k v_k, low_k <= v_k <= high_k.

    u is the residual y - z, or 1 - m. A tuple (a, d, c, low, high) for each k.
    """
    inf = np.inf
    above, below = (1, 0, 1.0, 0, inf), (-1, 0, 1.0, 0, inf)
    idle = (-1, 0, 0.0, 0, inf)  # what a row has to spare
    return {
        "absolute": [above, below],
        "quantile": [(1, 0, quantile, 0, inf), (-1, 0, 1 - quantile, 0, inf)],
        "squared": [(1, 1.0, 0, -inf, inf)],
        "huber": [(1, 1.0, 0, -inf, inf), (1, 0, epsilon, 0, inf), (-1, 0, epsilon, 0, inf)],
        "epsilon_insensitive": [(1, 0, 0, -epsilon, epsilon), above, below],
        "hinge": [above, idle],
        "squared_hinge": [(1, 2.0, 0, 0, inf), idle],
        "modified_huber": [(1, 2.0, 0, 0, inf), (1, 0, 4.0, 0, inf), idle],
    }[loss]


def interior_point(fun, A, b, low, high, max_iter=200):
    """min fun(x), A x = b, low < x < high: primal-dual Newton steps on the perturbed KKT conditions.

    ``fun(x)`` returns f, gradient and Hessian of a convex function. Returns x and the multipliers of A x = b.
    """
    n, m = len(low), len(b)
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    x = np.zeros(n)
    x[has_low] = low[has_low] + 1.0
    x[has_high & ~has_low] = high[has_high & ~has_low] - 1.0
    both = has_low & has_high
    x[both] = (low[both] + high[both]) / 2
    low0, high0 = np.where(has_low, low, 0.0), np.where(has_high, high, 0.0)
    nu, zl, zu = np.zeros(m), np.zeros(n), np.zeros(n)
    zl[has_low], zu[has_high] = 1 / (x - low0)[has_low], 1 / (high0 - x)[has_high]
    n_bounds = max(1, int(has_low.sum() + has_high.sum()))

    def residual(x, nu, zl, zu, mu):
        _, g, H = fun(x)
        dual = g - A.T @ nu - zl + zu
        centre = np.where(has_low, zl * (x - low0) - mu, 0), np.where(has_high, zu * (high0 - x) - mu, 0)
        norm = np.linalg.norm(np.concatenate([dual, A @ x - b, *centre]))
        return norm, dual, A @ x - b, *centre, H

    for _ in range(max_iter):
        gap = zl @ np.where(has_low, x - low0, 0) + zu @ np.where(has_high, high0 - x, 0)
        mu = 0.1 * gap / n_bounds
        norm, dual, primal, cl, cu, H = residual(x, nu, zl, zu, mu)
        if max(gap, np.linalg.norm(dual), np.linalg.norm(primal)) < 1e-13:
            break
        # rounding may put x on a bound
        sl = np.where(has_low, np.maximum(x - low0, 1e-16), 1.0)
        su = np.where(has_high, np.maximum(high0 - x, 1e-16), 1.0)
        # a little of the identity, for directions in which nothing changes
        top = H + np.diag(zl / sl + zu / su + 1e-13)
        K = np.block([[top, -A.T], [A, 1e-15 * np.eye(m)]])
        step = np.linalg.solve(K, -np.concatenate([dual + cl / sl - cu / su, primal]))
        dx, dnu = step[:n], step[n:]
        dzl, dzu = -(cl + zl * dx) / sl, -(cu - zu * dx) / su
        dzl[~has_low], dzu[~has_high] = 0, 0
        t = 1.0
        for value, change in ((sl, np.where(has_low, dx, 0)), (su, np.where(has_high, -dx, 0)), (zl, dzl),
                              (zu, dzu)):  # fmt: skip
            falls = change < 0
            t = min(t, 0.99 * np.min(-value[falls] / change[falls], initial=np.inf))
        while t > 1e-10:
            point = x + t * dx, nu + t * dnu, zl + t * dzl, zu + t * dzu
            if residual(*point, mu)[0] <= (1 - 1e-3 * t) * norm:
                break
            t /= 2
        else:
            break  # rounding errors allow no more
        x, nu, zl, zu = point
    return x, nu


@cache
def _libraries():
    # to search them each time takes longer than many a solve
    return ThreadpoolController()


def solve(*args, **options):
    """`_solve` on one thread: the matrices are small, and BLAS's threads wait for each other."""
    with _libraries().limit(limits=1, user_api="blas"):
        return _solve(*args, **options)


def _solve(
    X, y, loss, bounds=(None, None), *, alpha=0.0, l1_ratio=0.0, fit_intercept=True, sample_weight=None,
    quantile=0.5, epsilon=0.1, rel=1e-8,
):  # fmt: skip
    """(w, b, P) with P at most ``rel * max(P, 1e-3 * loss at zero)`` above the minimum, which is asserted."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    s = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    options = dict(alpha=alpha, l1_ratio=l1_ratio, sample_weight=s, quantile=quantile, epsilon=epsilon)
    lower, upper = box = as_bounds(bounds, X.shape[1])
    kept = s > 0
    # in units in which y is about 1: w = unit * w', P = unit**power * P'
    unit = np.abs(y[kept]).max() if loss in REGRESSION and y[kept].any() else 1.0
    power = 2 if loss in ("squared", "huber") else 1
    Xs, ys, s, epsilon = X[kept], y[kept] / unit, s[kept] / s.sum(), epsilon / unit
    lower, upper = lower / unit, upper / unit
    l1, l2 = alpha * l1_ratio * unit ** (1 - power), alpha * (1 - l1_ratio) * unit ** (2 - power)
    p, n = X.shape[1], len(ys)

    # variables: w, or its parts w+ and w- under an L1 penalty; the intercept; the pieces of each row
    T, low, high = np.eye(p), lower, upper
    if l1 > 0:
        T = np.hstack([np.eye(p), -np.eye(p)])
        low = np.concatenate([np.maximum(lower, 0), np.maximum(-upper, 0)])
        high = np.concatenate([np.maximum(upper, 0), np.maximum(-lower, 0)])
    k = T.shape[1]
    d, c, Z = np.full(k, l2), np.full(k, l1), Xs @ T
    if fit_intercept:
        d, c, Z = np.append(d, 0), np.append(c, 0), np.column_stack([Z, np.ones(n)])
        low, high = np.append(low, -np.inf), np.append(high, np.inf)
    n_model = len(c)
    if loss == "log_loss":
        A, rhs = np.zeros((0, n_model)), np.zeros(0)
    else:
        sign, rhs = (ys, np.ones(n)) if loss in CLASSIFICATION else (np.ones(n), ys)
        blocks = [sign[:, None] * Z]
        for a, d_k, c_k, low_k, high_k in pieces(loss, quantile, epsilon):
            blocks.append(a * np.eye(n))
            d, c = np.concatenate([d, s * d_k]), np.concatenate([c, s * c_k])
            low = np.concatenate([low, np.full(n, float(low_k))])
            high = np.concatenate([high, np.full(n, float(high_k))])
        A = np.hstack(blocks)

    def fun(x):
        f, g, H = 0.5 * x @ (d * x) + c @ x, d * x + c, np.diag(d)
        if loss == "log_loss":
            z = ys * (Z @ x)
            q = expit(-z)
            f = f + s @ np.logaddexp(0, -z)
            g, H = g - Z.T @ (s * ys * q), H + (Z.T * (s * q * (1 - q))) @ Z
        return f, g, H

    free = low < high
    fixed = np.where(free, 0.0, low)
    if loss in LINEAR and l2 == 0:
        found = linprog(c, A_eq=A, b_eq=rhs, bounds=np.column_stack([low, high]), method="highs")
        assert found.status == 0, found.message
        x, nu = found.x, found.eqlin.marginals
    else:

        def reduced(v):
            x = fixed.copy()
            x[free] = v
            f, g, H = fun(x)
            return f, g[free], H[np.ix_(free, free)]

        v, nu = interior_point(reduced, A[:, free], rhs - A @ fixed, low[free], high[free])
        x = fixed.copy()
        x[free] = v
    w = np.clip(unit * (T @ x[:k]), *box)
    b = unit * float(x[k]) if fit_intercept else 0.0
    value = objective(X, y, w, b, loss, **options)

    # a convex f lies above its tangent: f(x') >= f(x) + (grad f(x) - A'nu) . (x' - x) where A x' = b
    reach = 10 * (1 + np.abs(x).max())
    f, g, _ = fun(x)
    r = g - A.T @ nu
    worst = np.where(r > 0, np.maximum(low, x - reach), np.minimum(high, x + reach))
    bound = unit**power * (f + nu @ (rhs - A @ x) + r @ (worst - x))
    at_zero = unit**power * np.average(losses(loss, np.zeros(n), ys, quantile, epsilon), weights=s)
    assert value - bound <= rel * max(value, 1e-3 * at_zero, 1e-12), (loss, value, bound)
    return w, b, value
