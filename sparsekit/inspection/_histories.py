"""Histories as the solvers and estimators leave them, brought to one form: a dict of arrays of one length."""

from typing import Literal

import numpy as np

from .._extreme.estimators.classifier import ExtremeSoftmaxSGD

Position = Literal["time", "iteration", "evaluations"]


def history_of_estimator(estimator):
    """``history_`` or the epochs' ``objective_curve_``, or of a fit without an iteration where it ended.

    Raises
    ------
    ValueError
        If it was not recorded, saying what to set.
    TypeError
        If estimators of its kind record none.
    """
    name = type(estimator).__name__
    if hasattr(estimator, "history_"):
        history = estimator.history_
        if not _is_empty(history):
            return _numbered(history, int(np.sum(estimator.n_iter_)))
        return _point(np.sum(estimator.objective_), estimator.optimality_)
    if hasattr(estimator, "objective_curve_"):
        curve = np.asarray(estimator.objective_curve_)
        return {"fun": curve, "iteration": np.arange(1, len(curve) + 1)}
    if hasattr(estimator, "history"):
        raise ValueError(f"{name} has no history_: fit it with history=True before plotting.")
    if isinstance(estimator, ExtremeSoftmaxSGD):
        raise ValueError(f"{name} has no objective_curve_: call fit, which records one, before plotting.")
    raise TypeError(f"{name} records no history; estimators with a parameter history do.")


def history_of_result(result, name):
    """``result.history`` as a dict of arrays; a list of dicts, one an iteration, is turned round.

    Raises
    ------
    ValueError
        If there is none.
    """
    history = getattr(result, "history", None)
    if history is None:
        raise ValueError(f"{name} has no history: call the solver with history=True.")
    if isinstance(history, dict):
        return _point(result.fun, result.optimality) if _is_empty(history) else _numbered(history, result.nit)
    if _is_empty(history):
        point = _point(result.fun, result.optimality)
        point["projected_gradient"], point["evaluations"] = point.pop("optimality"), np.array([result.nfev])
        return point
    names = {"f": "fun", "nfev": "evaluations", "optimality": "projected_gradient"}
    columns = {names.get(key, key): np.array([line[key] for line in history]) for key in history[0]}
    return _numbered(columns, result.nit)


def split_outputs(name, history):
    """[(label, output, history)] of the outputs of an estimator that fits them one after the other."""
    history = {key: np.asarray(column) for key, column in history.items()}
    if "output" not in history:
        history.setdefault("iteration", np.arange(len(next(iter(history.values())))))
        return [(name, 0, history)]
    outputs = np.unique(history["output"])
    runs = []
    for output in outputs:
        mine = history["output"] == output
        part = {key: column[mine] for key, column in history.items()}
        # the start is not among them
        part["iteration"] = np.arange(1, mine.sum() + 1)
        runs.append((name if len(outputs) == 1 else f"{name}, output {output}", int(output), part))
    return runs


def _numbered(history, n_iter):
    """With the numbers of the iterations; the start is not in every history."""
    if "output" in history:  # of several problems
        return history
    length = len(history["fun"])
    return {**history, "iteration": np.arange(length) + int(length <= n_iter)}


def _is_empty(history):
    """Whether a run, at its end at once, has recorded no iteration."""
    return len(history) == 0 or (isinstance(history, dict) and len(history["fun"]) == 0)


def _point(fun, optimality):
    return {
        "time": np.zeros(1),
        "iteration": np.zeros(1, dtype=int),
        "fun": np.array([float(fun)]),
        "optimality": np.array([float(optimality)]),
    }
