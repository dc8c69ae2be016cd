"""Progress of a running fit: the one callback that a solver gets from an estimator, and that of folds."""

import sys
import time

from scipy.optimize import OptimizeResult

from .._solver import outcome


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
    whole : callable, default=None
        Maps the solver's variables to those of all columns of X, for the user's hook.
    """

    def __init__(self, estimator, context, data, attributes, scale, whole=None):
        self.estimator = estimator
        self.context = context
        self.data = data
        self.attributes = attributes
        self.scale = scale
        self.whole = whole
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
            shown = result if self.whole is None else OptimizeResult(result, x=self.whole(result.x))
            stop = outcome.wants_to_stop(self.estimator.callback, shown)
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
        _print_line(
            f"{name}  iteration {result.nit:3d}  objective {objective:.8e}  "
            f"optimality {result.optimality:.2e}  non-zeros {result.nnz}  {result.time:.3f} s"
        )


class PartsMonitor:
    """Progress of a fit whose parts (folds or halves) run at once: lines and scikit-learn's callbacks.

    With the estimator's ``verbose``, where it has that parameter, a line is printed as each part ends.

    Parameters
    ----------
    estimator : estimator
    name : str
        What each part is called.
    n_parts : int
    data : dict
        The arguments X, y and metadata of the hooks.
    """

    def __init__(self, estimator, name, n_parts, **data):
        self.estimator, self.data, self.context, self.parts = estimator, data, None, []
        self.name, self.n_parts, self.begin = name, n_parts, time.perf_counter()
        if not hasattr(estimator, "_init_callback_context"):
            return
        self.context = estimator._init_callback_context(max_subtasks=n_parts, sequential_subtasks=False)
        self.context.call_on_fit_task_begin(estimator=estimator, **data)
        for k in range(n_parts):
            self.parts.append(self.context.subcontext(task_name=name, task_id=k))
            self.parts[k].call_on_fit_task_begin(estimator=estimator)

    def part_ends(self, k):
        if getattr(self.estimator, "verbose", 0):
            who, seconds = type(self.estimator).__name__, time.perf_counter() - self.begin
            _print_line(f"{who}  {self.name} {k + 1} of {self.n_parts}  {seconds:.3f} s")
        if self.parts:
            self.parts[k].call_on_fit_task_end(estimator=self.estimator)

    def end(self):
        if self.context is not None:
            self.context.call_on_fit_task_end(
                estimator=self.estimator, reconstruction_attributes=dict, **self.data
            )


def _print_line(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
