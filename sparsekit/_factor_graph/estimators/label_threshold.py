"""threshold="auto": where between the rule of the largest expected F1 and a half rows' thresholds are."""

import numpy as np

from ..._arrays import to_host
from ..._linalg.special import expit
from ..labels.label_curvature import MIN_CURVATURE
from .label_decisions import decide

# weights of 0.5 in the compared thresholds; the first of equal ones wins
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Largest leverage of a row that is subtracted in the leave-one-out formula: a nearly interpolated row would
# otherwise move without a bound.
MAX_LEVERAGE = 0.9


def may_choose(loss):
    """Whether `threshold_share` uses rows: not with factors, nor for the hinge, without curvature."""
    return loss.loss != "hinge" and loss.labels.are_free and loss.shape[1] > 0


def threshold_share(loss, x, spectrum, n, never_empty):
    """One of `SHARES`: the best by the training rows' F1 as if each had been left out.

    Expected F1 takes marginals for probabilities of labels that do not exclude each other. Held-out rows
    correct the error. Leaving out row i moves its scores eta by about q g / (n - q d), as in generalised
    cross-validation of a ridge. Here g and d are slope and curvature of its loss. H is the label's
    Hessian, and q the mean of x_j^T H^-1 x_j over the rows. The best share has the largest sum of the rows'
    mean F1 and micro F1. Its mean F1 is not below that of a share of 0.

    Parameters
    ----------
    loss : LabelLoss
        With its penalties, of those that `may_choose`.
    x : ndarray of shape (n_variables,)
        The solution.
    spectrum : tuple of ndarray
        Eigenvalues of the rows' second moments, and their multiplicities, of any shape.
    n : float
        Number of rows, as weights count them.
    never_empty : bool
    """
    table, plus, minus = loss.unpack(x)
    eta = loss.scores(table)

    def marginals(scores):
        if loss.loss == "logistic":
            return expit(scores)
        if not loss.n_pairs:
            return scores.clip(0.0, 1.0)
        return loss.labels.marginals(scores, plus, minus, loss.options, loss.n_threads)[0]

    mu = marginals(eta)
    own = mu * (1.0 - mu) if loss.loss == "logistic" else ((mu > 0.0) & (mu < 1.0)).astype(np.float64)
    mean = np.maximum(to_host(loss.weight @ own), MIN_CURVATURE)
    nodes, times = (np.ravel(part) for part in spectrum)
    # without a penalty, each direction with variance counts as one degree of freedom
    shrunk = mean[:, None] * nodes + max(loss.alpha, 1e-12 * float(nodes.max(initial=0.0)), 1e-300)
    q = (times * nodes / shrunk).sum(axis=1)
    q = loss.xp.asarray((q + loss.fit_intercept / mean) / n)
    eta = eta + q * (mu - loss.Y) / (1.0 - np.minimum(q * own, MAX_LEVERAGE))
    mu = marginals(eta)
    both = np.empty((len(SHARES), 2))
    for k, share in enumerate(SHARES):
        sets = decide(mu, eta, "expected_f1", never_empty, None, loss.n_threads, share=share)
        both[k] = _f1(sets, loss.Y, loss.weight)
    return SHARES[int(np.argmax(np.where(both[:, 0] >= both[0, 0], both.sum(axis=1), -1.0)))]


def _f1(sets, Y, weight):
    """The rows' mean F1, two empty sets having 1, and micro F1."""
    right, sizes = (sets * Y).sum(axis=1), sets.sum(axis=1) + Y.sum(axis=1)
    rows = np.where(sizes > 0, 2.0 * right / np.maximum(sizes, 1), 1.0)
    return float(weight @ rows), 2.0 * float(weight @ right) / max(float(weight @ sizes), 1e-300)
