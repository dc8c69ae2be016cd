"""The point of least norm in a convex hull by Wolfe's method, with a dense solve in every step."""

import numpy as np

TOL, MAX_ITER = 1e-12, 1000


def min_norm_weights(gram, tol=TOL):
    """Weights (k,) of the point of least norm in the hull of points with these inner products (k, k)."""
    gram = np.asarray(gram, dtype=np.float64)
    k = len(gram)
    full = np.zeros(k)
    scale = np.max(np.diag(gram))
    if not scale > 0:
        full[0] = 1.0
        return full
    gram = gram / scale
    chosen = [int(np.argmin(np.diag(gram)))]
    weights = np.ones(1)
    for _ in range(MAX_ITER):
        along = gram[:, chosen] @ weights
        best = int(np.argmin(along))
        if best in chosen or along[best] >= weights @ along[chosen] - tol:
            break
        chosen.append(best)
        weights = np.append(weights, 0.0)
        while True:
            target = _affine_weights(gram[np.ix_(chosen, chosen)])
            falling = target <= 0
            if not falling.any():
                weights = target
                break
            # as far towards the affine minimiser as all weights stay nonnegative
            ratios = np.full(len(chosen), np.inf)
            ratios[falling] = weights[falling] / np.maximum(weights - target, 1e-300)[falling]
            first = int(np.argmin(ratios))
            weights = weights + ratios[first] * (target - weights)
            del chosen[first]
            weights = np.maximum(np.delete(weights, first), 0.0)
            weights /= weights.sum()
    full[chosen] = weights
    return full


def _affine_weights(gram):
    """Weights, of sum 1, of the point of least norm in the affine hull of all points."""
    # relative to the first point: of k points that nearly lie in a plane of less dimension any will do
    inner = gram[1:, 1:] - gram[1:, :1] - gram[:1, 1:] + gram[0, 0]
    rest = np.linalg.lstsq(inner, gram[0, 0] - gram[1:, 0], rcond=None)[0]
    return np.append(1.0 - rest.sum(), rest)
