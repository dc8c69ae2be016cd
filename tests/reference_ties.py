"""Derivatives of LP-SparseMAP where scores tie, by enumeration.

A linear program finds the structures that some best mixture can have, and what of the directions they leave.
"""

import numpy as np
import reference_lp_sparsemap as ref
from scipy.linalg import lstsq
from scipy.optimize import linprog


def smallest_face(f, mu):
    """Which structures of a factor have a weight in some best mixture with marginals mu."""
    M, scores = f.M, f.N.T @ f.scores
    A, b = np.vstack([M, np.ones(M.shape[1])]), np.append(mu[f.variables], 1.0)
    Y = M.shape[1]
    found = linprog(-scores, A_eq=A, b_eq=b, method="highs")
    assert found.status == 0, found.message
    # p = q + t, 0 <= t <= small: as many t as can be
    best, small = -found.fun, 1e-3
    inside = linprog(
        np.append(np.zeros(Y), -np.ones(Y)),
        A_eq=np.hstack([A, A]),
        b_eq=b,
        A_ub=[-np.append(scores, scores)],
        b_ub=[-best + 1e-9],
        bounds=[(0, None)] * Y + [(0, small)] * Y,
        method="highs",
    )
    assert inside.status == 0, inside.message
    return inside.x[Y:] > 1e-6


def jacobian_at_ties(eta, factors):
    """Of mu in eta, (n, n): the projection on the directions that all factors' smallest faces have."""
    mu, _ = ref.solve_exact(eta, factors)
    constraints = ref._Constraints(len(eta), factors)
    S = np.concatenate([smallest_face(f, mu) for f in factors])
    J = np.diag(((eta > 0) & (eta < 1)).astype(float))
    covered = constraints.covered
    n = len(covered)
    K = ref._kkt_matrix(np.ones(n), constraints.B, constraints.P[:, S])
    right = np.zeros((len(K), n))
    right[:n] = np.eye(n)
    J[np.ix_(covered, covered)] = lstsq(K, right, cond=1e-10)[0][:n]
    return mu, J
