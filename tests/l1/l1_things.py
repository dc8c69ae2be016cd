"""The public L1 things, one fit of each by one signature, and their least objectives.

`THINGS` are the columns of the table of facilities: a test that takes ``thing`` is a row of it.
"""

import functools

import numpy as np
import pandas as pd
import pytest
import reference_oba as reference
from numpy.testing import assert_allclose
from sklearn.base import clone

import sparsekit as sk

TOL = 1e-9
C, ALPHA = 0.5, 0.08
N, P = 60, 7
NAMES = [f"f{j}" for j in range(P)]
# folds of fixed rows, so that rows that weigh nothing or stand there twice leave them as they are
FOLDS = [(np.flatnonzero(np.arange(N) % 3 != k), np.flatnonzero(np.arange(N) % 3 == k)) for k in range(3)]

rng = np.random.default_rng(7)
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.7)
SIGNAL = 1.5 * X[:, 0] - X[:, 1] + 0.7 * X[:, 2]
NUMBERS = SIGNAL + 0.5 * rng.standard_normal(N) + 2.0
TWO = (SIGNAL + rng.logistic(size=N) > 0.3).astype(int)
THREE = (1.5 * X[:, :3] + rng.gumbel(size=(N, 3))).argmax(axis=1)
OFFSET = rng.standard_normal(N)
COUNTS = rng.integers(1, 4, N).astype(float)
UNEVEN = np.linspace(0.3, 2.0, P)


class Estimator:
    """A class whose fit is one problem: coefficients (n_outputs, p), intercepts, objective, gap."""

    def __init__(self, model, y):
        self.model, self.y = model, y

    def fit(self, X=X, y=None, *, sample_weight=None, offset=None, **parameters):
        model = clone(self.model).set_params(**parameters)
        model.fit(X, self.y if y is None else y, sample_weight=sample_weight, offset=offset)
        gap = getattr(model, "dual_gap_", None)
        return np.atleast_2d(model.coef_), np.ravel(model.intercept_), getattr(model, "objective_", None), gap


class Path:
    """A path, of which one point is checked."""

    def __init__(self, path, y, **penalty):
        self.path, self.y, self.penalty = path, y, penalty

    def fit(self, X=X, y=None, **parameters):
        given = {**self.penalty, "tol": TOL, **parameters}
        found = self.path(X, self.y if y is None else y, **given)
        return (
            np.atleast_2d(found.coef(-1)), np.atleast_1d(found.intercepts.T[-1]),
            found.objectives[-1], found.dual_gaps[-1],
        )  # fmt: skip


class Selection:
    """Frequencies, which have neither intercept nor gap; and the penalties."""

    def __init__(self, model, y):
        self.model, self.y = model, y

    def fit(self, X=X, y=None, *, sample_weight=None, offset=None, n_jobs=None, **parameters):
        model = sk.StabilitySelection(
            clone(self.model).set_params(**parameters), n_pairs=3, penalties=6, random_state=0,
            max_false=None, n_jobs=n_jobs,
        )  # fmt: skip
        model.fit(X, self.y if y is None else y, sample_weight=sample_weight, offset=offset)
        return model.stability_paths_, model.penalties_, None, None


THINGS = {
    "L1LogisticOBA": Estimator(sk.L1LogisticOBA(C, tol=TOL), TWO),
    "L1LogisticOBA, 3 classes": Estimator(sk.L1LogisticOBA(C, tol=TOL), THREE),
    "L1LogisticOBACV": Estimator(sk.L1LogisticOBACV([C], tol=TOL, cv=FOLDS, scoring="neg_log_loss"), TWO),
    "L1LogisticOBACV, 3 classes": Estimator(
        sk.L1LogisticOBACV([C], tol=TOL, cv=FOLDS, scoring="neg_log_loss"), THREE
    ),
    "l1_logistic_path": Path(sk.l1_logistic_path, TWO, Cs=[0.1, C]),
    "l1_logistic_path, 3 classes": Path(sk.l1_logistic_path, THREE, Cs=[0.1, C]),
    "LassoOBA": Estimator(sk.LassoOBA(ALPHA, tol=TOL), NUMBERS),
    "LassoOBACV": Estimator(sk.LassoOBACV([ALPHA], tol=TOL, cv=FOLDS), NUMBERS),
    "lasso_path": Path(sk.lasso_path, NUMBERS, alphas=[ALPHA, 1.0]),
    "StabilitySelection(L1LogisticOBA)": Selection(sk.L1LogisticOBA(tol=TOL), TWO),
    "StabilitySelection(LassoOBA)": Selection(sk.LassoOBA(tol=TOL), NUMBERS),
}
FITS = [name for name in THINGS if "Stability" not in name]
ESTIMATORS = [name for name in THINGS if isinstance(THINGS[name], Estimator)]
each_thing = pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS)
each_fit = pytest.mark.parametrize("fit", [THINGS[name] for name in FITS], ids=FITS)
each_estimator = pytest.mark.parametrize("estimator", [THINGS[name] for name in ESTIMATORS], ids=ESTIMATORS)


def frame(values=X):
    return pd.DataFrame(values, columns=NAMES)


def same(one, other, **close):
    for a, b in zip(one[:2], other[:2]):
        assert_allclose(a, b, **{"rtol": 1e-5, "atol": 1e-5, **close})


def is_selection(thing):
    return isinstance(thing, Selection)


def of_classes(thing):
    return len(np.unique(thing.y)) < 5


def outputs(thing):
    return 3 if len(np.unique(thing.y)) == 3 else 1


def offset_of(thing):
    return np.column_stack([OFFSET, -OFFSET, 0 * OFFSET]) if outputs(thing) == 3 else OFFSET


def objective(thing, coef, intercept, X=X, y=None, s=None, l1_ratio=1.0, v=1.0, offset=0.0):
    """What is minimised, written down: C's scale is that of the attribute, the sum plus penalty / C."""
    y = thing.y if y is None else y
    s = np.ones(len(y)) if s is None else s
    penalty = np.sum(v * (l1_ratio * np.abs(coef) + (1 - l1_ratio) / 2 * coef**2))
    z = np.asarray(X, dtype=np.float64) @ coef.T + intercept
    if not of_classes(thing):
        return s @ (y - z[:, 0] - offset) ** 2 / (2 * s.sum()) + ALPHA * penalty
    if z.shape[1] == 1:
        return s @ np.logaddexp(0, np.where(y == 1, -1, 1) * (z[:, 0] + offset)) + penalty / C
    z = z + offset
    loss = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
    return s @ loss + penalty / C


@functools.cache
def least(kind, weighted=False, shifted=False):
    """The least objective, by a solver of `reference_oba` that shares nothing with the package.

    ``kind`` names a thing with its target; with `COUNTS` and `UNEVEN`, and an offset, if so.
    """
    thing = THINGS[kind]
    s, v = (COUNTS, UNEVEN) if weighted else (None, np.ones(P))
    if not of_classes(thing):
        smooth = reference.least_squares(X, thing.y, s, fit_intercept=True)
        x = reference.split_lbfgsb(smooth, np.append(v * ALPHA * (N if s is None else s.sum()), 0.0))
    else:
        k = outputs(thing)
        offset = offset_of(thing) if shifted else 0.0
        smooth = (
            reference.multinomial(X, thing.y, k, s, fit_intercept=True, offset=offset)
            if k > 1
            else reference.logistic(X, 2.0 * thing.y - 1, s, fit_intercept=True, offset=offset)
        )
        x = reference.split_lbfgsb(smooth, np.repeat(np.append(v, 0.0) / C, k)).reshape(P + 1, k)
    x = x.reshape(P + 1, -1)
    return objective(thing, x[:P].T, x[P], s=s, v=v, offset=offset_of(thing) if shifted else 0.0)


KINDS = {N: "LassoOBA", 2: "L1LogisticOBA", 3: "L1LogisticOBA, 3 classes"}


def kind(thing):
    return KINDS[len(np.unique(thing.y))]
