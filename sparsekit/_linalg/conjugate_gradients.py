"""Preconditioned conjugate gradients for symmetric positive definite systems, one or several at once."""

import numpy as np


def conjugate_gradients(product, precondition, r, needs_step, max_products, select=None):
    """x with A x = r, from zero, and the number of products: Saad (2003), algorithm 9.1.

    Parameters
    ----------
    product, precondition : callable
        ``product(p)`` is A p, ``precondition(r)`` is near A^-1 r.
    r : ndarray of shape (n,) or (n, k)
        Right-hand sides, in main memory or on a GPU. Each column may have an A of its own.
    needs_step : callable
        ``needs_step(r, x, step_size)`` says which columns go on, from the residuals, all of x, and the last
        step sizes, which are 0 at first. A column without curvature along its direction ends too.
    max_products : int
    select : callable, default=None
        ``select(left)`` is called when only the columns ``left`` of r and p remain. Without it all do.
    """
    x, p, size, step_size, is_curved, n_products = np.zeros_like(r), None, None, 0.0, True, 0
    columns = slice(None) if select is None else np.arange(r.shape[1], like=r)
    while True:
        left = needs_step(r, x, step_size) & is_curved
        if n_products == max_products or not np.any(left):
            return x, n_products
        if n_products and select is not None and float(left.sum()) < 0.7 * len(left):
            columns, r, p, size = columns[left], r[:, left], p[:, left], size[left]
            select(left)
        z = precondition(r)
        last, size = size, _dots(r, z)
        p = z if p is None else z + _ratio(size, last) * p
        H = product(p)
        curvature = _dots(p, H)
        is_curved = (curvature > 0.0) & (curvature < np.inf)
        n_products += 1
        if not np.any(is_curved):
            return x, n_products
        step_size = _ratio(size, curvature)
        x[..., columns] += step_size * p
        r = r - step_size * H


def _dots(A, B):
    """Inner products of columns."""
    return float(A @ B) if A.ndim == 1 else (A * B).sum(axis=0)


def _ratio(a, b):
    """a / b where b is positive and finite, else 0."""
    if isinstance(b, float):
        return a / b if 0.0 < b < np.inf else 0.0
    is_valid = (b > 0.0) & (b < np.inf)
    return np.where(is_valid, a / np.where(is_valid, b, 1.0), 0.0)
