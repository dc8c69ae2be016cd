"""The slow, obvious side of the OBA tests: dense NumPy, one thing a function, nothing from sparsekit.

Problem: minimise phi(x) = f(x) + sum_j l1_j |x_j|, f smooth and convex. A problem is a `Smooth`: value,
gradient, Hessian (dense) and Lipschitz constant of the gradient. `oba` is Algorithms 1 and 2 of the OBA
paper line by line; `split_lbfgsb` is a solver that shares nothing with it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy import optimize, special


@dataclass(frozen=True)
class Smooth:
    """f with value(x), grad(x), hess(x), lipschitz (of grad) and the number of variables."""

    value: Callable
    grad: Callable
    hess: Callable
    lipschitz: float
    size: int


# Losses: sums over samples of s_i h(y_i, z_i), z = A x; A has a column of ones last if there is an intercept.


def design(X, fit_intercept):
    X = np.asarray(X, dtype=np.float64)
    return np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X


def _linear(X, s, fit_intercept, value, slope, curvature, curvature_bound, offset=0.0):
    A = design(X, fit_intercept)

    def z(x):
        return A @ x + offset

    s = np.ones(len(A)) if s is None else np.asarray(s, dtype=np.float64)
    return Smooth(
        value=lambda x: float(s @ value(z(x))),
        grad=lambda x: A.T @ (s * slope(z(x))),
        hess=lambda x: A.T @ ((s * curvature(z(x)))[:, None] * A),
        lipschitz=curvature_bound * np.linalg.norm(np.sqrt(s)[:, None] * A, 2) ** 2,
        size=A.shape[1],
    )


def logistic(X, y, s=None, fit_intercept=False, offset=0.0):
    """sum_i s_i log(1 + exp(-y_i z_i)), y_i in {-1, 1}; an offset (n,) is added to z."""
    return _linear(
        X,
        s,
        fit_intercept,
        value=lambda z: np.logaddexp(0.0, -y * z),
        slope=lambda z: -y * special.expit(-y * z),
        curvature=lambda z: special.expit(z) * special.expit(-z),
        curvature_bound=0.25,
        offset=offset,
    )


def least_squares(X, y, s=None, fit_intercept=False):
    """1/2 sum_i s_i (z_i - y_i)^2."""
    return _linear(
        X,
        s,
        fit_intercept,
        value=lambda z: 0.5 * (z - y) ** 2,
        slope=lambda z: z - y,
        curvature=np.ones_like,
        curvature_bound=1.0,
    )


def probit(X, y, s=None, fit_intercept=False):
    """-sum_i s_i log Phi(y_i z_i), y_i in {-1, 1}; its curvature lies in (0, 1)."""

    def ratio(t):  # density over distribution function, the (negative) slope
        return np.exp(-0.5 * t**2 - 0.5 * np.log(2 * np.pi) - special.log_ndtr(t))

    return _linear(
        X,
        s,
        fit_intercept,
        value=lambda z: -special.log_ndtr(y * z),
        slope=lambda z: -y * ratio(y * z),
        curvature=lambda z: ratio(y * z) * (y * z + ratio(y * z)),
        curvature_bound=1.0,
    )


def multinomial(X, codes, n_classes, s=None, fit_intercept=False, offset=0.0):
    """sum_i s_i (log sum_k exp(z_ik) - z_i,code_i), x = [W.ravel() with W (p, K), b (K)], offset (n, K)."""
    A = design(X, fit_intercept)
    s = np.ones(len(A)) if s is None else np.asarray(s, dtype=np.float64)
    onehot = np.eye(n_classes)[codes]

    def scores(x):
        return A @ x.reshape(A.shape[1], n_classes) + offset

    def hess(x):
        P = special.softmax(scores(x), axis=1)
        blocks = np.einsum("i,ik,kl->ikl", s, P, np.eye(n_classes)) - np.einsum("i,ik,il->ikl", s, P, P)
        return np.einsum("ia,ikl,ib->akbl", A, blocks, A).reshape(2 * (A.shape[1] * n_classes,))

    return Smooth(
        value=lambda x: float(s @ (special.logsumexp(scores(x), axis=1) - (scores(x) * onehot).sum(axis=1))),
        grad=lambda x: (A.T @ (s[:, None] * (special.softmax(scores(x), axis=1) - onehot))).ravel(),
        hess=hess,
        lipschitz=0.5 * np.linalg.norm(np.sqrt(s)[:, None] * A, 2) ** 2,
        size=A.shape[1] * n_classes,
    )


# What a solution is.


def vector(l1, size):
    return np.broadcast_to(np.asarray(l1, dtype=np.float64), size).copy()


def objective(smooth, l1, x):
    return smooth.value(x) + float(vector(l1, smooth.size) @ np.abs(x))


def optimality(smooth, l1, x):
    """Semi-smooth residual: max_j |mid(g_j - l1_j, x_j, g_j + l1_j)|, mid the median of three."""
    g, l1 = smooth.grad(x), vector(l1, smooth.size)
    return float(np.abs(np.median([g - l1, x, g + l1], axis=0)).max(initial=0.0))


def relative_optimality(smooth, l1, x):
    return optimality(smooth, l1, x) / np.abs(smooth.grad(np.zeros(smooth.size))).max()


# Algorithms 1 and 2.


def soft_threshold(x, amount):
    return np.sign(x) * np.maximum(np.abs(x) - amount, 0.0)


def minimum_norm_subgradient(x, grad, l1):
    """(2.4)"""
    g = np.zeros_like(x)
    up = (x > 0) | ((x == 0) & (grad + l1 < 0))
    down = (x < 0) | ((x == 0) & (grad - l1 > 0))
    g[up] = (grad + l1)[up]
    g[down] = (grad - l1)[down]
    g[l1 == 0] = grad[l1 == 0]  # free variables, where both branches of (2.4) agree
    return g


def oba(smooth, l1, x0=None, *, tol=1e-10, max_iter=500, eta=0.01, eps=1e-4, ridge=1e-8):
    """Algorithm 2 with the exact Hessian and an exact (direct) subspace solve.

    It departs from the letter of the algorithms where that is undefined. tau is at least 1: floor(eta n) is 0
    for n < 100, and twice 0 is 0. The corrective cycle solves once also if U_F is empty, or no step would
    exist when only F moves. A variable with l1_j = 0 has no orthant: it is always free and never projected.

    Returns
    -------
    x, info : ndarray, dict
        info["corrections"] is j at the end of each corrective cycle. info["ista"] counts the iterations in
        which the trial point itself was not accepted. info["converged"]; info["values"] is phi(x^k).
    """
    l1 = vector(l1, smooth.size)
    n, L = smooth.size, smooth.lipschitz
    x = np.zeros(n) if x0 is None else np.array(x0, dtype=np.float64)
    penalised = l1 > 0
    tau = max(1, int(eta * n))
    info = {"corrections": [], "ista": 0, "converged": False, "values": [objective(smooth, l1, x)]}
    scale = np.abs(smooth.grad(np.zeros(n))).max()
    for _ in range(max_iter):
        if optimality(smooth, l1, x) <= tol * scale:
            info["converged"] = True
            break
        grad, H = smooth.grad(x), smooth.hess(x)
        # line 4: active-set identification
        active = penalised & (x == 0) & (np.abs(grad) <= l1)
        unsure = penalised & (x == 0) & (np.abs(grad) > l1)
        # lines 5-8: selection
        g = minimum_norm_subgradient(x, grad, l1)
        zeta = np.where(x != 0, np.sign(x), np.sign(-g))  # (2.12)
        candidates = np.flatnonzero(unsure)
        chosen = candidates[np.argsort(-np.abs(g[candidates]), kind="stable")][: min(len(candidates), tau)]
        unsure_free = np.zeros(n, dtype=bool)
        unsure_free[chosen] = True
        active |= unsure & ~unsure_free
        # lines 10-16: corrective cycle
        j = 0
        while True:
            free = ~active
            d = np.zeros(n)
            if free.any():
                system = H[np.ix_(free, free)] + ridge * np.eye(free.sum())
                d[free] = np.linalg.solve(system, -g[free])
            wrong = unsure_free & ~active & (np.sign(x + d) != zeta)
            active |= wrong
            j += 1
            if not wrong.any():
                break
        info["corrections"].append(j)
        # lines 17-19
        if j == 1:
            tau *= 2

        # lines 20-24: projected line search on the model (2.2)
        def project(point, zeta=zeta):  # (2.13)
            return np.where((np.sign(point) == zeta) | ~penalised, point, 0.0)

        def model(point, x=x, grad=grad, H=H):
            step = point - x
            return grad @ step + 0.5 * step @ H @ step + l1 @ np.abs(point)

        alpha = 1.0
        while model(x) < model(project(x + alpha * d)) and alpha > 1e-20:
            alpha /= 2
        trial = project(x + alpha * d)
        # Algorithm 2, lines 6-15: globalisation
        ista = soft_threshold(x - grad / L, l1 / L)
        step = ista - x
        gamma = smooth.value(x) + grad @ step + 0.5 * L * step @ step + l1 @ np.abs(ista)  # (2.14)
        share = 1.0
        # rounding of the two sides must not count as a failure next to the solution
        slack = 1e-14 * max(1.0, abs(gamma))
        while share > 0 and objective(smooth, l1, ista + share * (trial - ista)) > gamma + slack:
            share /= 2
            if share < eps:
                share = 0.0
        info["ista"] += share < 1.0
        x = trial if share == 1.0 else ista + share * (trial - ista)
        info["values"].append(objective(smooth, l1, x))
    return x, info


# Independent solvers.


def split_lbfgsb(smooth, l1, max_iter=20_000):
    """x = u - v with u, v >= 0 (free variables unsplit), by SciPy's L-BFGS-B."""
    l1 = vector(l1, smooth.size)
    n = smooth.size

    def fun(uv):
        x = uv[:n] - uv[n:]
        grad = smooth.grad(x)
        return smooth.value(x) + l1 @ (uv[:n] + uv[n:]), np.concatenate([grad + l1, -grad + l1])

    bounds = [(None if weight == 0 else 0, None) for weight in l1]
    bounds += [(0, 0 if weight == 0 else None) for weight in l1]
    options = {"maxiter": max_iter, "maxfun": 10 * max_iter, "ftol": 0.0, "gtol": 1e-12, "maxcor": 50}
    result = optimize.minimize(
        fun, np.zeros(2 * n), jac=True, bounds=bounds, method="L-BFGS-B", options=options
    )
    return result.x[:n] - result.x[n:]


# Small problems to draw.


def small_problem(seed, kind, fit_intercept=False, weighted=False, n_free=0):
    """A problem with a minimiser: rows come with both labels wherever a variable is free."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 12), rng.integers(1, 8)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7)
    s = rng.uniform(0.1, 3.0, n) if weighted else np.ones(n)
    if kind == "least_squares":
        y = rng.standard_normal(n)
    else:
        y = rng.choice([-1.0, 1.0], n)
        X, y, s = np.vstack([X, X]), np.concatenate([y, -y]), np.concatenate([s, 0.3 * s])
    smooth = {"logistic": logistic, "least_squares": least_squares, "probit": probit}[kind](
        X, y, s, fit_intercept
    )
    largest = np.abs(smooth.grad(np.zeros(smooth.size))).max()
    l1 = np.append(rng.uniform(0.02, 1.2, p) * max(largest, 1e-3), np.zeros(int(fit_intercept)))
    l1[rng.permutation(p)[: min(n_free, p)]] = 0.0
    return X, y, s, smooth, l1


problems = st.tuples(
    st.integers(0, 10_000),
    st.sampled_from(["logistic", "least_squares", "probit"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
)
