"""Optimisers: OBA for a smooth loss plus an L1 penalty, NQN for nonsmooth ones in a box; test problems."""

from __future__ import annotations

from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from ._bounded.losses.nonsmooth_problems import nonsmooth_problems
from ._bounded.solver.minimize_nqn import minimize_nqn
from ._l1.losses.losses import LeastSquaresLoss, LogisticLoss
from ._l1.losses.probit import ProbitLoss
from ._l1.solver.oba import OBAOptions
from ._l1.solver.oba import minimize_oba as _minimize_oba
from ._typing import Hessian, SmoothLoss, SolverCallback

__all__ = [
    "LeastSquaresLoss",
    "LogisticLoss",
    "OBAOptions",
    "ProbitLoss",
    "minimize_nqn",
    "minimize_oba",
    "nonsmooth_problems",
]


def minimize_oba(
    loss: SmoothLoss,
    l1: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: float = OBAOptions.tol,
    max_iter: int = OBAOptions.max_iter,
    max_time: float | None = None,
    hessian: Hessian = "exact",
    memory: int = OBAOptions.memory,
    callback: SolverCallback | None = None,
    history: bool = False,
    gap: bool = True,
    options: OBAOptions | None = None,
    l2: ArrayLike | None = None,
) -> OptimizeResult:
    r"""Minimise a smooth convex loss plus a weighted L1 norm, and a ridge, by the orthant-based method OBA.

    The objective is

    .. math:: \phi(x) = f(x) + \sum_j \lambda_j |x_j| + \tfrac12 \sum_j \mu_j x_j^2 .

    Parameters
    ----------
    loss : object
        The smooth convex f: one of this module's losses, or any object with

        * ``n_variables`` : int;
        * ``value(x)`` : float f(x);
        * ``gradient(x)`` : ndarray of shape (n_variables,);
        * ``hessian_product(x, subset, v)`` : rows ``subset`` of the Hessian at x times the
          vector that is ``v`` on ``subset`` and zero elsewhere, shape (len(subset),); not
          needed with ``hessian="lbfgs"``;
        * ``hessian_diagonal(x)`` : optional, ndarray of shape (n_variables,), preconditions CG.
    l1 : float or array-like of shape (n_variables,)
        Penalties :math:`\lambda_j \ge 0`; 0 leaves a variable free. ``loss.l1_vector(value)`` gives the
        vector that spares the intercept.
    x0 : array-like of shape (n_variables,), default=None
        Start; None means zeros. Not changed.
    tol : float, default=1e-5
        Certifies, where the loss has a duality gap, that the objective is at most ``10 * tol`` of itself
        above the lowest. The relative optimality measure must be at most tol too,

        .. math:: \max_j |\mathrm{mid}(g_j - \lambda_j, x_j, g_j + \lambda_j)| \;/\; \max_j |\nabla_j f(0)|,

        mid the median of three and g the gradient of f and the ridge. It is unit-free, the same for every
        loss, and does not depend on ``x0``. Where the penalty is far below the gradient at zero, it alone is
        small too early.
    max_iter : int, default=200
        Largest number of outer iterations (Hessians).
    max_time : float, default=None
        Largest time in seconds; None means no limit.
    hessian : {"exact", "lbfgs"}, default="exact"
        Second-order information of the model: the Hessian, or the L-BFGS matrix of past steps and gradients.
        L-BFGS takes more but cheaper iterations and no ``hessian_product``. It works on all variables at
        once.
    memory : int, default=10
        Pairs that L-BFGS keeps.
    callback : callable, default=None
        Called after each iteration with an OptimizeResult holding copies: ``x``, ``fun``,
        ``nit``, ``optimality``, ``nnz``, ``time``. Returning True or raising StopIteration
        stops the run.
    history : bool, default=False
        Whether the result holds the values of each iteration.
    gap : bool, default=True
        Whether to compute the duality gap at the end (at the cost of at most two data passes).
    options : OBAOptions, default=None
        All settings at once; overrides the single ones above.
    l2 : float or array-like of shape (n_variables,), default=None
        Weights :math:`\mu_j \ge 0` of half of each variable's square, an elastic net with ``l1``; None means
        zeros. ``loss.l1_vector(value)`` spares the intercept here too. The duality gap includes them.

    Returns
    -------
    scipy.optimize.OptimizeResult
        - ``x``, ``fun`` (phi), ``grad`` (of f and the ridge), ``success``, ``status`` and ``message``.
          Status 0: converged. 1: max_iter. 2: max_time. 3: callback. 4: no further progress in rounding.
          8: f falls without bound. 11: f or a derivative is not finite; x is the last point where they were.
        - ``optimality``: the relative optimality measure.
        - ``dual_gap``: fun - min phi is at most this. NaN if the loss has no dual here, inf if no feasible
          dual point was found.
        - ``nit``, ``nfev`` (values), ``njev`` (gradients), ``n_corrections`` (corrective solves of each
          iteration), ``n_cg`` (CG steps), ``n_direct`` (factorisations).
        - ``n_products`` (Hessian products), ``n_data_passes``, ``n_ista`` (steps replaced by one towards the
          ISTA point).
        - ``history``: None or a dict of arrays ``time`` in seconds, ``fun``, ``optimality``, ``nnz``,
          ``n_free``, ``n_corrections``.

    Raises
    ------
    TypeError
        If the loss lacks a part of the protocol.
        If some arrays are on a GPU and others in main memory.
    ValueError
        If a shape or a value is not allowed. If the loss returns no real numbers, or f or its gradient at the
        start is not finite.

    See Also
    --------
    minimize_nqn : For functions with kinks, and bounds.
    L1LogisticOBA, LassoOBA : Estimators that use it.
    sparsekit.metrics.kkt_violation : The optimality measure by itself.

    Notes
    -----
    Algorithms 1 and 2 of [1]_, chapter 2. The globalisation compares each step with the upper
    model at the ISTA point (eq. 2.14). For this module's losses the Lipschitz constant has a
    proven upper bound. For a user's loss it is twice an estimate by power iterations, and is
    raised when a step disproves it.

    A loss of CuPy arrays is minimised on their GPU. If ``l1``, ``l2`` and ``x0`` are arrays, they must be
    there too. ``x``, ``grad`` and the callback's copies of x are there; all else in the result is in main
    memory. A user's loss is minimised on the GPU of ``x0``, and gets and returns vectors there.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.optimize import LogisticLoss, minimize_oba
    >>> X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.2], [3.0, 0.1]])
    >>> loss = LogisticLoss(X, [-1, -1, 1, 1])
    >>> result = minimize_oba(loss, 0.5)
    >>> result.success, result.x.round(2), bool(result.dual_gap < 1e-4)
    (True, array([ 0.57, -0.84]), True)
    """
    return _minimize_oba(
        loss,
        l1,
        x0,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        hessian=hessian,
        memory=memory,
        callback=callback,
        history=history,
        gap=gap,
        options=options,
        gradient=True,
        l2=l2,
    )
