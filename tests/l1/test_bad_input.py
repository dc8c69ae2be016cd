"""Bad input is refused by name; hard input gets a right answer or a ConvergenceWarning, never NaN."""

import textwrap
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from children import Talk
from scipy.special import logit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsekit import L1LogisticOBA, L1LogisticOBACV, LassoOBA
from sparsekit._l1.solver import oba

ALL = [L1LogisticOBA(), LassoOBA(0.1), L1LogisticOBACV(Cs=3, cv=3)]
names = [type(model).__name__ for model in ALL]
every = pytest.mark.parametrize("model", ALL, ids=names)


def refused(model, X, y, match, **fit_params):
    with pytest.raises(ValueError, match=match):
        clone(model).fit(X, y, **fit_params)


@every
def test_weights_of_features_are_checked(cancer, model):
    X, y = cancer
    for weights, match in (
        (np.ones(3), r"penalty_weights\.shape == \(3,\), expected \(30,\)"),
        (np.ones((30, 1)), r"penalty_weights\.shape"),
        (-np.ones(30), r"penalty_weights\[0\] is -1"),
        (np.full(30, np.nan), "Input penalty_weights contains NaN"),
    ):
        refused(clone(model).set_params(penalty_weights=weights), X, y, match)


@pytest.mark.parametrize("model", [L1LogisticOBA(), LassoOBA(0.1)])
def test_a_single_row(model):
    if isinstance(model, L1LogisticOBA):
        refused(model, [[1.0, 2.0]], [1], "only one class")
    else:
        fitted = model.fit([[1.0, 2.0]], [3.0])
        np.testing.assert_array_equal(fitted.coef_, 0.0)
        assert fitted.intercept_ == 3.0
    two = L1LogisticOBA(C=0.1).fit([[1.0], [2.0]], [0, 1])
    assert np.isfinite(two.coef_).all()


def answer_or_warning(model, X, y, **params):
    """Fit; the result must be finite, and optimal unless a ConvergenceWarning says that it is not."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **params)
    assert time.process_time() - start < 20
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught), [str(w.message) for w in caught]
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert np.isfinite(model.objective_) and not np.isnan(model.optimality_)
    if isinstance(model, L1LogisticOBA):
        proba = model.predict_proba(X)
        assert not np.isnan(proba).any()
    return not caught


@pytest.mark.parametrize("C", [1e6, 1e10, 1e15, np.inf])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_data_with_huge_C(C, n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 5)) + 8.0 * np.eye(5)[y]
    model = L1LogisticOBA(C=C)
    answer_or_warning(model, X, y)
    assert model.score(X, y) == 1.0
    # the certificate: no classifier of larger norm is worth more than this
    assert model.objective_ < 1e-2 * len(y)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
def test_constant_zero_and_duplicate_columns(cancer, container):
    X, y = cancer
    n = len(y)
    plain = L1LogisticOBA(tol=1e-8).fit(X, y)
    odd = np.column_stack([X, np.zeros(n), np.full(n, 3.0), X[:, :4]])
    model = L1LogisticOBA(tol=1e-8)
    assert answer_or_warning(model, container(odd), y)
    assert model.coef_[0, 30] == 0.0
    # the constant column is the intercept's job, which costs nothing
    assert model.coef_[0, 31] == pytest.approx(0.0, abs=1e-6)
    # duplicates share a coefficient in some way: the objective cannot change
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    np.testing.assert_allclose(model.predict_proba(odd), plain.predict_proba(X), atol=1e-3)
    lasso = LassoOBA(0.01, tol=1e-9)
    assert answer_or_warning(lasso, container(odd), y.astype(float))
    assert lasso.objective_ == pytest.approx(LassoOBA(0.01, tol=1e-9).fit(X, y).objective_, rel=1e-7)


@pytest.mark.parametrize("scale", [1e9, 1.0])
def test_a_gap_that_stays_large_is_warned_about(monkeypatch, cancer, scale):
    """Where nothing moves any more; here because no iteration is spent on the gap."""
    X, y = cancer
    scaled = X.copy()
    scaled[:, 0] *= scale
    monkeypatch.setattr(oba, "VALUE_ROUNDING", 1e-5)
    with pytest.warns(ConvergenceWarning, match="gap shows .* % too high, .* similar scales"):
        L1LogisticOBA(C=1e5, max_iter=1000).fit(scaled, y)


@pytest.mark.parametrize("C", [1e-300, 1e-310, 1e-6])
def test_no_feature_survives_a_small_C(cancer, C):
    X, y = cancer
    model = L1LogisticOBA(C=C, tol=1e-10).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_[0] == pytest.approx(logit(y.mean()), rel=1e-6)
    weights = np.ones(30)
    weights[0] = 0.0
    free = L1LogisticOBA(C=C, tol=1e-10, penalty_weights=weights).fit(X, y)
    assert np.flatnonzero(free.coef_[0]).tolist() == [0]


@pytest.mark.parametrize(
    "model",
    [
        "L1LogisticOBA(C=10.0, tol=1e-15, max_iter=10**6)",
        "ExtremeSoftmaxSGD(learning_rate=1.0, max_iter=10**6)",
    ],
)
def test_keyboard_interrupt_ends_a_fit_within_a_second(model):
    code = textwrap.dedent("""
        import sys, threading, time
        import numpy as np
        from sparsekit import ExtremeSoftmaxSGD, L1LogisticOBA

        rng = np.random.default_rng(0)
        X = rng.standard_normal((4000, 1500))
        y = np.arange(4000) % 2
        at = []

        def interrupt():
            time.sleep(0.7)
            at.append(time.process_time())
            signal.raise_signal(signal.SIGINT)  # Python's own handler runs in the main thread

        print("ready", flush=True)
        try:
            threading.Thread(target=interrupt, daemon=True).start()
            while True:  # a fit must be running when the signal comes, however fast it is
                MODEL.fit(X, y)
        except KeyboardInterrupt:
            # of this process alone, since the machine may have other things to do
            print(time.process_time() - at[0], flush=True)
            sys.exit(7)
    """).replace("MODEL", model)
    with Talk(code) as child:
        assert child.line(120) == "ready"
        assert float(child.line(120)) < 1.0
        assert child.status(60) == 7
