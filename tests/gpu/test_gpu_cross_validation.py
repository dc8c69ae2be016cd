"""Paths, cross-validation and stability selection of data on a GPU: the results of main memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

import sparsekit as sk

pytestmark = pytest.mark.thorough

N, P = 48, 8


def _data(classes=0, layout="C", n=N, p=P):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((n, p)) + 0.2
    if layout == "csr":
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.6, X, 0.0))
    W = 2.0 * rng.standard_normal((p, max(classes, 1))) * (np.arange(p) < 4)[:, None]
    W = W if classes else np.abs(W)  # which coefficients >= 0 can follow
    z = X @ W + rng.standard_normal((n, max(classes, 1)))
    y = 3 * z.argmax(axis=1) if classes > 2 else (z[:, 0] > 0).astype(int) if classes else z[:, 0] + 5.0
    return X, y, rng.uniform(0.2, 2.0, n)


def _same_choice(here, there, penalty, score_tol=1e-5):
    for name in (f"{penalty}_", f"{penalty}_best_", f"{penalty}_1se_", f"{penalty}s_", "l1_ratio_"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-8)
    assert isinstance(there.scores_, np.ndarray)
    np.testing.assert_allclose(there.scores_, here.scores_, atol=score_tol)
    np.testing.assert_allclose(there.coef_.get(), here.coef_, atol=1e-6)
    np.testing.assert_allclose(there.intercept_.get(), here.intercept_, atol=1e-6)
    assert there.coef_.dtype == here.coef_.dtype
    if there.refit:
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
        assert 0 <= there.dual_gap_ <= 1e-7 * there.objective_


LOGISTIC = [
    dict(),
    dict(scoring="neg_log_loss", selection="1se", l1_ratio=[0.5, 1.0]),
    dict(refit=False, fit_intercept=False),
    dict(class_weight="balanced", penalty_weights={1: 0.0, 3: 2.0}, scoring="f1_macro"),
]


@pytest.mark.parametrize("options, classes", [(options, 2 + k % 2) for k, options in enumerate(LOGISTIC)])
def test_logistic_regression(cupy, classes, options):
    sparse_too = [("C", False), ("csr", True)] if classes == 2 else [("C", True)]
    options = dict(Cs=3, cv=2, tol=1e-8, eps=0.03) | options
    for layout, weighted in sparse_too:
        X, y, s = _data(classes, layout)
        dX, dy = to_device(cupy, X), cupy.asarray(y)
        s, ds = (s, cupy.asarray(s)) if weighted else (None, None)
        here = sk.L1LogisticOBACV(**options).fit(X, y, s)
        there = sk.L1LogisticOBACV(**options).fit(dX, dy, ds)
        # folds end at a small predicted reduction: two solvers stop at different points
        _same_choice(here, there, "C", score_tol=2e-4)
        np.testing.assert_array_equal(there.classes_.get(), here.classes_)
        np.testing.assert_array_equal(there.predict(dX).get(), here.predict(X))
        assert there.score(dX, dy, ds) == pytest.approx(here.score(X, y, s), abs=1e-6)
        np.testing.assert_allclose(there.to_cpu().predict_proba(X), here.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(l1_ratio=[0.5, 1.0], selection="1se", penalty_weights=np.arange(P) % 3 + 0.5),
        dict(scoring="r2", positive=True),
        dict(refit=False, positive=True, fit_intercept=False),
        dict(alphas=[0.3, 0.1], hessian="lbfgs"),
    ],
)
def test_least_squares(cupy, options):
    options = dict(alphas=3, cv=2, tol=1e-8, eps=0.02) | options
    for layout, weighted in (("C", True), ("csr", False)):
        X, y, s = _data(0, layout)
        dX, dy = to_device(cupy, X), cupy.asarray(y)
        s, ds = (s, cupy.asarray(s)) if weighted else (None, None)
        here = sk.LassoOBACV(**options).fit(X, y, s)
        there = sk.LassoOBACV(**options).fit(dX, dy, ds)
        _same_choice(here, there, "alpha", score_tol=2e-3)  # of paths that end at 30 tol, each its own way
        if "scoring" not in options:
            np.testing.assert_allclose(there.mse_path_, here.mse_path_, atol=2e-3)
        assert there.score(dX, dy, ds) == pytest.approx(here.score(X, y, s), abs=1e-6)
        np.testing.assert_allclose(there.predict(dX).get(), here.predict(X), atol=1e-5)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_offsets(cupy, classes):
    X, y, _ = _data(classes)
    rng = np.random.default_rng(5)
    o = rng.standard_normal((N, 3)) if classes == 3 else rng.standard_normal(N)
    make, penalty = (sk.L1LogisticOBACV, "C") if classes else (sk.LassoOBACV, "alpha")
    # a scorer of scikit-learn's gets the offset too
    for scoring in (None, "accuracy" if classes else "neg_mean_absolute_error"):
        model = make([1.0, 0.1], cv=2, tol=1e-9, scoring=scoring)
        here = model.fit(X, y, offset=o)
        scored = here.score(X, y, offset=o)
        dX, dy, do = map(cupy.asarray, (X, y, o))
        there = make(**model.get_params()).fit(dX, dy, offset=do)
        _same_choice(here, there, penalty, score_tol=2e-3)
        assert there.needs_offset_
        assert there.score(dX, dy, offset=do) == pytest.approx(scored, abs=1e-6)
        with pytest.raises(ValueError, match="offset"):
            there.score(dX, dy)


@pytest.mark.parametrize(
    "layout, model, classes",
    [
        ("C", sk.L1LogisticOBA(class_weight="balanced"), 2),
        ("csr", sk.L1LogisticOBA(l1_ratio=0.8, penalty_weights={1: 0.0}), 3),
        ("C", sk.LassoOBA(), 0),
        ("csr", sk.LassoOBA(positive=True), 0),
    ],
)
def test_stability_selection(cupy, layout, model, classes):
    X, y, s = _data(classes, layout)
    s[:3] = 0.0
    o = np.random.default_rng(2).standard_normal((N, 3) if classes == 3 else N)
    dX, dy = to_device(cupy, X), cupy.asarray(y)
    everything = {"sample_weight": s, "offset": o}
    for given in [{}, everything] if classes != 3 else [everything]:
        model.set_params(tol=1e-7)  # or the first penalties of weak features are by chance
        selection = sk.StabilitySelection(
                model, n_pairs=2, penalties=4, eps=0.05, threshold=0.75, max_false=None, random_state=0
            )  # fmt: skip
        here = selection.fit(X, y, **given)
        paths, selected, kept = here.stability_paths_, here.get_support(), here.transform(X)
        back = here.inverse_transform(kept)
        there = selection.fit(dX, dy, **{name: cupy.asarray(values) for name, values in given.items()})
        np.testing.assert_array_equal(there.stability_paths_, paths)
        np.testing.assert_array_equal(there.get_support(), selected)
        assert paths.any() and selected.sum() < P
        for mine, other in (
            (there.transform(dX), kept),
            (there.inverse_transform(there.transform(dX)), back),
        ):
            assert type(mine) is type(dX)
            mine, other = (a.toarray() if hasattr(a, "nnz") else a for a in (mine.get(), other))
            np.testing.assert_array_equal(mine, other)


def test_what_is_refused(cupy):
    X, y, s = _data(2)
    dX, dy = cupy.asarray(X), cupy.asarray(y)
    for call in (
        lambda: sk.StabilitySelection().fit(dX, y),
        lambda: sk.StabilitySelection().fit(X, dy),
        lambda: sk.StabilitySelection().fit(dX, dy, sample_weight=s),
        lambda: sk.StabilitySelection(sk.BoundedRegressor(), penalties=[1.0]).fit(dX, dy),
    ):
        with pytest.raises(TypeError, match="cupy"):
            call()
    here, there = (sk.L1LogisticOBACV([1.0], cv=2).fit(*data) for data in ((X, y), (dX, dy)))
    scored = sk.L1LogisticOBACV([1.0], cv=2, scoring="neg_log_loss").fit(dX, dy)
    numbers = sk.LassoOBACV([1.0], cv=2).fit(dX, dy)
    for model, given in ((here, (dX, y)), (there, (X, y)), (scored, (X, dy)), (numbers, (dX, y))):
        with pytest.raises(TypeError, match="cupy"):
            model.score(*given)
    empty = sk.StabilitySelection(sk.LassoOBA(), n_pairs=1, penalties=[1e9], max_false=None).fit(dX, dy)
    with pytest.warns(UserWarning, match="No features were selected"):
        assert empty.transform(dX).shape == (N, 0)


# Paths.

TIGHT = dict(tol=1e-10, n_lambdas=6, eps=0.05)


def _same_path(here, there):
    for name in ("lambdas", "lambda_max", "objectives"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-8)
    dense = [path.coefs.toarray() if sp.issparse(path.coefs) else path.coefs for path in (here, there)]
    assert type(there.coefs) is type(here.coefs) and there.coefs.dtype == here.coefs.dtype
    np.testing.assert_allclose(dense[1], dense[0], atol=1e-5 * np.abs(dense[0]).max())
    np.testing.assert_allclose(there.intercepts, here.intercepts, atol=1e-5)
    np.testing.assert_array_equal(there.statuses, 0)
    assert (there.dual_gaps <= 1e-8 * there.objectives).all() and (there.dual_gaps >= -1e-12).all()
    assert there.n_nonzero[0] <= here.n_nonzero[0] + 1 and there.n_nonzero[-1] > 2


@pytest.mark.parametrize(
    "layout, options",
    [("C", {}), ("csr", {"l1_ratio": 0.5}), ("C", {"positive": True}), ("csr", {"fit_intercept": False})],
)
def test_paths_of_the_lasso(cupy, layout, options):
    X, y, s = _data(0, layout, 70, 14)
    v, offset = np.where(np.arange(14) % 5 == 0, 0.0, 1.0 + np.arange(14) % 3), np.sin(np.arange(70.0))
    for given in ({}, {"sample_weight": s, "penalty_weights": v, "offset": offset}):
        there = {name: cupy.asarray(values) for name, values in given.items()}
        here = sk.lasso_path(X, y, **given, **options, **TIGHT)
        _same_path(here, sk.lasso_path(to_device(cupy, X), cupy.asarray(y), **there, **options, **TIGHT))


@pytest.mark.parametrize(
    "layout, classes, ratio", [("C", 2, 1.0), ("csr", 3, 1.0), ("csr", 2, 0.5), ("C", 3, 0.5)]
)
def test_paths_of_logistic_regression(cupy, layout, classes, ratio):
    X, y, s = _data(classes, layout, 70, 14)
    offset = 0.2 * np.sin(np.arange(70.0 * max(classes - 1, 1) if classes == 2 else 70.0 * classes))
    offset = offset if classes == 2 else offset.reshape(70, classes)
    for given in ({}, {"sample_weight": s, "penalty_weights": {3: 0.0}, "offset": offset}):
        there = {k: v if isinstance(v, dict) else cupy.asarray(v) for k, v in given.items()}
        options = dict(l1_ratio=ratio, class_weight="balanced", coefs="sparse", **TIGHT)
        here = sk.l1_logistic_path(X, y, **given, **options)
        path = sk.l1_logistic_path(to_device(cupy, X), cupy.asarray(y), **there, **options)
        _same_path(here, path)
        np.testing.assert_array_equal(path.classes, here.classes)
