"""Settings, stop reasons, counters and history of one run of OBA."""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import OptimizeResult

from ..._arrays import kernel_module
from ..._linalg.dense_design import SINGLE_RIDGE
from ..._messages import shown
from ..._solver import outcome
from ..._solver.outcome import History, Limits
from .duality import duality_gap
from .minimise_model import FIRST_CG, MAX_PREDICTION_ERROR, Effort, ModelSolver

MESSAGES = outcome.messages(
    "the relative optimality measure is at most tol",
    unbounded="Stopped where f falls without bound: raise l1, or check that f is convex.",
    not_finite="Stopped where f, its gradient or its curvature is not finite in floating point. x is the "
    "last point where all are. Scale the variables, or f.",
)
HISTORY = ("time", "fun", "optimality", "nnz", "n_free", "n_corrections")
CONVERGED_BY_PREDICTION = "Converged: the model predicts a relative reduction of at most predicted_tol."


@dataclass(frozen=True)
class OBAOptions:
    """Settings of OBA.

    Algorithms and lines are those of [1]_, chapter 2.

    Parameters
    ----------
    tol : float, default=1e-5
        Relative optimality measure at which to stop.
    max_iter : int, default=200
        Largest number of outer iterations.
    max_time : float, default=inf
        Largest time in seconds.
    hessian : {"exact", "lbfgs"}, default="exact"
        The model's Hessian.
    memory : int, default=10
        Pairs that L-BFGS keeps.
    model_cycles : int, default=2
        Largest number of cycles of Algorithm 1 on one model; 1 is the thesis' method.
    predicted_tol : float, default=0
        Relative predicted reduction of the objective that ends a run without a certificate. What is left is
        mostly less than five times as much. 0: never.

    Raises
    ------
    ValueError
        If ``hessian`` is neither of the two, or a number is below its least value.

    See Also
    --------
    sparsekit.minimize_oba : The method.

    References
    ----------
    .. [1] N. S. Keskar, "Second-order methods for stochastic and nonsmooth optimization", PhD thesis,
       Northwestern University, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsekit.optimize import LogisticLoss, OBAOptions, minimize_oba
    >>> loss = LogisticLoss(np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.2]]), [-1, 1, 1])
    >>> textbook = OBAOptions(tol=1e-8, model_cycles=1)
    >>> minimize_oba(loss, 0.5, options=textbook).x.round(4)
    array([1.012, 0.   ])
    """

    tol: float = 1e-5
    max_iter: int = 200
    max_time: float = np.inf
    hessian: str = "exact"
    memory: int = 10
    model_cycles: int = 2
    predicted_tol: float = 0.0

    @property
    def gap_tol(self) -> float:
        """Relative duality gap at which to stop: ten times tol."""
        return 10.0 * self.tol

    def __post_init__(self):
        if self.hessian not in ("exact", "lbfgs"):
            raise ValueError(f"hessian must be 'exact' or 'lbfgs'; got {shown(self.hessian)}")
        least = {"tol": 0, "max_time": 0, "max_iter": 0, "memory": 1, "model_cycles": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if not value >= bound:
                raise ValueError(f"{name} must be at least {bound}; got {shown(value)}")


class Kernels:
    """Kernels and operators for the arrays of one run, looked up once.

    Parameters
    ----------
    like : array
        Any array of the problem: the kernels are those of its side, CPU or GPU.
    """

    certificate = staticmethod(duality_gap)

    def __init__(self, like):
        self.model = kernel_module("l1._model", like)
        self.orthant = kernel_module("shared._orthant", like)

    def ista_point(self, x, g, l1, bound):
        """Minimiser of the upper model (2.14) with the Lipschitz constant ``bound``, (n,)."""
        point = x - g / bound
        return np.sign(point) * np.maximum(np.abs(point) - l1 / bound, 0.0)


@dataclass
class Counts:
    """What a run did; the fields are those of the result."""

    nit: int = 0
    nfev: int = 0
    njev: int = 0
    n_cg: int = 0
    n_direct: int = 0
    n_products: int = 0
    n_ista: int = 0
    n_corrections: list = field(default_factory=list)


@dataclass
class OBARun:
    """One call: its options, kernels, limits and history, and what it did.

    Attributes
    ----------
    unit : float
        Unit of tol.
    tol : float
        Relative optimality to reach now; it falls where the gap is too large.
    gap : float or None
        Duality gap of the last iterate, None where it is not known.
    predicted : float
        Predicted reduction of the last step.
    is_predicted_small : bool
        Whether that is at most ``predicted_tol``.
    status : int or None
        How the run ends.
    """

    options: OBAOptions
    kernels: Kernels
    unit: float
    callback: object = None
    keep: bool = False
    certify: object = None
    gap: float | None = None
    predicted: float = np.inf
    is_predicted_small: bool = False
    status: int | None = None

    def __post_init__(self):
        opts = self.options
        self.tol, self.counts = opts.tol, Counts()
        self.model_solver = ModelSolver(self.kernels.model.solve_model, SINGLE_RIDGE)
        self.effort = Effort(opts.model_cycles, cg_max=FIRST_CG)
        self.limits = Limits(opts.max_iter, opts.max_time)
        self.history = History(HISTORY, self.keep)

    def check_prediction(self, ratio, phi):
        """Set whether a step predicted too small a reduction, and about the actual one."""
        least = self.options.predicted_tol * abs(phi)
        self.is_predicted_small = 0.0 < least >= self.predicted and abs(ratio - 1.0) <= MAX_PREDICTION_ERROR

    def out_of_budget(self):
        if self.status is None:  # what has ended the run already holds
            self.status = self.limits.reached(self.counts.nit)
        return self.status is not None

    def record(self, x, phi, optimality, n_free, corrections):
        nnz = int(np.count_nonzero(x))
        self.history.add(self.limits.seconds, phi, optimality, nnz, n_free, corrections)

    def report(self, state, step):
        """Add an iteration to the history, and call the callback, which may end the run."""
        optimality = self.kernels.orthant.measure(state.x, state.g, state.l1) / self.unit
        if self.history:
            self.record(state.x, state.phi, optimality, step.n_variables, step.n_corrections + 1)
        if self.callback is None:
            return
        current = OptimizeResult(
            x=state.x.copy(),
            fun=float(state.phi),
            nit=self.counts.nit,
            optimality=optimality,
            nnz=int(np.count_nonzero(state.x)),
            time=self.limits.seconds,
        )
        if outcome.wants_to_stop(self.callback, current):
            self.status = outcome.STOPPED
