"""Settings, stop reasons, counters and history of one run of OBA."""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import OptimizeResult

from ..._arrays import is_device, kernel_module
from ..._linalg.special import largest
from ..._messages import shown
from ..._solver import outcome
from ..._solver.outcome import History, Limits
from .duality import duality_gap
from .minimise_model import MIN_RIDGE, next_ridge

MESSAGES = outcome.messages(
    "the relative optimality measure is at most tol",
    unbounded="Stopped where f falls without bound: raise l1, or check that f is convex.",
    not_finite="Stopped where f, its gradient or its curvature is not finite in floating point, at the last "
    "point where it was: scale the variables, or f.",
)
CONTENT = "Converged: the model predicts a relative reduction of at most predicted_tol."

# Models in a row that agree with the objective, from which they are taken to go on agreeing; and the first
# limit of the steps of CG then.
_SETTLED, _FIRST_LIMIT = 2, 40
# Part of what the end asks for at which models aim.
_AIM = 0.5


@dataclass(frozen=True)
class OBAOptions:
    """Settings of OBA; the defaults are what the benchmark favours.

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
    eta : float, default=0.01
        First working variables as a fraction of all (line 2 of Algorithm 1).
    min_new : int, default=100
        Smallest number of variables that may leave zero at once, whatever eta says.
    row_share : float, default=0.25
        But no more than this part of the number of rows.
    growth : float, default=1.0
        Variables that may leave zero at once as a multiple of the free ones.
    stage : float, default=0.05
        Factor of the penalty from stage to stage; 0 starts with the penalty itself, as the thesis does.
    stage_iter : int, default=1
        Iterations in each stage.
    model_cycles, gram_cycles : int, default=2, 10
        Cycles of Algorithm 1 on one model, where a product is a pass over rows and where the model is a
        matrix; 1 is the thesis' method.
    forcing : float, default=0.05
        Fall of the model's residual that ends its cycles.
    cg_tol : float, default=0.4
        Relative residual of CG on a model; a matrix gets 0.1, as in the thesis.
    cg_max, cg_dense : int, default=8, 6
        Steps of CG on a model of sparse and of dense rows; a matrix gets 50.
    direct_size : int, default=100
        Free variables up to which a matrix is factorised at once.
    sweeps, row_sweeps : int, default=3
        Coordinate descent sweeps before a cycle on a matrix, and on sparse columns.
    holds : int, default=20
        Rounds in which free variables on the wrong side of zero are held there.
    ridge : float, default=1e-7
        Times diag(H) is added to H, which keeps singular models solvable.
    bend : float, default=4
        Distance on the wrong side of zero from which a row counts as in the straight part of its loss.
    kept_low, kept_high : float, default=0.7, 0.9
        Ratios of actual to predicted reduction below and above which they act.
    predicted_tol : float, default=0
        Decrease of the objective, relative to it, that ends a run without a proof where models hold and
        predict no more: what is left is mostly less than five times as much. 0: never.
    segment_tol : float, default=1e-4
        Smallest step on the segment to the ISTA point (epsilon of Algorithm 2).

    Raises
    ------
    ValueError
        If ``hessian`` is neither of the two.

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
    >>> textbook = OBAOptions(tol=1e-8, stage=0, model_cycles=1, gram_cycles=1)
    >>> minimize_oba(loss, 0.5, options=textbook).x.round(4)
    array([1.012, 0.   ])
    """

    tol: float = 1e-5
    max_iter: int = 200
    max_time: float = np.inf
    hessian: str = "exact"
    memory: int = 10
    eta: float = 0.01
    min_new: int = 100
    row_share: float = 0.25
    growth: float = 1.0
    stage: float = 0.05
    stage_iter: int = 1
    model_cycles: int = 2
    gram_cycles: int = 10
    forcing: float = 0.05
    cg_tol: float = 0.4
    cg_max: int = 8
    cg_dense: int = 6
    direct_size: int = 100
    sweeps: int = 3
    row_sweeps: int = 3
    holds: int = 20
    ridge: float = 1e-7
    bend: float = 4.0
    kept_low: float = 0.7
    kept_high: float = 0.9
    predicted_tol: float = 0.0
    segment_tol: float = 1e-4

    @property
    def gap_tol(self) -> float:
        """Relative duality gap at which to stop: ten times tol."""
        return 10.0 * self.tol

    def __post_init__(self):
        if self.hessian not in ("exact", "lbfgs"):
            raise ValueError(f"hessian must be 'exact' or 'lbfgs'; got {shown(self.hessian)}")
        if not 0 <= self.stage < 1:
            raise ValueError(f"stage must be at least 0 and less than 1; got {shown(self.stage)}")
        for name, least in (("tol", 0), ("max_time", 0), ("max_iter", 0), ("memory", 1)):
            value = getattr(self, name)
            if not value >= least:
                raise ValueError(f"{name} must be at least {least}; got {shown(value)}")


class Kernels:
    """Kernels and operators for the arrays of one run, looked up once.

    Parameters
    ----------
    like : array
        Any array of the problem: the kernels are those of its side, CPU or GPU.
    """

    certificate = staticmethod(duality_gap)

    def __init__(self, like):
        self.model = kernel_module("_model", like)
        self.orthant = kernel_module("_orthant", like)
        self.on_device = is_device(like)

    def pulls(self, g, l1):
        """How strongly each variable is drawn away from zero, (n,): it stays there up to ``l1``."""
        return np.abs(g)

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
class ModelState:
    """How the next model is made and how well it is minimised, adapted by the steps so far.

    Attributes
    ----------
    ridge : float
        Times diag(H) is added to H.
    bend : float
        Distance on the wrong side of zero from which a row counts as in the straight part of its loss.
    n_agreeing : int
        Models in a row whose predicted and actual reductions agree.
    cg_limit : int
        Steps of CG on a model once they agree; ``last_cg`` were those of the last one.
    crossed, balance : bool, float
        Whether the last step crossed zeros, and the ridge that weighs as much as the penalty there.
    predicted : float
        Predicted reduction of the last model.
    optimality, aim : float
        Absolute optimality of the iterate, and the one that the end seems to ask for.
    """

    ridge: float
    bend: float
    n_agreeing: int = 0
    cg_limit: int = _FIRST_LIMIT
    last_cg: int = 0
    crossed: bool = False
    balance: float = 0.0
    predicted: float = np.inf
    optimality: float = np.inf
    aim: float = 0.0

    @property
    def is_settled(self):
        """Whether predicted and actual reductions agree, so that models are worth solving well."""
        return self.n_agreeing >= _SETTLED

    @property
    def aim_ratio(self):
        """The aim as a part of the optimality, at most 1."""
        return self.aim / max(self.optimality, self.aim)

    def adapt(self, ratio, opts):
        """Adapt the next model to a step with this ratio of actual to predicted reduction."""
        ridge = self.ridge
        if ratio < opts.kept_low:
            # whatever the reason, the next models see everything
            self.bend, self.ridge = opts.bend, opts.ridge
            self.n_agreeing, self.cg_limit = 0, _FIRST_LIMIT
        else:
            agrees = opts.kept_high < ratio < 2.0 - opts.kept_high
            # where models agree, rows that stay far on the wrong side are there to stay
            self.bend = 2.0 * self.bend if agrees else opts.bend
            self.n_agreeing = self.n_agreeing + 1 if agrees else 0
            self.cg_limit = self.cg_limit if agrees else _FIRST_LIMIT
            # and nearly collinear columns are what the ridge then holds back
            self.ridge = max(0.1 * self.ridge, min(MIN_RIDGE, opts.ridge)) if agrees else opts.ridge
        if self.crossed or ridge > opts.ridge:
            self.ridge = next_ridge(ridge, opts.ridge, self.balance if self.crossed else None)


@dataclass
class OBARun:
    """One call: its options, kernels, limits and history, what it did, and the state of its models.

    Attributes
    ----------
    unit : float
        Unit of tol.
    tol : float
        Relative optimality to reach now; it falls where the gap is too large.
    gap : float or None
        Duality gap of the last iterate, None where it is not known.
    is_predicted_small : bool
        Whether the last predicted reduction is at most ``predicted_tol``.
    n_slow : int
        Iterations of little decrease in a row.
    status : int or None
        How the run ends.
    """

    options: OBAOptions
    kernels: Kernels
    unit: float
    callback: object = None
    keep: bool = False
    n_variables: int = 0
    certify: object = None
    gap: float | None = None
    is_predicted_small: bool = False
    n_slow: int = 0
    status: int | None = None

    def __post_init__(self):
        opts = self.options
        self.tol, self.counts, self.model = opts.tol, Counts(), ModelState(opts.ridge, opts.bend)
        self.limits = Limits(opts.max_iter, opts.max_time)
        names = ("time", "fun", "optimality", "nnz", "n_free", "n_corrections")
        self.history = History(names, self.keep)

    def set_aim(self, optimality, l1, phi):
        """Set the aim of the next model at an iterate with this absolute optimality."""
        model = self.model
        model.optimality = optimality
        # without an L1 penalty the gap falls as the square of the optimality
        most = largest(l1) or np.inf
        model.aim = _AIM * min(self.tol * self.unit, self.options.gap_tol * most)
        little = self.options.predicted_tol * abs(phi)
        if little > 0.0:
            # a predicted reduction falls as the square of the optimality
            model.aim = max(model.aim, optimality * min(1.0, little / max(model.predicted, little)) ** 0.5)

    def check_prediction(self, ratio, phi):
        """Whether a step at the last penalty predicted too small a reduction, and about the actual one."""
        agrees = self.options.kept_low <= ratio <= 2.0 - self.options.kept_low
        little = self.options.predicted_tol * abs(phi)
        self.is_predicted_small = agrees and self.model.predicted <= little

    def out_of_budget(self):
        if self.status is None:  # what has ended the run already holds
            self.status = self.limits.reached(self.counts.nit)
        return self.status is not None

    def record(self, x, phi, optimality, n_free, corrections):
        nnz = int(np.count_nonzero(x))
        self.history.add(self.limits.seconds, phi, optimality, nnz, n_free, corrections)

    def report(self, problem, x, phi, g, l1, n_free, corrections):
        optimality = self.kernels.orthant.measure(x, g, l1) / self.unit
        if self.history:
            self.record(x, phi, optimality, n_free, corrections)
        if self.callback is None:
            return
        current = OptimizeResult(
            x=x.copy(),
            fun=float(phi),
            nit=self.counts.nit,
            optimality=optimality,
            nnz=int(np.count_nonzero(x)),
            time=self.limits.seconds,
        )
        if outcome.wants_to_stop(self.callback, current):
            self.status = outcome.STOPPED
