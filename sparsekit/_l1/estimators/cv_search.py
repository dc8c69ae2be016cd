"""The search of cross-validation over warm-started paths, the same for classes and for numbers.

A problem of all rows (`problems`) has those of the folds; the estimators say what their penalty is called.
"""

from __future__ import annotations

import copy
import itertools
import time
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params

from ..._arrays import beside, is_device, is_in_main_memory, namespace, to_host
from ..._estimator.base import CallbackSupportMixin
from ..._estimator.block_data import BlockedMatrix
from ..._estimator.cross_validation import CrossValidationMixin, checked_folds, is_small, run_folds
from ..._estimator.monitor import PartsMonitor
from ..._messages import numbers, shown
from ..paths.coefficients import l1_weights
from ..paths.path_solver import LEAST_RATIO, penalty_grid, warn_if_path_unconverged
from ..paths.scored_path import MOST_WIDENING, ScoredPath, start_between
from ..paths.settings import MAX_BYTES, OBA_CONSTRAINTS

# Multiple of tol for the optimality measure of fits that are only scored.
_SCORED = 10.0
# numbers of X from which folds in threads gain time, measured with two of them
_THREADED = 3e5

CV_CONSTRAINTS: dict = {
    "eps": [Interval(Real, 0, 1, closed="neither")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both"), "array-like"],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "selection": [StrOptions({"best", "1se"})],
    "refit": ["boolean"],
    "fit_intercept": ["boolean"],
    "penalty_weights": ["array-like", dict, None],
    **{name: rule for name, rule in OBA_CONSTRAINTS.items() if name != "callback"},
}


class PathSearchMixin(CrossValidationMixin, CallbackSupportMixin):
    """Scores the paths of the folds, chooses a penalty and l1_ratio by them, and fits all rows there."""

    _penalty: ClassVar[str]  # the penalty's name as a parameter: C, alpha
    # Fits that are only scored end where models predict a decrease of this multiple of tol. Accuracies do not
    # show more.
    _scored_decrease: ClassVar[float] = 30.0
    _widens: ClassVar[bool] = False  # whether an automatic grid goes on where its weakest penalty is the best

    # of the estimators
    selection: str
    refit: bool
    fit_intercept: bool
    eps: float
    max_time: float | None
    n_jobs: int | None
    verbose: int
    n_iter_: Any
    objective_: float
    dual_gap_: float

    @staticmethod
    def _as_penalty(lambdas):
        """The penalties, as users have them, of falling lambdas; the strongest first."""
        return lambdas

    def _solver_options(self):
        return dict(tol=self.tol, max_iter=self.max_iter, hessian=self.hessian, memory=self.memory)

    def _scored_options(self, options):
        """The options of what is only scored, or a start: it need not be as exact as what is returned."""
        if not self.refit:
            return options
        predicted = self._scored_decrease * self.tol
        if self.hessian != "exact":
            # a model by L-BFGS predicts small reductions where it has few pairs; the gap is ten times this
            return {**options, "tol": 0.1 * predicted}
        return {**options, "tol": _SCORED * self.tol, "predicted_tol": predicted}

    @property
    def _tried(self):
        """The penalties of ``l1_ratio_``, the strongest first."""
        return getattr(self, f"{self._penalty}s_")

    def _keep(self, penalties, chosen, scores):
        """Keep what was tried: penalties (n_penalties,) of each ratio, and all scores."""
        setattr(self, f"{self._penalty}s_", penalties[chosen])

    def _keep_path(self, path, largest, columns):
        """Keep, and say, what there is to say of the `ScoredPath` of the chosen ratio.

        ``largest`` is the penalty where all is zero, or None of an automatic grid, which begins there;
        ``columns`` are the `UsedColumns`.
        """

    def _search(
        self, whole, y, folds, model, ratios, given, n_penalties, scorer, score_params, metadata,
    ):  # fmt: skip
        """Fit by the problem ``whole`` of all rows, whose targets for scorers are ``y``.

        ``model`` is what scorers are given, with the coefficients of each penalty in turn. ``given`` are
        falling lambdas, or None for a grid of ``n_penalties``. ``metadata`` is for callbacks.
        """
        X, options, n_folds = whole.X, self._solver_options(), len(folds)
        monitor = PartsMonitor(self, "fold", n_folds, X=whole.columns.widen(X), y=y, metadata=metadata)
        whole.prepare(folds)
        loss, l1, x_null, lambda_max = whole.start(options)
        if given is None:
            tops = [lambda_max / max(ratio, LEAST_RATIO) for ratio in ratios]
            grids = [
                penalty_grid(top, n_penalties, self.eps, ratio) / whole.scale
                for top, ratio in zip(tops, ratios)
            ]
        else:
            grids = [given] * len(ratios)
        penalties = [self._as_penalty(grid) for grid in grids]

        scored = self._scored_options(options)
        light = whole.beside(None)
        there = is_device(X)  # where each fold has the whole GPU
        n_jobs, shared = (1, True) if there else (self.n_jobs, isinstance(X, BlockedMatrix))
        small = not shared and is_small(X, _THREADED)

        def score_folds(ratios, grids):
            calls = (
                delayed(_score_fold)(
                    light, X, y, model, fold, k, ratios, grids, scored, self.max_time, scorer, score_params,
                    not self.refit,
                )
                for k, fold in enumerate(folds)
            )  # fmt: skip
            return run_folds(calls, n_jobs, shared=shared, small=small)

        done = []
        for k, run in enumerate(score_folds(ratios, grids)):
            done.append(run)
            monitor.part_ends(k)
        scores, n_iters, statuses, optimality, solutions = zip(*done)
        all_scores = np.array(scores).reshape(n_folds, len(ratios), -1)
        self._refuse_nan(all_scores, ratios, penalties)
        chosen = self._choose_ratio(ratios, all_scores)
        ratio = float(ratios[chosen])
        mixed = [f", l1_ratio={r:.3g}" if len(ratios) > 1 else "" for r in ratios]
        named = zip(penalties, mixed)
        points = [f"{self._penalty}={value:.3g}{name}" for values, name in named for value in values]
        names = [f"fold {k} at {point}" for k in range(n_folds) for point in points]
        statuses, optimality = list(np.concatenate(statuses)), list(np.concatenate(optimality))
        n_iters = [fold.sum() for fold in n_iters]

        # the path of the chosen ratio, which goes on where its end is the best
        size = len(grids[chosen])
        path = ScoredPath(
            grids[chosen], all_scores[:, chosen], [one[chosen * size :][:size] for one in solutions]
        )
        weakest = path.lambdas[-1] * MOST_WIDENING if given is None and self._widens else np.inf
        last = 1
        while size > 1 and path.ends_best(last) and path.lambdas[-1] > weakest:
            more = path.next_lambdas(size)
            last = len(more)
            done = list(score_folds([ratio], [more]))
            found, iterations, states, measures, further = zip(*done)
            values = self._as_penalty(more)
            self._refuse_nan(np.array(found)[:, None], [ratio], [values])
            path.extend(more, np.array(found), further)
            n_iters = [n + one.sum() for n, one in zip(n_iters, iterations)]
            statuses += list(np.concatenate(states))
            optimality += list(np.concatenate(measures))
            points = [f"{self._penalty}={value:.3g}{mixed[chosen]}" for value in values]
            names += [f"fold {k} at {point}" for k in range(n_folds) for point in points]
        lambdas = path.lambdas
        penalties[chosen] = self._as_penalty(lambdas)
        self.l1_ratio_scores_[chosen] = path.mean().max()
        self._keep(penalties, chosen, all_scores)
        self._choose(path.scores)
        self.n_iter_ = np.array(n_iters, dtype=np.int32)
        top = lambda_max / max(ratio, LEAST_RATIO) / whole.scale
        self._keep_path(path, None if given is None else top, whole.columns)

        at = getattr(self, f"{self._penalty}_")
        last = int(np.flatnonzero(penalties[chosen] == at)[0])
        parts = [fold[last] for fold in path.solutions]
        if self.refit:
            solver, x, left, first = l1_weights(lambdas, whole.scale), x_null, self.max_time, 0
            if whole.starts_between:
                x, first = beside(start_between(whole, parts, x_null), X), last
            for part, how in (solver[first:last], scored), (solver[last : last + 1], options):
                begin = time.perf_counter()
                for lam, result in zip(part, whole.mixing(ratio).path(loss, l1, part, x, how, left)):
                    statuses.append(result.status)
                    optimality.append(result.optimality)
                    value = self._as_penalty(lam / whole.scale)
                    names.append(f"the fit to all rows at {self._penalty}={value:.3g}")
                    x = result.x
                left = None if left is None else max(left - (time.perf_counter() - begin), 1e-9)
            coef, intercept = whole.unpacked(result.x)
            self.optimality_, self.objective_ = float(result.optimality), float(result.fun) / whole.scale
            self.dual_gap_ = float(result.dual_gap) / whole.scale
        else:
            coef = np.mean([part[0].toarray() for part in parts], axis=0).astype(X.dtype)
            intercept = np.mean([part[1] for part in parts], axis=0).astype(X.dtype)
        found = whole.as_attributes(whole.columns.expand(coef), intercept)
        self.coef_, self.intercept_ = (beside(part, X) for part in found) if there else found
        monitor.end()
        report = Bunch(statuses=np.array(statuses), optimality=np.array(optimality))
        warn_if_path_unconverged(report, options, type(self).__name__, stacklevel=5, names=names)
        return self

    def _scored_on_device(self, X, y, sample_weight, params):
        """The score of a model that was fitted on a GPU: scorers get copies in main memory."""
        namespace(X=X, y=y, sample_weight=sample_weight)
        params = {name: to_host(value) for name, value in params.items()}
        return CrossValidationMixin.score(
            self.to_cpu(), to_host(X), to_host(y), to_host(sample_weight), **params
        )

    def _refuse_nan(self, scores, ratios, penalties):
        """ValueError that names the first score (n_folds, n_ratios, n_penalties) that is none."""
        if np.isnan(scores).any():
            k, i, j = np.argwhere(np.isnan(scores))[0]
            raise ValueError(
                f"scoring gives NaN for the left-out part of fold {k} at {self._penalty}="
                f"{penalties[i][j]:.3g}, l1_ratio={ratios[i]:.3g}, so that no penalty is the best. Take "
                "folds of more rows, with all classes in each, or another scoring."
            )

    def _choose_ratio(self, ratios, scores):
        """Position of the best ratio by scores (n_folds, n_ratios, n_penalties); of equal ones the last."""
        best = scores.mean(axis=0).max(axis=1)
        chosen = len(ratios) - 1 - int(np.argmax(best[::-1]))
        self.l1_ratios_, self.l1_ratio_scores_ = ratios, best
        self.l1_ratio_ = float(ratios[chosen])
        return chosen

    def _choose(self, scores):
        """Set the scores and the two choices of the penalty from the folds' (n_folds, n_penalties)."""
        n_folds = len(scores)
        self.scores_ = scores
        self.mean_score_ = scores.mean(axis=0)
        spread = scores.std(axis=0, ddof=1) if n_folds > 1 else np.zeros(scores.shape[1])
        self.se_ = spread / np.sqrt(n_folds)
        best = int(np.argmax(self.mean_score_))  # the first, so the strongest penalty, of equal ones
        # the first that is good enough is the sparsest model that is
        enough = self.mean_score_ >= self.mean_score_[best] - self.se_[best]
        penalties = self._tried
        found = {"best": float(penalties[best]), "1se": float(penalties[int(np.argmax(enough))])}
        for name, value in found.items():
            setattr(self, f"{self._penalty}_{name}_", value)
        setattr(self, f"{self._penalty}_", found[self.selection])


def folds_of(cv, X, y, classifier, params):
    """The folds of the rows; splitters get of an X in blocks, or on a GPU, nothing but its length."""
    rows = X if is_in_main_memory(X) else np.empty((len(y), 0))
    return checked_folds(check_cv(cv, y, classifier=classifier).split(rows, y, **params), len(y))


def check_ratios(l1_ratio):
    """The distinct values of l1_ratio, rising, as float64."""
    ratios = np.unique(numbers(l1_ratio, "l1_ratio"))
    if np.ndim(l1_ratio) > 1 or not ratios.size or not ((ratios >= 0) & (ratios <= 1)).all():
        raise ValueError(f"l1_ratio must be a number from 0 to 1, or several; got {shown(l1_ratio)}.")
    return ratios


def _score_fold(
    whole, X, y, model, fold, index, ratios, grids, options, max_time, scorer, score_params, keep_coefs
):
    """Solve the paths on a fold's training part and score each model on the rest."""
    whole, (_, test) = whole.beside(X), fold
    part = whole.training(fold, index)
    loss, l1, x_null, _ = part.start(options)
    score_params = _check_method_params(X=whole.X, params=score_params, indices=test)
    judge = whole.judge(test, y, copy.copy(model), scorer, score_params)
    n_iters, statuses, optimality, solutions = [], [], [], []
    left = np.inf if keep_coefs else MAX_BYTES if whole.starts_between else 0
    paths = (
        part.mixing(ratio).path(loss, l1, l1_weights(lambdas, part.scale), x_null, options, max_time)
        for ratio, lambdas in zip(ratios, grids)
    )
    for result in itertools.chain.from_iterable(paths):
        judge.add(part, result.x)
        n_iters.append(result.nit)
        statuses.append(result.status)
        optimality.append(result.optimality)
        kept = None
        if left > 0:
            coef, intercept = part.unpacked(result.x)
            # an entry takes its value and its column's number
            left -= np.count_nonzero(coef) * (coef.itemsize + 4)
            kept = (sp.csr_array(coef), intercept) if left >= 0 else None
        solutions.append(kept)
    return judge.scores(), np.array(n_iters), np.array(statuses), np.array(optimality), solutions
