"""What estimators of iterative solvers share: parameters, the call, the fitted attributes, the warnings."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from .._arrays import namespace
from .._solver import outcome
from .._typing import SolverCallback
from .decorators import PlainParametersMixin, declares_parameters
from .monitor import FitMonitor

try:  # scikit-learn's own callbacks (SLEP023) came with version 1.9
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where the installed scikit-learn has no callbacks."""


SOLVER_CONSTRAINTS: dict = {
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "callback": [callable, None],
}

FIT_CONSTRAINTS: dict = {"warm_start": ["boolean"], "history": ["boolean"], **SOLVER_CONSTRAINTS}

# what brings columns to similar scales; one whose mean is large relative to its spread must be centred
SCALERS = "sklearn.preprocessing.StandardScaler; MaxAbsScaler keeps X sparse and does not centre"

_WHY = {
    outcome.MAX_ITER: "it reached max_iter={max_iter}. Increase max_iter, loosen tol, or bring the "
    f"columns of X to similar scales ({SCALERS})",
    outcome.MAX_TIME: "it reached max_time={max_time} seconds. Increase max_time or loosen tol",
    outcome.NO_PROGRESS: "rounding errors allow no further progress. Bring the columns of X to similar "
    f"scales ({SCALERS}), pass float64 data, or loosen tol",
}


def warn_if_unconverged(result, options, *, who, stacklevel=3, how_far=""):
    """Issue a ConvergenceWarning that says why the solver stopped early, ``how_far`` it is, and what to do.

    A run that the user's own callback stopped is not warned about.
    """
    why = _WHY.get(result.status)
    if why is None:
        return
    warnings.warn(
        f"{who} did not converge: {why.format(**options)}.{how_far} "
        f"Optimality {result.optimality:.2e}, tol {options['tol']:.2e}, {result.nit} iterations.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


@declares_parameters
class SolverEstimatorMixin(PlainParametersMixin, CallbackSupportMixin):
    """Runs a solver with the estimator's parameters and keeps what it reports as fitted attributes.

    Parameters
    ----------
    max_time : float, default=None
        Largest time of the fit in seconds; None: no limit.
    warm_start : bool, default=False
        Start from the last fit's coefficients where their shape fits the new data; otherwise from zero.
    n_jobs : int, default=None
        Number of threads, as in joblib: None is 1, -1 is all.
    history : bool, default=False
        Whether to record ``history_``.
    verbose : int, default=0
        1 prints a line per iteration to the standard output.
    callback : callable, default=None
        Called as ``callback(intermediate_result)`` after each iteration with a
        :class:`scipy.optimize.OptimizeResult` of copies (x, fun, nit, optimality, nnz, time). It stops the
        fit, without a warning, by returning True or raising StopIteration. scikit-learn's own callbacks
        (``set_callbacks``) are supported where the installed version has them.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (``n_features_in_``,)
        Names of the features, where X had names that are all strings.
    """

    max_time: float | None = None
    warm_start: bool = False
    n_jobs: int | None = None
    history: bool = False
    verbose: int = 0
    callback: SolverCallback | None = None

    @property
    def _solver_options(self):
        return dict(tol=self.tol, max_iter=self.max_iter, max_time=self.max_time)

    def _run(
        self, minimize, x0, shape, *, data, attributes, scale=1.0, n_tasks=None, warn=warn_if_unconverged,
        whole=None, stacklevel=5,
    ):  # fmt: skip
        """Call ``minimize(x0, callback)`` and set the attributes that describe the run.

        ``shape`` is that of the solver's variables, ``n_tasks`` the largest number of iterations. ``data``,
        ``attributes``, ``scale`` and ``whole`` are those of `FitMonitor`; ``warn`` is like
        `warn_if_unconverged`, and gets ``stacklevel``, which is 4 if ``fit`` itself is the caller.
        """
        context = None
        if hasattr(self, "_init_callback_context"):
            # one task more than iterations: the last one opened is never run
            context = self._init_callback_context(max_subtasks=(n_tasks or self.max_iter) + 1)
            context.call_on_fit_task_begin(estimator=self, **data)
        monitor = FitMonitor(self, context, data, attributes, scale, whole)
        monitor.begin(namespace(X=data["X"]).zeros(shape) if x0 is None else x0)
        # solvers end where a number is not finite, and their status says so
        with np.errstate(over="ignore", invalid="ignore"):
            result = minimize(x0, monitor if monitor.is_needed else None)
        monitor.end()
        self.n_iter_ = np.array([result.nit], dtype=np.int32)
        self.optimality_ = float(result.optimality)
        self.objective_ = float(result.fun) / scale
        self.dual_gap_ = float(result.dual_gap) / scale
        if self.history:
            self.history_ = dict(result.history, fun=np.asarray(result.history["fun"]) / scale)
        elif hasattr(self, "history_"):
            del self.history_
        for name, value in attributes(result.x).items():
            setattr(self, name, value)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, reconstruction_attributes=dict, **data)
        warn(result, self._solver_options, who=type(self).__name__, stacklevel=stacklevel)
        return result
