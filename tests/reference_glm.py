"""The slow, obvious side of the tests of families: deviances by mpmath, an optimum by proximal gradients.

Nothing is from sparsekit. A family is a pair: half the unit deviance of y at a mean, and the inverse link.
"""

import mpmath as mp
import numpy as np
from scipy import special

LINKS = {
    "log": mp.exp,
    "identity": lambda z: z,
    "logit": lambda z: 1 / (1 + mp.exp(-z)),
    "probit": mp.ncdf,
    "cloglog": lambda z: -mp.expm1(-mp.exp(z)),
}


def _xlog(x, ratio):
    return mp.mpf(0) if x == 0 else x * mp.log(ratio)


def half_deviance(family, y, mean, *, power=1.5, dispersion=1.0, epsilon=1.35):
    """Half the unit deviance of textbooks, in mpmath's numbers."""
    y, mean = mp.mpf(y), mp.mpf(mean)
    if family == "poisson":
        return _xlog(y, y / mean) - y + mean
    if family == "gamma":
        return mp.log(mean / y) + y / mean - 1
    if family == "tweedie":
        p = mp.mpf(power)
        return y ** (2 - p) / ((1 - p) * (2 - p)) - y * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p)
    if family == "negative-binomial":
        r = 1 / mp.mpf(dispersion)
        return _xlog(y, y / mean) - (y + r) * mp.log((y + r) / (mean + r))
    if family == "binomial":
        return _xlog(y, y / mean) + _xlog(1 - y, (1 - y) / (1 - mean))
    r = abs(y - mean)
    if family == "gaussian" or r <= epsilon:
        return r * r / 2
    return epsilon * (r - mp.mpf(epsilon) / 2)


def loss(family, link, z, y, **parameters):
    """Half the unit deviance at the linear predictor z."""
    return half_deviance(family, y, LINKS[link](mp.mpf(z)), **parameters)


# d loss / dz of the families that the optimum is found for, in NumPy
SLOPES = {
    "poisson": lambda z, y: np.exp(z) - y,
    "gamma": lambda z, y: 1.0 - y * np.exp(-z),
    "tweedie": lambda z, y: np.exp(0.5 * z) - y * np.exp(-0.5 * z),
    "negative-binomial": lambda z, y: (1.0 + y) * special.expit(z) - y,
    "binomial": lambda z, y: special.expit(z) - y,
    "gaussian": lambda z, y: z - y,
    "huber": lambda z, y: np.clip(z - y, -1.35, 1.35),
}


def optimum(X, y, family, l1, l2=0.0, weight=None, offset=0.0, steps=20_000):
    """Minimiser [w, b] of the weighted mean loss plus l1 |w| + l2/2 |w|^2, by FISTA with backtracking."""
    A = np.hstack([X, np.ones((len(X), 1))])
    s = np.ones(len(y)) if weight is None else weight
    s = s / s.sum()
    penalty = np.append(np.full(X.shape[1], float(l1)), 0.0)
    ridge = np.append(np.full(X.shape[1], float(l2)), 0.0)
    slope = SLOPES[family]

    def gradient(x):
        return A.T @ (s * slope(A @ x + offset, y)) + ridge * x

    x = momentum = np.zeros(A.shape[1])
    size, t = 1.0, 1.0
    for _ in range(steps):
        g = gradient(momentum)
        while True:
            new = momentum - size * g
            new = np.sign(new) * np.maximum(np.abs(new) - size * penalty, 0.0)
            change = new - momentum
            # the gradient's change along the step bounds the curvature there
            if change @ (gradient(new) - g) <= (change @ change) / size * (1.0 + 1e-12) + 1e-30:
                break
            size *= 0.5
        if (momentum - new) @ (new - x) > 0.0:  # restart
            t = 1.0
        if np.abs(new - x).max() <= 1e-15 * max(1.0, np.abs(new).max()) and t > 1.0:
            return new
        t, last = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t)), t
        momentum, x = new + (last - 1.0) / t * (new - x), new
    return x
