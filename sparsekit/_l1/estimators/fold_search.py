"""The search by cross-validation: paths on the folds, scores of their models, and the fit to all rows."""

from __future__ import annotations

import copy
import itertools
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params

from ..._arrays import is_in_main_memory, to_host
from ..._estimator.block_data import BlockedMatrix
from ..._estimator.cross_validation import (
    CrossValidationMixin,
    is_small,
    run_folds,
    splitter_of,
)
from ..._linalg.as_design import THREAD_WORK
from ..paths.coefficients import l1_weights
from ..paths.scored_path import MOST_WIDENING, ScoredPath, dense_solution
from ..paths.settings import MAX_BYTES

# Multiple of tol for the optimality measure of fits that are only scored.
_SCORED = 10.0


class FoldSearchMixin(CrossValidationMixin):
    """Scores the paths of the folds, chooses a penalty and l1_ratio by them, and fits all rows there."""

    # Fits that are only scored end where models predict a decrease of this multiple of tol. Accuracies do not
    # show more.
    _scored_decrease: ClassVar[float] = 30.0
    _widens: ClassVar[bool] = False  # whether an automatic grid goes on where its weakest penalty is the best

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

    def _store_path(self, path, largest, columns):
        """Keep, and say, what there is to say of the `ScoredPath` of the chosen ratio.

        ``largest`` is the penalty where all is zero, or None of an automatic grid, which begins there;
        ``columns`` are the `UsedColumns`.
        """

    def _folds_of(self, given, y, params):
        """The folds of the rows, and the metadata of the scorer."""
        if is_classifier(self):
            splitter = splitter_of(self.cv, y, False)
        else:
            splitter = check_cv(max(2, min(5, len(y))) if self.cv is None else self.cv)
        rows = given.X if is_in_main_memory(given.X) else np.empty((len(y), 0))
        return self._folds(splitter, rows, y, to_host(given.own_weight), params)

    def _by_folds(self, search, ratios, grids, folds, y, model, scorer, score_params, part_ends):
        """The fit to all rows at what scores best on left-out rows, or the average of the folds' models."""
        whole, options, n_folds = search.whole, search.options, len(folds)
        X, is_automatic = whole.X, isinstance(getattr(self, f"{self._penalty}s"), Integral)
        penalties = [self._as_penalty(grid) for grid in grids]
        scored = self._scored_options(options)
        light = whole.with_X(None)
        shared = not whole.is_in_main_memory
        # each fold has the whole GPU
        n_jobs = 1 if shared and not isinstance(X, BlockedMatrix) else self.n_jobs
        small = not shared and is_small(X, THREAD_WORK)

        def score_folds(some, grids):
            calls = (
                delayed(_score_fold)(
                    light, X, y, model, fold, k, some, grids, scored, self.max_time, scorer, score_params,
                    not self.refit,
                )
                for k, fold in enumerate(folds)
            )  # fmt: skip
            return run_folds(calls, n_jobs, shared=shared, small=small)

        def record(statuses, optimality, some, grids):
            points = self._points(some, grids)
            names = [f"fold {k} at {point}" for k in range(n_folds) for point in points]
            search.add(np.concatenate(statuses), np.concatenate(optimality), names)

        done = []
        for k, run in enumerate(score_folds(ratios, grids)):
            done.append(run)
            part_ends(k)
        scores, n_iters, statuses, optimality, solutions = zip(*done)
        record(statuses, optimality, ratios, grids)
        all_scores = np.array(scores).reshape(n_folds, len(ratios), -1)
        self._refuse_nan(all_scores, ratios, penalties)
        chosen = self._choose_ratio(ratios, all_scores)
        ratio = float(ratios[chosen])
        n_iters = [fold.sum() for fold in n_iters]

        # the path of the chosen ratio, which goes on where its end is the best
        size = len(grids[chosen])
        path = ScoredPath(
            grids[chosen], all_scores[:, chosen], [one[chosen * size :][:size] for one in solutions]
        )
        weakest = path.lambdas[-1] * MOST_WIDENING if is_automatic and self._widens else np.inf
        last = 1
        while size > 1 and path.ends_best(last) and path.lambdas[-1] > weakest:
            more = path.next_lambdas(size)
            last = len(more)
            found, iterations, statuses, optimality, further = zip(*score_folds([ratio], [more]))
            record(statuses, optimality, [ratio], [more])
            self._refuse_nan(np.array(found)[:, None], [ratio], [self._as_penalty(more)])
            path.extend(more, np.array(found), further)
            n_iters = [n + one.sum() for n, one in zip(n_iters, iterations)]
        lambdas = path.lambdas
        penalties[chosen] = self._as_penalty(lambdas)
        self.l1_ratio_scores_[chosen] = path.mean().max()
        self._store_search(penalties, chosen, all_scores)
        self._choose(path.scores)
        self.n_iter_ = np.array(n_iters, dtype=np.int32)
        self._store_path(path, None if is_automatic else search.largest(ratio) / whole.scale, whole.columns)

        last = int(np.flatnonzero(penalties[chosen] == getattr(self, f"{self._penalty}_"))[0])
        if not self.refit:
            parts = [dense_solution(fold[last]) for fold in path.solutions]
            return tuple(np.mean(values, axis=0).astype(X.dtype) for values in zip(*parts))
        (result,) = search.path(lambdas[last : last + 1], ratio, search.x_null, options, self.max_time)
        name = f"the fit to all rows at {self._penalty}={penalties[chosen][last]:.3g}"
        search.add([result.status], [result.optimality], [name])
        return result

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
        self._set_scores(scores)
        best = int(np.argmax(self.mean_score_))  # the first, so the strongest penalty, of equal ones
        # the first that is good enough is the sparsest model that is
        enough = self.mean_score_ >= self.mean_score_[best] - self.se_[best]
        penalties = self._tried
        found = {"best": float(penalties[best]), "1se": float(penalties[int(np.argmax(enough))])}
        for name, value in found.items():
            setattr(self, f"{self._penalty}_{name}_", value)
        setattr(self, f"{self._penalty}_", found[self.selection])


def _score_fold(
    whole, X, y, model, fold, index, ratios, grids, options, max_time, scorer, score_params, keep_coefs
):
    """Solve the paths on a fold's training part and score each model on the rest."""
    whole, (_, test) = whole.with_X(X), fold
    part = whole.training(fold, index)
    loss, l1, x_null, _ = part.start(options)
    score_params = _check_method_params(X=whole.X, params=score_params, indices=test)
    fold_scorer = whole.fold_scorer(test, y, copy.copy(model), scorer, score_params)
    n_iters, statuses, optimality, solutions = [], [], [], []
    left = np.inf if keep_coefs else MAX_BYTES if whole.keeps_solutions else 0
    paths = (
        part.mixing(ratio).path(loss, l1, l1_weights(lambdas, part.scale), x_null, options, max_time)
        for ratio, lambdas in zip(ratios, grids)
    )
    for result in itertools.chain.from_iterable(paths):
        fold_scorer.add(part, result.x)
        n_iters.append(result.nit)
        statuses.append(result.status)
        optimality.append(result.optimality)
        kept = None
        if left > 0:
            coef, intercept = part.unpacked(result.x)
            at = np.flatnonzero(coef)
            left -= len(at) * (coef.itemsize + at.itemsize)
            kept = (coef.shape, at, coef.ravel()[at], intercept) if left >= 0 else None
        solutions.append(kept)
    return fold_scorer.scores(), np.array(n_iters), np.array(statuses), np.array(optimality), solutions
