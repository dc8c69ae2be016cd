"""Sparsemax and its loss as functions of arrays, in main memory or on a GPU.

Martins and Astudillo, "From softmax to sparsemax". Equation numbers are those of Madsen, Rørbech and
Kristensen, "Tensorflow implementation of sparsemax"; the divisor of their (5) must be the number of support
members.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._arrays import kernel_module, thread_arguments
from ..._cython.fenchel_young import _sparsemax
from ..._docstrings import shares_entries
from ..._linalg.threads import count_threads
from ..._typing import EitherArray, FloatArray
from .row_arrays import Result, as_rows, check_axis, floating, namespace_of, outer, targets

# number of entries for each further thread
_THREAD_WORK = 16384


def _threads(n_jobs, rows):
    most = max(rows.size // _THREAD_WORK, 1)
    # counting available threads takes as long as a small call
    asked = most > 1 or (n_jobs is not None and n_jobs <= 0)
    return thread_arguments(rows, min(count_threads(n_jobs), most) if asked else 1)


def _kernels(xp: ModuleType, z: EitherArray) -> ModuleType:
    return _sparsemax if xp is np else kernel_module("fenchel_young._sparsemax", z)


def sparsemax(
    z: ArrayLike, axis: int = -1, *, out: FloatArray | None = None, n_jobs: int | None = None
) -> FloatArray:
    r"""Euclidean projection of scores onto the probability simplex.

    .. math:: \mathrm{sparsemax}(z) = \arg\min_{p \ge 0,\, 1^T p = 1} \|p - z\|^2
              = \max(z - \tau(z), 0)

    (eq. (2) and Algorithm 1 of [1]_), in expected linear time, without a sort.

    Parameters
    ----------
    z : array-like
        Scores. float32 and float64 are kept, float16 becomes float32, other numbers float64. Scores of -inf
        get probability 0 (masks). Where scores are +inf, they share all probability equally. A vector with
        nothing but -inf has no distribution and gives zeros; one with a NaN gives NaN. A CuPy array is worked
        on its GPU, where the result and ``out`` are, too; so it is with the functions below.
    axis : int, default=-1
        Axis along which z is one vector of K scores.
    out : ndarray, default=None
        Array of z's shape and dtype to write to; it may be z itself.
    n_jobs : int, default=None
        Number of threads, as in joblib: None is 1, -1 is all. No result depends on it.

    Returns
    -------
    ndarray
        Probabilities of z's shape; exactly 0 outside the support. ``out``, if given.

    Raises
    ------
    TypeError, ValueError
        If z holds no real numbers or is a scalar, there is no such axis, or ``out`` does not fit.

    See Also
    --------
    sparsemax_loss : Its loss.
    sparsemax_jvp : Its derivative.
    sparsemax_threshold, sparsemax_support_size : What was taken off, and how many are left.
    sparsekit.torch.sparsemax : The same for tensors.

    References
    ----------
    .. [1] A. Madsen, F. W. Rørbech, M. D. F. Kristensen, "Tensorflow implementation of sparsemax".

    Examples
    --------
    >>> from sparsekit import sparsemax
    >>> sparsemax([1.0, 0.5, -1.0])
    array([0.75, 0.25, 0.  ])
    """
    xp = namespace_of(z=z, out=out)
    z = floating(z, "z")
    axis = check_axis(axis, z.ndim)
    rows = as_rows(z, axis)
    result = Result(z, axis, out, [rows], xp)
    if rows.size:
        threads = _threads(n_jobs, rows)
        _kernels(xp, z).sparsemax_rows(rows, None, None, result.rows, None, None, None, False, *threads)
    return result.done()


@shares_entries(sparsemax)
def sparsemax_threshold(z: ArrayLike, axis: int = -1, *, n_jobs: int | None = None) -> FloatArray:
    r"""Threshold :math:`\tau` of :func:`sparsemax`: :math:`\sum_j \max(z_j - \tau, 0) = 1`.

    Parameters
    ----------
    z : array-like
        Scores.
    axis : int, default=-1
        Axis along which z is one vector.
    {n_jobs}

    Returns
    -------
    ndarray
        Thresholds, of z's shape without ``axis``. -inf without a finite score, inf with a score of inf, NaN
        with a NaN.

    Raises
    ------
    TypeError, ValueError
        As :func:`sparsemax`.

    Examples
    --------
    >>> from sparsekit import sparsemax_threshold
    >>> sparsemax_threshold([[1.0, 0.5, -1.0], [3.0, 0.0, 0.0]])
    array([0.25, 2.  ])
    """
    return _statistic(z, axis, n_jobs)[0]


@shares_entries(sparsemax_threshold)
def sparsemax_support_size(z: ArrayLike, axis: int = -1, *, n_jobs: int | None = None) -> NDArray[np.int64]:
    """Number of non-zero entries of :func:`sparsemax`.

    Parameters
    ----------
    {z, axis, n_jobs}

    Returns
    -------
    ndarray of int64
        Counts, of z's shape without ``axis``; 0 for vectors that are empty, all -inf or hold a NaN.

    {Raises}

    Examples
    --------
    >>> from sparsekit import sparsemax_support_size
    >>> sparsemax_support_size([[1.0, 0.5, -1.0], [3.0, 0.0, 0.0]])
    array([2, 1])
    """
    return _statistic(z, axis, n_jobs)[1]


def _statistic(z, axis, n_jobs):
    xp = namespace_of(z=z)
    z = floating(z, "z")
    axis = check_axis(axis, z.ndim)
    rows = as_rows(z, axis)
    tau, size = xp.full(len(rows), -np.inf), xp.zeros(len(rows), dtype=np.int64)
    if rows.size:
        threads = _threads(n_jobs, rows)
        _kernels(xp, z).sparsemax_rows(rows, None, None, None, tau, size, None, False, *threads)
    shape = outer(z, axis)
    return tau.reshape(shape).astype(z.dtype)[()], size.reshape(shape)[()]


@shares_entries(sparsemax)
def sparsemax_jvp(
    p: ArrayLike, v: ArrayLike, axis: int = -1, *, out: FloatArray | None = None, n_jobs: int | None = None
) -> FloatArray:
    r"""Product of the Jacobian of :func:`sparsemax` with v, eq. (5) of [1]_ corrected.

    .. math:: J v = s \odot (v - \hat v 1), \quad \hat v = \frac{s^T v}{|S|},

    s the indicator of the support S. J is symmetric: this is the backward product as well.

    Parameters
    ----------
    p : array-like
        ``sparsemax(z)``; only where it is not zero matters.
    v : array-like of p's shape
        What J multiplies; it is read in the support only.
    axis : int, default=-1
        Axis of the vectors.
    out : ndarray, default=None
        Array of p's shape and of the wider dtype of p and v to write to; it may be v itself.
    {n_jobs}

    Returns
    -------
    ndarray
        J v, of p's shape.

    Raises
    ------
    TypeError, ValueError
        As :func:`sparsemax`, or if the shapes of p and v disagree.

    {References}

    Examples
    --------
    >>> from sparsekit import sparsemax, sparsemax_jvp
    >>> p = sparsemax([1.0, 0.5, -1.0])
    >>> sparsemax_jvp(p, [1.0, 0.0, 5.0])
    array([ 0.5, -0.5,  0. ])
    """
    xp = namespace_of(p=p, v=v, out=out)
    p, v = floating(p, "p"), floating(v, "v")
    if p.shape != v.shape:
        raise ValueError(f"p and v must have the same shape; got {p.shape} and {v.shape}")
    dtype = np.result_type(p.dtype, v.dtype)
    p, v = p.astype(dtype, copy=False), v.astype(dtype, copy=False)
    axis = check_axis(axis, p.ndim)
    support, rows = as_rows(p, axis), as_rows(v, axis)
    result = Result(v, axis, out, [support, rows], xp)
    if rows.size:
        _kernels(xp, p).sparsemax_jvp_rows(support, rows, result.rows, *_threads(n_jobs, rows))
    return result.done()


@shares_entries(sparsemax)
def sparsemax_loss(z: ArrayLike, q: ArrayLike, axis: int = -1, *, n_jobs: int | None = None) -> FloatArray:
    r"""Sparsemax loss of scores and target distributions, eqs. (8) to (10) of [1]_.

    .. math:: L(z; q) = \tfrac12 \|q - z\|^2 - \tfrac12 \|p - z\|^2
              = \tfrac12 \|p - q\|^2 + \sum_j q_j \max(\tau - z_j, 0), \quad p = \mathrm{sparsemax}(z),

    computed by the last form, in which no term is negative. It is zero exactly where p = q.

    Parameters
    ----------
    z : array-like
        Scores.
    q : array-like
        Targets: distributions, of z's shape, or integer classes, of z's shape without ``axis``.
    {axis, n_jobs}

    Returns
    -------
    ndarray
        Losses >= 0, of z's shape without ``axis``. inf where q has mass on a score of -inf.

    Raises
    ------
    ValueError
        If a target is negative, does not sum to 1, or is not a class.

    See Also
    --------
    sparsemax_loss_and_gradient : With the gradient.
    SparsemaxClassifier : A linear model that minimises it.

    {References}

    Examples
    --------
    >>> from sparsekit import sparsemax_loss
    >>> sparsemax_loss([[2.0, 0.0], [0.0, 0.0]], [0, 1])
    array([0.  , 0.25])
    """
    return _loss(z, q, axis, None, n_jobs, False)[0]


@shares_entries(sparsemax_loss)
def sparsemax_loss_and_gradient(
    z: ArrayLike, q: ArrayLike, axis: int = -1, *, out: FloatArray | None = None, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Sparsemax loss and its gradient in z, :math:`p - q` (eq. (6) of [1]_), in one pass.

    Parameters
    ----------
    {z, q, axis}
    out : ndarray, default=None
        Array of z's shape and dtype for the gradient, apart from z.
    {n_jobs}

    Returns
    -------
    loss : ndarray
        Losses, of z's shape without ``axis``.
    gradient : ndarray
        Gradients, of z's shape.

    Raises
    ------
    ValueError
        As :func:`sparsemax_loss`.

    See Also
    --------
    sparsemax_loss : The loss alone.

    {References}

    Examples
    --------
    >>> from sparsekit import sparsemax_loss_and_gradient
    >>> sparsemax_loss_and_gradient([0.5, 0.0, -2.0], 1)
    (np.float64(0.5625), array([ 0.75, -0.75,  0.  ]))
    """
    return _loss(z, q, axis, out, n_jobs, True)


def _loss(z, q, axis, out, n_jobs, gradient):
    xp = namespace_of(z=z, q=q, out=out)
    z = floating(z, "z")
    axis = check_axis(axis, z.ndim)
    target, codes = targets(q, z, axis, xp)
    rows = as_rows(z, axis)
    if len(rows) and not rows.shape[1]:
        raise ValueError("z has vectors of no score, for which there is no target distribution")
    loss = xp.empty(len(rows))
    result = Result(z, axis, out, xp=xp) if gradient else None
    if (
        gradient
        and out is not None
        and (np.may_share_memory(out, rows) or (target is not None and np.may_share_memory(out, target)))
    ):
        raise ValueError("out must not share memory with z or q")
    if rows.size:
        good = _kernels(xp, z).sparsemax_rows(
            rows, target, codes, result.rows if gradient else None, None, None, loss, gradient,
            *_threads(n_jobs, rows),
        )  # fmt: skip
        if not good:
            raise ValueError(
                "q, the targets, must be distributions over the classes: entries >= 0 that sum to 1"
            )
    loss = loss.reshape(outer(z, axis)).astype(z.dtype)[()]
    return loss, result.done() if gradient else None
