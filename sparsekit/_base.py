"""What every OBA estimator shares: the solver's parameters, its call, its callbacks, its warnings."""

import inspect
import sys
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from ._decorators import PlainParametersMixin
from ._device import namespace
from ._solver import outcome
from ._solvers.oba import minimize_oba

try:  # scikit-learn's own callbacks (SLEP023) came with version 1.9
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where the installed scikit-learn has no callbacks."""


# the solver states its defaults; the estimators repeat none of them
_SOLVER_PARAMETERS = inspect.signature(minimize_oba).parameters
TOL = _SOLVER_PARAMETERS["tol"].default
MAX_ITER = _SOLVER_PARAMETERS["max_iter"].default
MEMORY = _SOLVER_PARAMETERS["memory"].default

SOLVER_CONSTRAINTS: dict = {
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "n_jobs": [Integral, None],
    "hessian": [StrOptions({"exact", "lbfgs"})],
    "memory": [Interval(Integral, 1, None, closed="left")],
    "verbose": ["verbose"],
    "callback": [callable, None],
}

_WHY = {
    outcome.MAX_ITER: "it reached max_iter={max_iter}. Increase max_iter, loosen tol, or bring the "
    "columns of X to similar scales (sklearn.preprocessing.MaxAbsScaler keeps X sparse)",
    outcome.MAX_TIME: "it reached max_time={max_time} seconds. Increase max_time or loosen tol",
    outcome.NO_PROGRESS: "rounding errors allow no further progress. Bring the columns of X to similar "
    "scales (sklearn.preprocessing.MaxAbsScaler keeps X sparse), pass float64 data, or loosen tol",
}

# ratio of the largest and the smallest norm of the columns in use from which scales are to blame
_SCALES = 1e4


def warn_if_unconverged(result, options, *, who, stacklevel=3):
    """Issue a ConvergenceWarning that says why the solver stopped early and what to do.

    A run that the user's own callback stopped is not warned about.
    """
    why = _WHY.get(result.status)
    if why is None:
        return
    warnings.warn(
        f"{who} did not converge: {why.format(**options)}. "
        f"Optimality {result.optimality:.2e}, tol {options['tol']:.2e}, {result.nit} iterations.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


def warn_if_gap_is_large(result, X, options, *, who, stacklevel=3):
    """Issue a ConvergenceWarning if tol was reached and the duality gap stayed large.

    A fit goes on until both are small, so this is where rounding, or columns that are nearly copies of
    others, leave nothing to gain. ``X`` is the data, whose columns' norms tell which it is.
    """
    gap = result.dual_gap
    # ten times what a fit aims at
    if result.status != outcome.CONVERGED or not np.isfinite(gap) or gap <= 100 * options["tol"] * result.fun:
        return
    if _spread_of_norms(X, result.x) > _SCALES:
        why = (
            "the columns of X differ too much in scale. Bring them to similar scales "
            "(sklearn.preprocessing.MaxAbsScaler keeps X sparse) or tighten tol"
        )
    else:
        why = (
            "columns of X that are nearly combinations of others leave it nearly flat. A stronger penalty or "
            "fewer columns make the bound tight; the objective itself has stopped falling"
        )
    warnings.warn(
        f"{who} reached tol={options['tol']:.2e}, but the duality gap shows that the objective may still be "
        f"{100 * gap / result.fun:.2g} % too high: {why}.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


def _spread_of_norms(X, x):
    """Largest over smallest norm of the columns of X (n, p) that a solution with p values a class uses."""
    n_features = X.shape[1]
    n_classes = max(len(x) // n_features, 1) if n_features else 1
    used = np.any(x[: n_features * n_classes].reshape(n_features, n_classes) != 0, axis=1)
    squares = (
        X.multiply(X).sum(axis=0) if hasattr(X, "nnz") else np.einsum("ij,ij->j", X, X, dtype=np.float64)
    )
    squares = np.asarray(squares, like=x).ravel()[used]
    squares = squares[squares > 0]
    return float(np.sqrt(squares.max() / squares.min())) if squares.size else 1.0


class FitMonitor:
    """The one callback that the solver gets: progress line, user's hook, scikit-learn's callbacks.

    Parameters
    ----------
    estimator : estimator
        Its ``verbose`` and ``callback`` are used, and the callbacks set with ``set_callbacks``.
    context : sklearn.callback.CallbackContext or None
        Context of the whole fit; each iteration becomes a subtask of it.
    data : dict
        The arguments X, y and metadata of scikit-learn's callback hooks.
    attributes : callable
        Maps the solver's variables to the fitted attributes that prediction needs.
    scale : float
        Divides the solver's objective, to give the estimator's.
    """

    def __init__(self, estimator, context, data, attributes, scale):
        self.estimator = estimator
        self.context = context
        self.data = data
        self.attributes = attributes
        self.scale = scale
        self._iteration = None

    @property
    def is_needed(self):
        estimator = self.estimator
        return bool(estimator.verbose or estimator.callback is not None or self._has_hooks)

    @property
    def _has_hooks(self):
        return self.context is not None and bool(getattr(self.estimator, "_skl_callbacks", None))

    def begin(self, x0):
        """Open the first iteration's task."""
        if self._has_hooks:
            self._begin_iteration(x0)

    def __call__(self, intermediate_result):
        result = intermediate_result
        if self.estimator.verbose:
            self._print(result)
        stop = False
        if self.estimator.callback is not None:
            # here, so that the open task is closed first
            stop = outcome.wants_to_stop(self.estimator.callback, result)
        if self._iteration is not None and result.nit > 0:
            stop |= bool(
                self._iteration.call_on_fit_task_end(
                    estimator=self.estimator,
                    reconstruction_attributes=lambda: self.attributes(result.x),
                    **self.data,
                )
            )
            self._begin_iteration(result.x)
        return stop

    def end(self):
        """Close the task of the iteration that was opened and never run."""
        if self._iteration is not None:
            self._iteration.call_on_fit_task_end(estimator=self.estimator)
            self._iteration = None

    def _begin_iteration(self, x):
        self._iteration = self.context.subcontext(task_name="iteration")
        self._iteration.call_on_fit_task_begin(
            estimator=self.estimator, reconstruction_attributes=lambda: self.attributes(x), **self.data
        )

    def _print(self, result):
        name, objective = type(self.estimator).__name__, result.fun / self.scale
        sys.stdout.write(
            f"{name}  iteration {result.nit:3d}  objective {objective:.8e}  "
            f"optimality {result.optimality:.2e}  non-zeros {result.nnz}  {result.time:.3f} s\n"
        )
        sys.stdout.flush()


class SolverEstimatorMixin(PlainParametersMixin, CallbackSupportMixin):
    """Runs a solver with the estimator's parameters and keeps what it reports as fitted attributes."""

    n_iter_: Any  # of one problem, or of each of several

    def _run(
        self, minimize, x0, shape, *, data, attributes, scale=1.0, n_tasks=None, warn=warn_if_unconverged
    ):
        """Call ``minimize(x0, callback)`` and set the attributes that describe the run.

        ``shape`` is that of the solver's variables, ``n_tasks`` the most iterations there can be; ``data``,
        ``attributes`` and ``scale`` are those of `FitMonitor`; ``warn`` is like `warn_if_unconverged`.
        """
        context = None
        if hasattr(self, "_init_callback_context"):
            # one task more than iterations: the last one opened is never run
            context = self._init_callback_context(max_subtasks=(n_tasks or self.max_iter) + 1)
            context.call_on_fit_task_begin(estimator=self, **data)
        monitor = FitMonitor(self, context, data, attributes, scale)
        monitor.begin(namespace(X=data["X"]).zeros(shape) if x0 is None else x0)
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
        warn(result, self._solver_options, who=type(self).__name__, stacklevel=5)
        return result


class OBAEstimatorMixin(SolverEstimatorMixin):
    """Runs OBA."""

    @property
    def _solver_options(self):
        return dict(
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            hessian=self.hessian,
            memory=self.memory,
        )

    def _minimize(self, loss, l1, x0, *, data, attributes, scale=1.0):
        """Minimise ``loss + l1 . |x|`` from ``x0``; the other arguments are those of `_run`."""

        def minimize(start, callback):
            return minimize_oba(
                loss, l1, start, callback=callback, history=self.history, **self._solver_options
            )

        result = self._run(minimize, x0, loss.n_variables, data=data, attributes=attributes, scale=scale)
        warn_if_gap_is_large(result, data["X"], self._solver_options, who=type(self).__name__, stacklevel=4)
        return result
