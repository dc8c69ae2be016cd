"""What the estimators with bounded coefficients share: bounds, runs, and numbers inside the bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _get_feature_names

from ..._arrays import as_like, host_only, namespace, to_host
from ..._estimator.base import FIT_CONSTRAINTS, SolverEstimatorMixin
from ..._estimator.checks import by_feature
from ..._estimator.decorators import declares_parameters, fit_context
from ..._estimator.linear_model import PenaltyNameMixin, last_fit
from ..._estimator.offset import check_offset
from ..._estimator.used_columns import without_empty_columns
from ..._linalg.threads import count_threads
from ..._messages import shown
from ..._solver import outcome
from ..._typing import CoefficientBounds, MatrixLike, Offset
from ..losses.problem import BoundedProblem
from ..solver.minimize_bounded import minimize_bounded
from ..solver.run import BoundedOptions

CONSTRAINTS: dict = {
    "bounds": [tuple, list, dict],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "fit_intercept": ["boolean"],
    **FIT_CONSTRAINTS,
}


def check_coefficient_bounds(bounds, n_outputs, n_features, feature_names=None, *, matrices=False, like=None):
    """(lower, upper) of shape (n_outputs, n_features), float64, of what the user gave, where ``like`` is.

    Parameters
    ----------
    bounds : pair or dict
        ``(lower, upper)``, each None, a number, (n_features,) or (n_outputs, n_features); or
        ``{feature: (lower, upper)}`` with column numbers or names, other features having no bounds.
    n_outputs, n_features : int
    feature_names : ndarray of str or None
    matrices : bool, default=False
        Whether (n_outputs, n_features) is allowed.

    Raises
    ------
    ValueError
        If bounds cross, are NaN or leave no finite number. If a shape or a name does not fit. If there are
        two features and two lists of two numbers, since these could be pairs.
    """
    shape = (n_outputs, n_features)
    if isinstance(bounds, Mapping):
        bounds = _by_name(bounds, n_features, feature_names)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise ValueError(
            "bounds must be a pair (lower, upper) or a dict {feature: (lower, upper)}; "
            f"got {type(bounds).__name__} {shown(bounds)}."
        )
    if n_features == 2 and all(isinstance(side, (tuple, list)) and len(side) == 2 for side in bounds):
        raise ValueError(
            "bounds of two features can be read as (lower, upper) or as a pair for each feature; got "
            f"{shown(bounds)}. Pass {{0: (lower, upper), 1: (lower, upper)}} for a pair each, or arrays: "
            "(np.array(lower), np.array(upper))."
        )
    xp, sides = namespace(X=like), []
    for name, side, absent in (("lower", bounds[0], -np.inf), ("upper", bounds[1], np.inf)):
        given = _side(f"the {name} bound", side, absent)
        if given.shape not in ((), (n_features,)) and not (matrices and given.shape == shape):
            allowed = f"({n_features},), a number for each feature" + (
                f", or {shape}, that of coef_" if matrices else ""
            )
            raise ValueError(
                f"bounds: the {name} bound has shape {given.shape}; it must be one number for all features, "
                f"or of shape {allowed}."
            )
        if xp is np:
            host_only(**{f"the {name} bound": side})
        sides.append(np.ascontiguousarray(np.broadcast_to(given, shape)))
        if np.isnan(sides[-1]).any():
            j = int(np.argwhere(np.isnan(sides[-1]))[0][1])
            raise ValueError(f"bounds: the {name} bound of feature {j} is NaN.")
    lower, upper = sides
    wrong = np.argwhere((lower > upper) | (lower == np.inf) | (upper == -np.inf))
    if len(wrong):
        k, j = wrong[0]
        why = "cross" if lower[k, j] > upper[k, j] else "leave no finite number"
        where = (f"output {k}, " if n_outputs > 1 else "") + f"feature {j}"
        raise ValueError(f"bounds: those of {where} {why}: [{lower[k, j]:g}, {upper[k, j]:g}].")
    return xp.asarray(lower), xp.asarray(upper)


def _by_name(bounds, n_features, feature_names):
    lower, upper = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    for j, key, pair in by_feature(bounds, n_features, feature_names, "bounds"):
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise ValueError(f"bounds[{shown(key)}] must be a pair (lower, upper); got {shown(pair)}.")
        for side, value, absent in ((lower, pair[0], -np.inf), (upper, pair[1], np.inf)):
            given = _side(f"those of {shown(key)}", value, absent)
            if given.ndim:
                raise ValueError(f"bounds[{shown(key)}] must be a pair of numbers; got {shown(pair)}.")
            side[j] = given
    return lower, upper


def normalized(weight, X):
    """Weights of sum 1, (n,), of None for equal ones or of numbers up to the largest, where X is."""
    if weight is None:
        return namespace(X=X).full(X.shape[0], 1.0 / X.shape[0])
    weight = weight / weight.max()
    return weight / weight.sum()


def used_columns(X, lower, upper):
    """`without_empty_columns`, but for those whose coefficients may not be zero, and the bounds of these."""
    X, columns = without_empty_columns(X, ((lower > 0) | (upper < 0)).any(axis=0))
    return X, columns, columns.restrict(lower), columns.restrict(upper)


def inside(coef, lower, upper, dtype):
    """``coef`` in ``dtype``, rounded to the inside of the bounds; as it is where no such number exists."""
    with np.errstate(over="ignore"):
        out = coef.astype(dtype)
    out = np.where(out < lower, np.nextafter(out, dtype.type(np.inf)), out)
    out = np.where(out > upper, np.nextafter(out, dtype.type(-np.inf)), out)
    return coef if (np.isinf(out) | (out < lower) | (out > upper)).any() else out


@declares_parameters
class BoundedEstimatorMixin(PenaltyNameMixin, SolverEstimatorMixin, ABC):
    """Runs `minimize_bounded` for one output after the other."""

    bounds: CoefficientBounds = (-np.inf, np.inf)
    l1_ratio: float = 0.0
    fit_intercept: bool = True
    tol: float = BoundedOptions.tol
    max_iter: int = BoundedOptions.max_iter

    _read: ClassVar[Any]  # what checks data: `with_numbers` or `with_labels`

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: Offset = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. A CuPy array or sparse matrix is fitted on its GPU, where the fitted arrays stay; y
            and sample_weight must be CuPy's too.
        y : array-like of shape (n_samples,)
            Targets: labels of any kind for a classifier (on a GPU numbers), else numbers.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights s_i >= 0 of the rows, not all zero.
        offset : float or array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Known part o_i of each row's X w + b, as a column of X whose coefficient is 1. It has one number
            a row; for a classifier of more than two classes one for each class. Predictions need theirs then.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an argument is out of its range, bounds cross, X or y hold NaN or infinity, or shapes disagree.
            For a classifier also if fewer than two classes have a positive weight.
        TypeError
            If some arrays are on a GPU and others in main memory.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the fit stopped before ``tol`` was reached.
        """
        names = _get_feature_names(X)
        given = self._read(self, X, y, sample_weight, offset=offset)
        classes = getattr(given, "classes", None)
        n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
        bounds = check_coefficient_bounds(
            self.bounds, n_outputs, given.X.shape[1], names, matrices=classes is not None, like=given.X
        )
        X, columns, lower, upper = used_columns(given.X, *bounds)
        weight = normalized(given.weight, X)
        given.offset = check_offset(given.offset, X, n_outputs)
        losses, base, intercept = self._problem(given, X, weight)
        start = self._start(X, n_outputs, columns, base)
        if start is None:
            start = namespace(X=X).zeros((n_outputs, X.shape[1] + 1))
            start[:, -1] = intercept
        start[:, :-1] = np.clip(start[:, :-1], lower, upper)

        def attributes(x):
            coef = columns.expand(inside(x[:, :-1], lower, upper, X.dtype))
            found = self._attributes(coef, x[:, -1] + base, X)
            found["needs_offset_"] = given.offset is not None
            return found if classes is None else {**found, "classes_": classes}

        data = given.for_callbacks()
        self._fit_outputs(X, losses, start, lower, upper, columns, data=data, attributes=attributes)
        self._store_result()
        return self

    @abstractmethod
    def _problem(self, given, X, weight):
        """A loss for each output; what is added to the intercepts of these; and an initial intercept."""

    @abstractmethod
    def _attributes(self, coef, intercept, X):
        """Attributes of coefficients (n_outputs, n_features) and intercepts (n_outputs,)."""

    def _store_result(self):
        """Set what a single output has."""

    def _start(self, X, n_outputs, columns, offset=0.0):
        """The last fit, (n_outputs, n_columns + 1), the intercept last; None if unwanted or of no use."""
        found = last_fit(self, X, columns, n_outputs)
        if found is None:
            return None
        coef, intercept = found
        return np.column_stack([coef, intercept - offset if self.fit_intercept else 0.0 * intercept])

    def _round(self, problem, result, lower, upper, dtype):
        """Replace the exact solution by the rounded one, with its own objective and gap."""
        b = float(result.x[-1])
        w, b, value = problem.rounded(result.x[:-1], b, lambda w: inside(w, lower, upper, dtype))
        result.dual_gap = max(result.dual_gap + value - result.fun, 0.0)
        result.x, result.fun = np.append(w, b), value

    def _fit_outputs(self, X, losses, starts, lower, upper, columns, *, data, attributes):
        """Minimise for each loss from (w, b) of ``starts``; sets ``objective_``, ``dual_gap_`` and
        ``n_iter_``.

        ``attributes`` maps an array (n_outputs, n_features + 1) to fitted attributes; the last column is b.
        """
        opts = BoundedOptions(
            tol=self.tol, max_iter=self.max_iter, max_time=np.inf if self.max_time is None else self.max_time
        )
        results = []
        known = getattr(self, "_multipliers", None) if self.warm_start else None
        if known is None or [len(one) for one in known] != [X.shape[0]] * len(losses):
            known = [None] * len(losses)

        def minimize(x0, callback):
            x, done = x0.copy(), 0
            for k, loss in enumerate(losses):
                problem = BoundedProblem(
                    X, loss, lower[k], upper[k], self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio),
                    fit_intercept=self.fit_intercept, n_threads=count_threads(self.n_jobs),
                )  # fmt: skip

                def report(result, k=k, done=done):
                    x[k] = result.x
                    result.x, result.nit = x.copy(), result.nit + done
                    return callback(result)

                result = minimize_bounded(
                    problem, x0[k, :-1], x0[k, -1], opts,
                    callback=None if callback is None else report, history=self.history,
                    multipliers=None if known[k] is None else as_like(known[k], X),
                )  # fmt: skip
                # an optimality of NaN: the objective is finite, but ten times the size of y overflows
                if not np.isfinite(result.fun) or np.isnan(result.optimality):
                    raise ValueError(
                        f"y is too large: the objective of {type(self).__name__} overflows. Divide y by its "
                        "largest entry; the coefficients are then divided by it too."
                    )
                if X.dtype != np.float64:
                    self._round(problem, result, lower[k], upper[k], X.dtype)
                x[k] = result.x
                done += result.nit
                results.append(result)
                if result.status == outcome.STOPPED:
                    break
            return _together(results, x)

        self._run(
            minimize,
            starts,
            starts.shape,
            data=data,
            attributes=attributes,
            n_tasks=len(losses) * self.max_iter,
            whole=lambda x: np.column_stack([columns.expand(x[:, :-1]), x[:, -1]]),
        )
        missing = len(losses) - len(results)  # outputs that the callback left out
        self.objective_, self.dual_gap_ = (
            np.array([result[name] for result in results] + [np.nan] * missing)
            for name in ("fun", "dual_gap")
        )
        self.n_iter_ = np.array([result.nit for result in results] + [0] * missing, dtype=np.int32)
        found = [result.multipliers for result in results]
        if self.warm_start and not missing and not any(one is None for one in found):
            self._multipliers = found
        elif hasattr(self, "_multipliers"):
            del self._multipliers


def _side(name, side, absent):
    """One side of the bounds as float64; strings are no numbers."""
    try:
        given = np.asarray(absent if side is None else to_host(side))
        if given.dtype.kind not in "iufb":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"bounds: {name} must hold numbers; got {shown(side)}.") from error


def _together(results, x):
    """One result of several: the sums, the first status that is not success, the worst measure."""
    bad = next((result for result in results if result.status), results[0])
    together = OptimizeResult(
        x=x, fun=sum(result.fun for result in results), dual_gap=sum(result.dual_gap for result in results),
        nit=sum(result.nit for result in results), status=bad.status, message=bad.message,
        optimality=max(result.optimality for result in results), history=None,
    )  # fmt: skip
    if results[0].history is not None:
        together.history = {
            name: np.concatenate([result.history[name] for result in results]) for name in results[0].history
        }
        together.history["output"] = np.repeat(
            np.arange(len(results)), [len(result.history["fun"]) for result in results]
        )
    return together
