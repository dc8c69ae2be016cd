"""Batches of sequences by the proximal follow-the-regularised-leader with AdaGrad's steps.

The sequences are taken a few at a time. With g_s the gradients of C times their losses where they were met,
v_s, the coefficients are, each by itself,

    v = argmin  sum_s g_s v + 1/2 sum_s (h_s - h_{s-1}) (v - v_s)^2 + rho |v| + (1 - rho) / 2 v^2 ,
    h_s = sqrt(C^2 b^2 + G_s) / r ,   G_s = g_1^2 + ... + g_s^2 ,

H. B. McMahan, "Follow-the-regularized-leader and mirror descent" (AISTATS 2011), with the steps of J. Duchi,
E. Hazan, Y. Singer (JMLR 2011): the penalty counts once for all that came, as in the batch's objective, and
an L1 penalty leaves exact zeros. Only Z = sum_s (g_s - (h_s - h_{s-1}) v_s) and G are kept, and a feature's
coefficients are computed when it occurs. Others cost nothing until the batch ends.
"""

import numpy as np
import scipy.sparse as sp

from ..._linalg.class_design import design_of

# The best of four choices on the benchmark's sets "tune", C from 0.1 to 10.
# sequences in a step
SEQUENCES_PER_STEP = 8
# the rate r
RATE = 0.3
# b, the first sum of squares' root, in units of C
INITIAL_ROOT = 0.1


def steepness(squares, C):
    """h."""
    return np.sqrt((C * INITIAL_ROOT) ** 2 + squares) / RATE


def coefficients(sums, squares, C, l1_ratio):
    """v."""
    v = np.maximum(np.abs(sums) - l1_ratio, 0.0)
    return np.copysign(v, -sums) / (steepness(squares, C) + (1.0 - l1_ratio))


def sums_of(table, squares, C, l1_ratio):
    """Z that leads to these coefficients."""
    return -table * (steepness(squares, C) + (1.0 - l1_ratio)) - l1_ratio * np.sign(table)


def update_by_batch(make_loss, sums, squares, rows, starts, y, weight, allowed, C, l1_ratio, ends):
    """One pass over the sequences in their order; Z and G (p + K + 2, K) change in place.

    ``rows`` is a CSR matrix (N, p), ``make_loss`` a subclass of `ChainLoss`. Returns C times
    the sum of the losses as they were met, and how many were not solved.
    """
    K = len(allowed.begin)
    p, total, unsolved = len(sums) - K - 2, 0.0, 0
    rest = np.arange(p, p + K + 2 * ends)
    order = np.flatnonzero((weight > 0) & (np.diff(starts) > 0))
    for lo in range(0, len(order), SEQUENCES_PER_STEP):
        few = order[lo : lo + SEQUENCES_PER_STEP]
        lengths = np.diff(starts)[few]
        at = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in few])
        part = rows[at]
        used, columns = np.unique(part.indices, return_inverse=True)
        X = sp.csr_matrix((part.data, columns, part.indptr), shape=(len(at), len(used)))
        loss = make_loss(
            design_of(X, 1), np.concatenate([[0], lengths.cumsum()]), y[at], allowed, C * weight[few],
            ends=ends, ridge=0.0,
        )  # fmt: skip
        which = np.concatenate([used, rest])
        G = squares[which]
        v = coefficients(sums[which], G, C, l1_ratio)
        value, g = loss.value_and_gradient(v.ravel())
        g, total = g.reshape(-1, K), total + value
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            squares[which] = now = G + g * g
            sums[which] += g - (steepness(now, C) - steepness(G, C)) * v
        unsolved += getattr(loss, "unsolved", 0)
    if not (np.isfinite(sums).all() and np.isfinite(squares).all()):
        raise ValueError("X, C or sample_weight is too large: steps overflow.")
    return total, unsolved
