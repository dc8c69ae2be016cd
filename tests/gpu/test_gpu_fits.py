"""Fits on a GPU against the same fits in main memory: coefficients, objectives, gaps and predictions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

import sparsekit as sk

pytestmark = pytest.mark.thorough

INF = np.inf
TIGHT = dict(tol=1e-10, max_iter=500)


@dataclass(frozen=True)
class Fit:
    """A model and its data; ``make(put)`` gives the model, ``put`` brings arrays to the side of the data."""

    make: Callable
    target: str  # "numbers", "two", "classes", "labels" or "distributions"
    n: int = 90
    p: int = 12
    forms: tuple = ("dense", "csr")
    dtypes: tuple = (np.float64,)
    weighted: bool = True
    fun: float = 1e-7  # relative difference of the objectives
    coef: float = 1e-4  # of the coefficients, relative to the largest


BOTH = np.float32, np.float64
V = np.arange(12) % 3 * 1.0  # penalty weights, some of them none


def nonnegative(**options):
    return lambda put: sk.LassoOBA(
        **{
            **TIGHT,
            "positive": True,
            **{k: put(v) if isinstance(v, np.ndarray) else v for k, v in options.items()},
        }
    )


def bounded(loss, **options):
    lower, upper = np.linspace(-1.0, -0.2, 12), np.where(np.arange(12) < 4, 0.4, INF)
    given = dict(alpha=1e-2, l1_ratio=0.5, quantile=0.3, epsilon=0.4) | options
    return lambda put: sk.BoundedRegressor(loss, **{"bounds": (lower, put(upper)), **given})


def classifier(loss):
    return lambda put: sk.BoundedClassifier(loss, bounds=(-0.6, None), alpha=1e-2, class_weight="balanced")


ROUGH = dict(fun=1e-6, coef=2e-3)  # of losses with kinks
FITS = {
    "LassoOBA": Fit(lambda put: sk.LassoOBA(0.05, tol=1e-8, penalty_weights=put(V)), "numbers", dtypes=BOTH),
    "L1LogisticOBA": Fit(
        lambda put: sk.L1LogisticOBA(0.3, tol=1e-8, penalty_weights=put(V)), "two", dtypes=BOTH
    ),
    "L1LogisticOBA, wide": Fit(lambda put: sk.L1LogisticOBA(0.3, tol=1e-8, l1_ratio=0.5), "two", p=220),
    "L1LogisticOBA, few rows": Fit(
        lambda put: sk.L1LogisticOBA(0.3, tol=1e-8, l1_ratio=0.0), "two", n=30, p=220, fun=1e-6, coef=1e-3
    ),
    "L1LogisticOBA, classes": Fit(lambda put: sk.L1LogisticOBA(0.5, tol=1e-8), "classes", dtypes=BOTH),
    "L1LogisticOBA, classes, wide": Fit(lambda put: sk.L1LogisticOBA(0.5, tol=1e-8), "classes", n=40, p=90),
    "L1LogisticOBA, classes, lbfgs": Fit(
        lambda put: sk.L1LogisticOBA(2.0, tol=1e-7, hessian="lbfgs", penalty_weights=put(V)), "classes"
    ),
    **{
        f"{name}, ratio {ratio}": Fit(
            lambda put, cls=cls, ratio=ratio: cls(0.3, tol=1e-8, l1_ratio=ratio), target, weighted=False
        )
        for name, cls, target in [
            ("LassoOBA", sk.LassoOBA, "numbers"),
            ("L1LogisticOBA", sk.L1LogisticOBA, "two"),
            ("L1LogisticOBA, classes", sk.L1LogisticOBA, "classes"),
        ]
        for ratio in (0.0, 0.5)
    },
    "positive": Fit(nonnegative(alpha=0.1), "numbers", dtypes=BOTH),
    "positive, wide": Fit(nonnegative(alpha=0.1, l1_ratio=0.5), "numbers", n=40, p=90),
    "positive, ridge": Fit(nonnegative(alpha=0.1, l1_ratio=0.0, fit_intercept=False), "numbers"),
    "positive, weights": Fit(nonnegative(alpha=0.2, l1_ratio=0.3, penalty_weights=V), "numbers"),
    "positive, no intercept": Fit(nonnegative(alpha=0.0, fit_intercept=False), "numbers", weighted=False),
    **{
        f"BoundedRegressor, {loss}": Fit(bounded(loss), "numbers", n=250, **ROUGH)
        for loss in ("absolute", "quantile", "huber", "squared", "epsilon_insensitive")
    },
    # NQN first, on standardised columns
    "BoundedRegressor, many rows": Fit(
        lambda put: sk.BoundedRegressor("absolute", bounds=(-0.3, 0.7)),
        "numbers", n=900, p=25, dtypes=(np.float32,), fun=1e-5, coef=2e-3,
    ),
    # few rows and many columns: Woodbury
    "BoundedRegressor, wide": Fit(
        lambda put: sk.BoundedRegressor("squared", bounds=(-0.01, 0.2), alpha=0.1),
        "numbers", n=30, p=400, weighted=False, **ROUGH,
    ),
    "BoundedClassifier, wide": Fit(
        lambda put: sk.BoundedClassifier("hinge", bounds=(0.0, 0.2), alpha=0.1),
        "two", n=30, p=400, weighted=False, **ROUGH,
    ),
    **{
        f"BoundedClassifier, {loss}, {target}": Fit(
            classifier(loss), target, n=220, forms=("dense",), weighted=False, **ROUGH
        )
        for loss in ("log_loss", "hinge", "squared_hinge", "modified_huber")
        for target in ("two", "classes")
    },
    **{
        f"{cls.__name__}, {target}": Fit(
            lambda put, cls=cls, weight=weight: cls(1e-2, tol=1e-7, class_weight=weight),
            target, dtypes=BOTH if target == "classes" else BOTH[1:], weighted=target != "distributions",
        )
        for cls in (sk.SparsemaxClassifier, sk.SoftmaxClassifier)
        for target, weight in [
            ("two", None), ("classes", {0: 2.0, 6: 0.5}), ("labels", {1: 3.0}), ("distributions", "balanced"),
        ]
    },
    **{
        f"{cls.__name__}, {name}": Fit(
            lambda put, cls=cls, options=options: cls(tol=1e-7, **options), "two", forms=("dense",)
        )
        for cls in (sk.SparsemaxClassifier, sk.SoftmaxClassifier)
        for name, options in [
            ("no intercept", {"fit_intercept": False}),
            ("free intercept", {"penalize_intercept": False, "class_weight": "balanced"}),
        ]
    },
}  # fmt: skip
METHODS = ("decision_function", "predict_proba", "predict_log_proba")
CASES = [(name, form, dtype) for name, fit in FITS.items() for form in fit.forms for dtype in fit.dtypes]


def draw(fit, form, dtype):
    """X and targets in main memory, and weights of which some are 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((fit.n, fit.p)) + 0.2
    if form == "csr":
        X = sp.csr_matrix(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    W = rng.standard_normal((fit.p, 4)) * (np.arange(fit.p) < 6)[:, None]
    Z = X @ W + 0.7 * rng.standard_normal((fit.n, 4))
    y = {
        "numbers": lambda: Z[:, 0] + 3.0,
        "two": lambda: np.where(Z[:, 0] > 0, 7, 3),
        "classes": lambda: 3 * Z[:, :3].argmax(axis=1),
        "labels": lambda: np.where(np.arange(4) == Z.argmax(axis=1)[:, None], 1, Z > 1.0).astype(np.int64),
        "distributions": lambda: np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True),
    }[fit.target]()
    weight = np.where(rng.random(fit.n) < 0.1, 0.0, rng.random(fit.n))
    return X.astype(dtype), y, weight if fit.weighted else None


@pytest.mark.parametrize("name, form, dtype", CASES)
def test_fits_are_those_of_main_memory(cupy, name, form, dtype):
    fit = FITS[name]
    X, y, weight = draw(fit, form, dtype)
    dX, dy, dw = (to_device(cupy, a) for a in (X, y, weight))
    # dense products of float32 data are float32 in main memory and float64 on the device
    exact = X.astype(np.float64)
    here = fit.make(np.asarray).fit(exact, y, weight)
    model = fit.make(cupy.asarray)
    assert model.fit(dX, dy, dw) is model
    single = dtype == np.float32
    coef, scale = fit.coef * (10 if single else 1), np.abs(here.coef_).max()
    assert isinstance(model.coef_, cupy.ndarray)
    assert model.coef_.dtype == dtype and model.coef_.shape == here.coef_.shape
    np.testing.assert_allclose(model.coef_.get(), here.coef_, rtol=0, atol=coef * scale)
    if fit.target == "numbers":  # of classes decision functions have them
        assert float(model.intercept_) == pytest.approx(here.intercept_, abs=20 * coef * max(1.0, scale))
    np.testing.assert_allclose(model.objective_, here.objective_, rtol=10 * fit.fun if single else fit.fun)
    assert type(model.n_iter_) is type(here.n_iter_)
    if hasattr(model, "optimality_"):
        assert np.max(model.optimality_) <= model.tol
    if hasattr(model, "dual_gap_"):
        gap = np.asarray(model.dual_gap_) / model.objective_
        assert (gap >= -1e-9).all() and (gap <= 1e-3).all()
    lower, upper = getattr(model, "bounds", None) or (0.0 if getattr(model, "positive", False) else -INF, INF)
    sides = [
        np.asarray(x.get() if hasattr(x, "get") else x, dtype=float) for x in (lower, upper) if x is not None
    ]
    w = model.coef_.get().astype(np.float64)
    assert (w >= sides[0]).all() and (len(sides) == 1 or (w <= sides[1]).all())
    loose = dict(rtol=20 * coef, atol=20 * coef * max(1.0, scale))
    for method in METHODS:
        if hasattr(model, method):
            found, expected = getattr(model, method)(dX), getattr(here, method)(exact)
            assert isinstance(found, cupy.ndarray) and found.shape == expected.shape
            bounded_below = np.maximum(expected, -20.0)
            np.testing.assert_allclose(np.maximum(found.get(), -20.0), bounded_below, **loose)
    found, expected = model.predict(dX), here.predict(exact)
    assert isinstance(found, cupy.ndarray)
    if fit.target == "numbers":
        np.testing.assert_allclose(
            found.get(), expected, rtol=20 * coef, atol=20 * coef * np.abs(expected).max()
        )
    else:
        assert np.mean(found.get() == expected) > 0.98
        np.testing.assert_array_equal(
            model.classes_.get() if hasattr(model.classes_, "get") else model.classes_, here.classes_
        )
    if fit.target != "distributions":
        assert model.score(dX, dy, dw) == pytest.approx(here.score(exact, y, weight), abs=0.02)
