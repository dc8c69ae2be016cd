"""Stability selection as one would write it down: loops over halves, penalties and features, cold fits."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog, minimize


def selected_in_half(coefficients, limit, free=()):
    """Sets of columns at each penalty, and all columns that count, until ``limit`` have come in.

    coefficients : function of k that fits the half at penalty k and returns (n_outputs, n_features)
    """
    sets, known, stopped = [], [], False
    for coefficient_of_penalty in coefficients:
        if stopped:
            sets.append(sets[-1])
            continue
        coef = np.atleast_2d(coefficient_of_penalty())
        coef = coef.toarray() if sp.issparse(coef) else coef
        size = [max(abs(value) for value in column) for column in coef.T]
        entering = [j for j, s in enumerate(size) if s != 0 and j not in known and j not in free]
        entering.sort(key=lambda j: -size[j])
        while entering and len(known) < limit:
            known.append(entering.pop(0))
        sets.append({j for j, s in enumerate(size) if s != 0 and (j in known or j in free)})
        stopped = len(known) == limit
    return sets, set(known)


def frequencies(fit, halves, n_features, n_penalties, limit, free=()):
    """Share of the halves that use a feature at a penalty, (n_features, n_penalties), and features a half.

    fit : function of (rows, k) that returns the coefficients at penalty k
    """
    counts, total = np.zeros((n_features, n_penalties)), 0
    for rows in halves:
        calls = [lambda k=k, rows=rows: fit(rows, k) for k in range(n_penalties)]
        sets, known = selected_in_half(calls, limit, free)
        total += len(known)
        for k, columns in enumerate(sets):
            for j in columns:
                counts[j, k] += 1
    return counts / len(halves), total / len(halves)


def unimodal_tail(eta, t, size):
    """Largest P(X >= t) of a unimodal X on 0 .. size with mean ``eta * size``: a linear program a mode."""
    best, n_true = 0.0, np.arange(size + 1)
    for mode in n_true:
        rises = np.zeros((size, size + 1))
        for i in range(size):
            rises[i, i], rises[i, i + 1] = (1, -1) if i < mode else (-1, 1)
        found = linprog(
            -(n_true >= t).astype(float), A_ub=rises, b_ub=np.zeros(size),
            A_eq=[np.ones(size + 1), n_true], b_eq=[1, eta * size], bounds=(0, None),
        )  # fmt: skip
        if found.status == 0:
            best = max(best, -found.fun)
    return best


def concave_tail(eta, t, size, r, starts, seed=0):
    """The same of r-concave ones (r < 0), by SciPy's SLSQP over the convex values of ``weight ** r``."""
    rng, best = np.random.default_rng(seed), 0.0
    for last in range(t, size + 1):  # the support is 0 .. last
        n_true = np.arange(last + 1)

        def weights(h):
            w = h ** (1 / r)
            return w / w.sum()

        rules = [
            {"type": "eq", "fun": lambda h: weights(h) @ np.arange(len(h)) - eta * size},
            {"type": "ineq", "fun": lambda h: h[2:] - 2 * h[1:-1] + h[:-2]},
        ]
        for _ in range(starts):
            a = np.exp(rng.uniform(-3, 3))
            h = (a + n_true) / (a + last) + 0.3 * rng.random() * (n_true / (last + 1)) ** 2
            found = minimize(
                lambda h: -weights(h)[t:].sum(), h, constraints=rules, method="SLSQP",
                bounds=[(1e-6, 1e6)] * (last + 1), options={"maxiter": 500, "ftol": 1e-12},
            ).x  # fmt: skip
            if abs(rules[0]["fun"](found)) < 1e-7 and rules[1]["fun"](found).min(initial=0) > -1e-8:
                best = max(best, weights(found)[t:].sum())
    return best
