"""Softmax with very many classes, slow and obvious: objectives as in the papers, derivatives by differences.

W has the intercepts as its last column, x a last entry of 1 (or 0 without intercepts).
"""

import numpy as np
from scipy.optimize import minimize, root


def objective(method, f, r, u, *, log_noise=None):
    """The sampled objective of one row: scores f of the label (first) and of the negatives, weights r."""
    z = f[1:] - f[0]
    m = len(z)
    if method == "ove":
        return np.sum(r * np.logaddexp(0.0, z))
    if method == "is":
        return np.log1p(np.sum(r * np.exp(z)))
    if method == "nce":
        a = f - np.log(m) - log_noise
        return np.logaddexp(0.0, -a[0]) + np.sum(np.logaddexp(0.0, a[1:]))
    return u + np.exp(-u) + np.sum(r * np.exp(z - u)) - 1.0


def gradient(fun, v, step=1e-6):
    """Central differences."""
    out = np.zeros_like(v)
    for i in np.ndindex(v.shape):
        e = np.zeros_like(v)
        e[i] = step
        out[i] = (fun(v + e) - fun(v - e)) / (2 * step)
    return out


def first_u(f, r):
    """u of a row that was not seen before."""
    return np.log1p(np.sum(r * np.exp(f[1:] - f[0])))


def raised(u, f):
    """U-max: u where the sampled classes show that it is too low."""
    bound = np.log1p(np.sum(np.exp(f[1:] - f[0])))
    return bound if u < bound - 1.0 else u


def explicit_batch(method, W, xs, ks, rs, us, eta, weights, *, log_noise=None):
    """One SGD step over rows xs with classes ks[b] (label first): new W and new us."""
    new, new_us, size = W.copy(), list(us), len(xs)
    for b in range(size):
        x, k, r, u = xs[b], ks[b], rs[b], us[b]
        f = W[k] @ x
        if np.isnan(u):
            u = first_u(f, r)
        if method == "umax":
            u = raised(u, f)

        def at(scores, u=u, r=r, k=k):
            noise = None if log_noise is None else log_noise[k]
            return objective(method, scores, r, u, log_noise=noise)

        step = eta * weights[b] / size
        g = gradient(at, f)
        for j, code in enumerate(k):
            new[code] -= step * g[j] * x
        if method in ("umax", "sgd"):
            by_u = gradient(lambda v, f=f, r=r: objective(method, f, r, v[0]), np.array([u]))
            u = u - step * by_u[0]
        if method == "umax":
            u = max(u, 0.0)
        new_us[b] = u
    return new, new_us


def proximal_step(W, xs, classes, labels, r, us, eta, weights, ridge=0.0, beta=None):
    """The implicit step by BFGS on its definition, polished: min f + ||theta - old||^2 / (2 eta).

    classes: distinct codes that take part; labels: each row's index among them; r (rows, classes): weights of
    the negatives, 0 at the label.
    """
    old, size = W[classes], len(xs)
    shape = old.shape
    shrink = np.zeros(len(classes)) if beta is None else ridge * beta[classes]

    def fun(v):
        us_, V = v[:size], v[size:].reshape(shape)
        total, gu, gV = 0.0, np.zeros(size), np.zeros(shape)
        for b in range(size):
            f = V @ xs[b]
            e = r[b] * np.exp(f - f[labels[b]] - us_[b])
            w = weights[b] / size
            total += w * (us_[b] + np.exp(-us_[b]) + e.sum())
            gu[b] = w * (1.0 - np.exp(-us_[b]) - e.sum())
            g = w * e
            g[labels[b]] -= w * e.sum()
            gV += np.outer(g, xs[b])
        total += 0.5 * np.sum(shrink[:, None] * V**2)
        gV += shrink[:, None] * V
        total = eta * total + 0.5 * np.sum((us_ - us) ** 2) + 0.5 * np.sum((V - old) ** 2)
        return total, np.concatenate([eta * gu + us_ - us, (eta * gV + V - old).ravel()])

    start = np.concatenate([np.maximum(us, 0.0), old.ravel()])
    result = minimize(fun, start, jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 5000})
    # BFGS compares values, whose rounding hides the last digits of the point; the gradient's root has them.
    # The Hessian is at least I, so there is one root.
    x = root(lambda v: fun(v)[1], result.x, tol=1e-13).x
    new = W.copy()
    new[classes] = x[size:].reshape(shape)
    return new, x[:size], np.abs(fun(x)[1]).max()
