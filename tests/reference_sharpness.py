"""Sharpness by (4.3) and (4.4) of the thesis, plainly: a pseudo-inverse and a search of a grid."""

import itertools

import numpy as np


def box(x, epsilon, A=None):
    """Half-widths of C_epsilon, (4.3)."""
    A = np.eye(len(x)) if A is None else A
    return epsilon * (np.abs(np.linalg.pinv(A) @ x) + 1.0)


def sharpness(f, x, epsilon, A=None, n_inside=3):
    """(4.4), by a grid of ``n_inside`` points an axis: exact for convex f, which is largest at a corner."""
    half = box(x, epsilon, A)
    A = np.eye(len(x)) if A is None else A
    axes = [np.linspace(-h, h, n_inside) for h in half]
    largest = max(f(x + A @ np.array(z)) for z in itertools.product(*axes))
    return 100.0 * (largest - f(x)) / (1.0 + f(x))
