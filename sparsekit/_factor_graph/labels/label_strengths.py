"""Strengths of the L2 penalties that follow from the data: alpha="auto" of the classifier of label sets."""

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal

from ..._arrays import namespace, to_host
from ..._linalg.class_products import class_sums, matmat, squared_norms
from ..._linalg.dense_design import DenseDesign
from ..._linalg.matrix import BUFFER
from ..._linalg.newton import SMALL_SIDE

_NOTHING = np.zeros(1), np.zeros(1)  # the spectrum of identical rows
# compared strengths, in units of a row's variance over the number of rows: ten per decade
_GRID = 10.0 ** (np.arange(-30, 21) / 10.0)
# replaces strengths that overflow: its products with tables up to it are finite
MAX_STRENGTH = np.sqrt(np.finfo(np.float64).max)
# Steps of Lanczos' method.
MAX_STEPS = 24
# Random combinations that stand for more labels.
MAX_LABELS = 8
# Random vectors that estimate a trace.
N_PROBES = 6
# Smallest share of residual degrees of freedom at which the criterion is used. Near interpolation it is a
# quotient of two small numbers, and estimates from a few vectors are worst.
MIN_FREEDOM_LEFT = 0.2
# The curvature of the logistic loss is at most a quarter of the squared one's. The hinge loss has none; its
# best strengths were a tenth and less on the sets that this was chosen on (benchmarks/label_sets.py).
_SHARES = {"sparsemap": 1.0, "logistic": 0.25, "hinge": 0.1}


def strengths(alpha, pair_alpha, loss, design, Y, weight, centred):
    """(alpha, pair_alpha) as numbers, and for alpha="auto" the spectrum that `count_and_spectrum` has.

    alpha="auto" is the best strength of a ridge regression of the labels by generalised cross-validation
    (Golub, Heath, Wahba 1979), one for all labels. It minimises sum_k |y_k - X w_k|^2 / (1 - df / n)^2, where
    df is the trace of the hat matrix. pair_alpha=None is alpha if that is a number. With "auto" it is the
    strength for a feature of variance 1, since pairs have no feature's scale.

    Parameters
    ----------
    alpha : float or "auto"
    pair_alpha : float or None
    loss : {"sparsemap", "hinge", "logistic"}
    design : of shape (n, p)
    Y : ndarray of shape (n, K)
    weight : ndarray of shape (n,)
        Of the rows, >= 0, not all zero.
    centred : bool
        Whether there are intercepts.
    """
    if not isinstance(alpha, str):
        return alpha, alpha if pair_alpha is None else pair_alpha, None
    n, share = _counted(weight)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio, spread, spectrum = _ridge_ratio(design, Y, share, n, centred)
    unit = _SHARES[loss] * ratio / n
    return min(unit * spread, MAX_STRENGTH), unit if pair_alpha is None else pair_alpha, spectrum


def count_and_spectrum(design, Y, weight, centred, spectrum=None):
    """Number of rows as weights count them; eigenvalues of their second moments and multiplicities, as far as
    sums over all of them go. A spectrum that is known is not computed again.
    """
    n, share = _counted(weight)
    if spectrum is None:
        with np.errstate(over="ignore", invalid="ignore"):
            spectrum = _ridge_ratio(design, Y, share, n, centred)[2]
    return n, spectrum


def _counted(weight):
    """Number of rows, and their weights of sum 1."""
    share = weight / weight.max()
    # The sum of the weights, if they are counts. At least the number of positive ones: small weights must not
    # make a large penalty.
    n = max(float(weight.max()) * float(share.sum()), float((weight > 0).sum()))
    return n, share / share.sum()


def _ridge_ratio(design, Y, share, n, centred):
    """Best strength over spread / n, the rows' mean squared distance from their mean, and the spectrum."""
    xp = namespace(Y=Y, share=share)
    ones = share[:, None].copy()
    spread = float(share @ squared_norms(design))
    if centred:
        mean = class_sums(design, ones, False)
        spread -= float((mean * mean).sum())
    if not np.isfinite(spread):
        return 1.0, MAX_STRENGTH, _NOTHING
    if not (spread > 0.0 and Y.shape[1]):  # identical rows determine no strength
        return 1.0, 1.0, _NOTHING

    def centre(Z):
        return (Z - share @ Z if centred else Z) * ones

    # then Lanczos' method costs no less
    exact = design.shape[1] <= SMALL_SIDE and design.shape[0] * design.shape[1] <= BUFFER
    # fixed random signs: a few combinations estimate all labels and the trace
    rng, p, K = np.random.default_rng(0), design.shape[1], Y.shape[1]
    if K > MAX_LABELS and not exact:
        Y = Y @ xp.asarray(rng.choice([-1.0, 1.0], (K, MAX_LABELS)))
    residual = xp.ascontiguousarray(centre(Y))
    total, start = float((residual * Y).sum()), class_sums(design, residual, False)
    if exact:
        rows = design.X if isinstance(design, DenseDesign) else matmat(design, xp.eye(p))
        rows = rows.astype(np.float64)
        nodes, parts = _spectrum(to_host(rows.T @ centre(rows)), to_host(start))
        trace_nodes, trace_parts = nodes, np.ones_like(nodes)
    else:
        probes = xp.asarray(rng.choice([-1.0, 1.0], (p, N_PROBES)))
        start = xp.concatenate([start, probes], axis=1)
        nodes, parts = _quadrature(lambda V: class_sums(design, centre(matmat(design, V)), False), start)
        trace_nodes, trace_parts = nodes[-N_PROBES:], parts[-N_PROBES:] / N_PROBES
        nodes, parts = nodes[:-N_PROBES], parts[:-N_PROBES]
    if not all(np.isfinite(a).all() for a in (nodes, parts, trace_nodes, trace_parts)):
        return 1.0, spread, _NOTHING
    spectrum = trace_nodes, trace_parts
    if not total > 0.0:
        return 1.0, spread, spectrum
    nodes, parts, trace_nodes = nodes / spread, parts / spread, trace_nodes / spread
    grid = _GRID[:, None, None] / n
    explained = (parts * (nodes + 2.0 * grid) / (nodes + grid) ** 2).sum(axis=(1, 2))
    freedom = (trace_parts * trace_nodes / (trace_nodes + grid)).sum(axis=(1, 2)) + centred
    left = 1.0 - freedom / n
    score = np.full(len(_GRID), np.inf)
    usable = left > MIN_FREEDOM_LEFT
    score[usable] = np.maximum(total - explained, 0.0)[usable] / left[usable] ** 2
    if not np.isfinite(score).any():  # a row or two
        return 1.0, spread, spectrum
    # the strongest of equal ones
    return float(_GRID[::-1][np.argmin(score[::-1])]), spread, spectrum


def _spectrum(C, start):
    """Eigenvalues of C, and the squared parts along its vectors of start's columns, summed: (1, p) each."""
    if not np.isfinite(C).all():
        return np.full((1, 1), np.nan), np.zeros((1, 1))
    values, vectors = eigh(0.5 * (C + C.T), driver="evd", check_finite=False)
    return np.maximum(values, 0.0)[None], ((vectors.T @ start) ** 2).sum(axis=1)[None]


def _quadrature(product, start):
    """Nodes and weights (c, m) with v^T f(C) v = sum of weights f(nodes) for the c columns v of start.

    Gauss quadrature by Lanczos (Golub, Meurant 1994): exact for polynomials of degree 2 m - 1, whatever
    orthogonality is lost to rounding.
    """
    norms = np.sqrt((start**2).sum(axis=0))
    V, before = start / np.where(norms > 0.0, norms, 1.0), 0.0 * start
    steps = min(MAX_STEPS, len(start))
    diagonal, sides = np.zeros((start.shape[1], steps)), np.zeros((start.shape[1], steps))
    b = 0.0 * norms
    for k in range(steps):
        W = product(V) - b * before
        a = (V * W).sum(axis=0)
        W = W - a * V
        b = np.sqrt((W**2).sum(axis=0))
        diagonal[:, k] = to_host(a)
        # in an invariant subspace the remainder is rounding
        b = np.where(b > 1e-10 * abs(a), b, 0.0)
        sides[:, k] = to_host(b)
        before, V = V, W / np.where(b > 0.0, b, np.inf)
    nodes, parts = np.zeros_like(diagonal), np.zeros_like(diagonal)
    if not (np.isfinite(diagonal).all() and np.isfinite(sides).all()):
        return nodes + np.nan, parts
    for c, norm in enumerate(to_host(norms)):
        values, vectors = eigh_tridiagonal(diagonal[c], sides[c, : steps - 1])
        nodes[c], parts[c] = np.maximum(values, 0.0), (norm * vectors[0]) ** 2
    return nodes, parts
