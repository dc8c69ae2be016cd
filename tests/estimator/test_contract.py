"""What all linear estimators share: forms of the data, weights, labels, callbacks, reports, copies."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference_bounded import CLASSIFICATION, REGRESSION
from scipy.special import expit
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import sparsekit as sk

BOXES = (np.array([-0.2, 0.1, -np.inf, 0.0, -0.1, -1.0]), np.array([0.2, 0.1, 0.3, np.inf, 0.2, -0.3]))
BOUNDED = dict(alpha=0.01, l1_ratio=0.5, bounds=BOXES)
FAMILIES = ("poisson", "gamma", "tweedie", "negative-binomial", "binomial", "gaussian", "huber")
MODELS = {
    "logistic": sk.L1LogisticOBA(C=0.5, tol=1e-8),
    "logistic, lbfgs": sk.L1LogisticOBA(C=0.5, hessian="lbfgs", tol=1e-5),
    "multinomial": sk.L1LogisticOBA(C=0.3, tol=1e-8),
    "ordinal": sk.OrdinalOBA(0.03, tol=1e-8),
    "ordinal, lbfgs": sk.OrdinalOBA(0.03, hessian="lbfgs", tol=1e-6),
    "lasso": sk.LassoOBA(0.05, tol=1e-8),
    "elastic net": sk.LassoOBA(0.05, l1_ratio=0.5, tol=1e-8),
    **{f"deviance of {family}": sk.GLMOBA(family, alpha=0.05, tol=1e-8) for family in FAMILIES},
    **{loss: sk.BoundedRegressor(loss, **BOUNDED) for loss in REGRESSION},
    **{loss: sk.BoundedClassifier(loss, **BOUNDED) for loss in CLASSIFICATION},
    "one against the rest": sk.BoundedClassifier("squared_hinge", **BOUNDED),
    "sparsemax": sk.SparsemaxClassifier(1e-3, tol=1e-8),
    "softmax": sk.SoftmaxClassifier(1e-3, tol=1e-8),
    **{
        f"labels, {loss}": sk.LPSparseMAPClassifier(1e-2, pairs="all", loss=loss, tol=1e-6)
        for loss in ("sparsemap", "hinge", "logistic")
    },
}
SEVERAL = ("multinomial", "one against the rest", "sparsemax", "softmax")
CLASSIFIERS = [name for name, model in MODELS.items() if hasattr(model, "class_weight")]
every = pytest.mark.parametrize("name", MODELS)
but_labels = pytest.mark.parametrize("name", [name for name in MODELS if "labels" not in name])


@every
def test_estimators_are_no_dataclasses(name):
    """Of a dataclass Dask sees the fields alone: two fits with equal parameters would be one to it."""
    assert not dataclasses.is_dataclass(MODELS[name])


FEW = dict(n_pairs=5, penalties=8, random_state=0)


@parametrize_with_checks([
    sk.L1LogisticOBA(), sk.L1LogisticOBACV(), sk.L1LogisticOBACV(selection="bic"),
    sk.LassoOBA(), sk.LassoOBACV(alphas=5, cv=3), sk.LassoOBACV(5, selection="ebic", relaxed=True),
    sk.SparsemaxClassifier(), sk.SparsemaxClassifierCV(alphas=[1e-1, 1e-3]),
    sk.SoftmaxClassifier(), sk.SoftmaxClassifierCV(alphas=[1e-1, 1e-3]),
    sk.GLMOBA(), sk.GLMOBA("gaussian"), sk.GLMOBA("gamma", l1_ratio=0.5),
    sk.GLMOBACV(alphas=3, cv=2), sk.GLMOBACV(alphas=3, selection="aic"),
    sk.OrdinalOBA(), sk.OrdinalOBA(1e-3, l1_ratio=0.5),
    *map(sk.BoundedRegressor, REGRESSION),
    # at the default alpha, and up to 1e-2, the hinge ties two classes at a row, which rounding decides
    *(sk.BoundedClassifier(loss, alpha=1.5e-2) for loss in CLASSIFICATION),
    sk.StabilitySelection(**FEW), sk.StabilitySelection(sk.LassoOBA(), **FEW),
])  # fmt: skip
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def target(name, z):
    """Numbers that the model's loss allows, rising with z."""
    family = MODELS[name].get_params().get("family", "gaussian")
    if family in ("gaussian", "huber"):
        return z
    return expit(z) if family == "binomial" else np.logaddexp(0.0, z)


def classes(name, z, limits):
    """Codes of numbers between limits, or an indicator of two labels."""
    return (
        np.digitize(z, limits)
        if name in CLASSIFIERS
        else np.column_stack([z > 0.2, abs(z) < 1.0]).astype(int)
    )


def data(name, n=90, p=6):
    """Rows with zeros in them, some altogether zero, and targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    X[::13] = 0.0
    y = X @ np.linspace(1, -1, p) + 0.3 + rng.standard_t(3, n)
    if is_regressor(MODELS[name]):
        return X, target(name, y)
    return X, classes(name, y, [-0.5, 0.7] if name in SEVERAL else [0.2])


def parts(model):
    """Coefficients, and intercepts or thresholds."""
    return np.ravel(model.coef_), np.ravel(getattr(model, "intercept_", getattr(model, "thresholds_", 0.0)))


def same(model, other):
    """Equal minima: the coefficients need not be unique."""
    rel = 1e-4 if model.get_params().get("hessian") == "lbfgs" else 5e-6
    assert_allclose(model.objective_, other.objective_, rtol=rel, atol=1e-12)
    for one, two in zip(parts(model), parts(other)):
        assert_allclose(one, two, atol=1e-3 * max(1.0, abs(two).max(initial=0.0)))


def with_long_indices(X):
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def with_duplicates(A):
    X = sp.csr_array(A)
    parts = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2
    return sp.csr_array(parts, shape=X.shape)


FORMS = {
    "F": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    **{
        kind.__name__: kind
        for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array)
    },
    "csr, int64": lambda A: with_long_indices(sp.csr_array(A)),
    "csc, int64": lambda A: with_long_indices(sp.csc_array(A)),
    "duplicates": with_duplicates,
}


@every
def test_every_format_gives_the_dense_answer(name):
    X, y = data(name)
    expected = clone(MODELS[name]).fit(X, y)
    for form, make in FORMS.items():
        M = make(X)
        before = M.copy()
        model = clone(MODELS[name]).fit(M, y)
        same(model, expected)
        assert_allclose(model.predict(M), model.predict(X), rtol=1e-10, err_msg=form)
        assert abs(M - before).max() == 0 and getattr(M, "nnz", 0) == getattr(before, "nnz", 0)


@every
def test_int32_and_int64_indices_and_threads_agree(name):
    X, y = data(name)
    M = sp.csr_array(X)
    model = clone(MODELS[name]).fit(M, y)
    assert_array_equal(model.coef_, clone(MODELS[name]).fit(with_long_indices(M), y).coef_)
    same(model, clone(MODELS[name]).set_params(n_jobs=2).fit(M, y))


@every
def test_float32_is_kept_and_near_float64(name):
    X, y = data(name)
    model = clone(MODELS[name]).set_params(tol=1e-5)
    if "bounds" in model.get_params():  # that float32 has
        model.set_params(bounds=(-0.5, 0.5))
    double = clone(model).fit(X, y)
    for make in (np.asarray, sp.csr_array, sp.csc_array):
        single = clone(model).fit(make(X.astype(np.float32)), y)
        assert single.coef_.dtype == np.float32
        assert_allclose(single.objective_, double.objective_, rtol=1e-3, atol=1e-6)
        method = "predict" if is_regressor(single) else "predict_proba"
        if hasattr(single, method) and "labels" not in name:  # whose marginals are of double precision
            assert getattr(single, method)(X.astype(np.float32)).dtype == np.float32


@every
def test_weights_are_repetitions_and_zero_weights_absence(name):
    X, y = data(name)
    s = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = clone(MODELS[name]).fit(X, y, sample_weight=s)
    same(weighted, clone(MODELS[name]).fit(np.repeat(X, s, axis=0), np.repeat(y, s, axis=0)))
    same(weighted, clone(MODELS[name]).fit(X[s > 0], y[s > 0], sample_weight=s[s > 0]))
    plain = clone(MODELS[name]).fit(X, y)
    assert np.all(abs(weighted.objective_ - plain.objective_) > 1e-3 * weighted.objective_)
    if not isinstance(weighted, sk.L1LogisticOBA):  # whose C multiplies a sum
        same(plain, clone(MODELS[name]).fit(X, y, sample_weight=3.0))
        same(weighted, clone(MODELS[name]).fit(X, y, sample_weight=1e-200 * s))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_class_weight_is_sample_weight(name):
    X, y = data(name)
    s = np.random.default_rng(0).uniform(0.5, 2, len(y))
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    model = clone(MODELS[name])
    if "bounds" in model.get_params():  # or no weight would change the model of some class
        model.set_params(alpha=0.1, bounds=(0, None))
    weight = {k: 0.5 + k for k in np.unique(y)}
    by_class = clone(model).set_params(class_weight=weight).fit(X, y, s)
    same(by_class, clone(model).fit(X, y, s * (0.5 + y)))
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
    same(balanced, clone(model).fit(X, y, (len(y) / (len(counts) * counts))[codes]))
    assert not np.allclose(by_class.objective_, balanced.objective_, rtol=1e-4)


LABELS = [[False, True], ["no", "yes"], [-3, 7], [0.0, 1.0]]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_any_kind(name):
    X, y = data(name)
    expected = clone(MODELS[name]).fit(X, y)
    for labels in [["setosa", "versicolor", "virginica"], [-3, 0, 7]] if name in SEVERAL else LABELS:
        named = np.array(labels)[y]
        kinds = [named, pd.Series(named)]
        if isinstance(labels[0], str):
            kinds += [
                named.astype(object),
                *(pd.Series(named, dtype=kind) for kind in ("category", "string")),
            ]
        for target in kinds:
            model = clone(MODELS[name]).fit(X, target)
            assert_array_equal(model.classes_, labels)
            assert_array_equal(model.predict(X), np.array(labels)[expected.predict(X)])
    assert model.coef_.shape == ((6,) if name.startswith("ordinal") else (3 if name in SEVERAL else 1, 6))


@every
def test_frames_name_the_features(name):
    X, y = data(name)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    model = clone(MODELS[name])
    if "bounds" in model.get_params():
        model.set_params(bounds=tuple(pd.Series(side, index=frame.columns) for side in BOXES))
    model.fit(frame, pd.Series(y) if y.ndim == 1 else pd.DataFrame(y))
    same(model, clone(MODELS[name]).fit(X, y))
    assert_array_equal(model.feature_names_in_, frame.columns)
    assert model.n_features_in_ == 6 and not hasattr(clone(model).fit(X, y), "feature_names_in_")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"x0": "other"}))
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


@every
def test_a_warm_start_goes_on(name):
    X, y = data(name, n=300)
    model = clone(MODELS[name]).set_params(warm_start=True).fit(X, y)
    cold, before = np.max(model.n_iter_), np.copy(model.objective_)
    model.fit(X, y)
    assert np.max(model.n_iter_) < cold or cold == 1
    assert_allclose(model.objective_, before, rtol=1e-6)
    # another number of features is no error
    if "bounds" in model.get_params():
        model.set_params(bounds=(0, None))
    assert model.fit(X[:, :3], y).coef_.shape[-1] == 3


# Reports and ends.


def hard(name):
    """A model and data that no solver is done with at once."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30)) * np.logspace(-1, 1, 30)
    z = X @ rng.standard_normal(30) + rng.standard_t(2, 400)
    model = clone(MODELS[name])
    if "bounds" in model.get_params():
        model.set_params(bounds=(-0.5, 0.6), alpha=1e-3)
    elif not isinstance(model, sk.LassoOBA):
        model.set_params(**({"C": 10.0} if "C" in model.get_params() else {"alpha": 1e-6}))
    else:
        model.set_params(hessian="lbfgs", alpha=1e-4, max_iter=5000)
    if is_regressor(model):
        return model, X, target(name, z)
    return model, X, classes(name, z, [-1.0, 1.0] if name in SEVERAL else [0.0])


@every
def test_a_warning_says_what_to_do(name):
    model, X, y = hard(name)
    with pytest.warns(ConvergenceWarning, match=r"(?s)max_iter=1\b.*[Ii]ncrease max_iter") as caught:
        model.set_params(max_iter=1, tol=1e-12).fit(X, y)
    assert caught[0].filename == __file__  # points at the caller
    assert not np.all(model.dual_gap_ <= 1e-10 * model.objective_)
    with pytest.warns(ConvergenceWarning, match=r"(?s)max_time=1e-09\b.*[Ii]ncrease max_time"):
        clone(model).set_params(max_iter=100, max_time=1e-9).fit(X, y)


@pytest.mark.parametrize("how", ["return", "raise"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "one against the rest"])
def test_a_callback_stops_without_a_warning(name, how):
    model, X, y = hard(name)
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)
        intermediate_result.x[:] = np.nan  # a copy: the fit must not notice
        if len(seen) == 2:
            if how == "raise":
                raise StopIteration
            return True

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(callback=callback, tol=1e-12).fit(X, y)
    assert [report.nit for report in seen] == [1, 2] and np.max(model.n_iter_) == 2
    assert np.isfinite(model.coef_).all() and np.isfinite(model.objective_).all()
    assert model.optimality_ > 1e-12


@but_labels
def test_history_and_verbose(name, capsys):
    model, X, y = hard(name)
    assert not hasattr(model.fit(X, y), "history_") and capsys.readouterr().out == ""
    model.set_params(history=True, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(line.startswith(type(model).__name__) for line in lines)
    history = model.history_
    assert {"time", "fun", "optimality"} <= set(history)
    (length,) = {len(values) for values in history.values()}
    output = history.get("output", np.zeros(length))
    assert np.max(model.n_iter_) <= length
    for k, objective in enumerate(np.atleast_1d(model.objective_)):
        mine = output == k
        assert (np.diff(np.asarray(history["time"])[mine]) >= 0).all()
        values = np.asarray(history["fun"])[mine]
        assert np.min(values) == pytest.approx(objective, rel=1e-6)
        assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert not hasattr(model.set_params(history=False).fit(X, y), "history_")
