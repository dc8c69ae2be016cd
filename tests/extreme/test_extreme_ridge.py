"""The strength of the ridge to centroids of ExtremeSoftmaxSGD, by rows set aside."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from extreme_things import few_rows
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from sparsekit import ExtremeSoftmaxSGD
from sparsekit._extreme.estimators import ridge
from sparsekit._extreme.estimators.objective import Evaluation, Sample, SampledObjective
from sparsekit._extreme.estimators.rate import rows_aside
from sparsekit._extreme.estimators.targets import ExtremeTargets
from sparsekit._extreme.solver.centroids import move_center


def linear_classes(n=2000, seed=9):
    """Rows of ten classes without noise, for which the weakest ridge is the best."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 100), density=0.1, rng=rng, format="csr")
    return X, (X @ rng.standard_normal((100, 10))).argmax(axis=1)


def test_rows_set_aside_choose_a_weak_ridge_for_clean_labels_and_a_strong_one_for_noise():
    """By the log-loss of rows that steps use, the weakest ridge is the best in both: C of 30."""
    X, linear = linear_classes()
    for labels, C in ((linear, 30), (np.random.default_rng(3).integers(0, 10, 2000), 1)):
        model = ExtremeSoftmaxSGD(prior="centroids", tol=None, random_state=0).fit(X, labels)
        assert model.alpha_ == pytest.approx(1 / (C * 2000))


@pytest.mark.parametrize("of_few_rows", [False, True])
def test_rows_set_aside_decide_whether_rows_are_scored_with_their_own_part(of_few_rows, monkeypatch, capsys):
    """That is better for linear classes and worse for classes of few rows."""
    X, y = few_rows(300, 600, 900, 4) if of_few_rows else linear_classes()
    with_own = []

    def record(state, plan, center, *intercepts):
        with_own.append(center.own is None)
        move_center(state, plan, center, *intercepts)

    monkeypatch.setattr(ridge, "move_center", record)
    ExtremeSoftmaxSGD(prior="centroids", tol=None, random_state=0, verbose=1).fit(X, y)
    losses = [float(loss) for loss in re.findall(r"log-loss (\S+)", capsys.readouterr().out)]
    assert with_own[:2] == [False, True] and (losses[0] < losses[1]) == of_few_rows
    assert set(with_own[2:]) == {not of_few_rows}


def test_rows_set_aside_count_by_their_weights_where_other_rows_have_their_class():
    targets = ExtremeTargets(np.array([0, 1, 2, 1, 0]), None, np.arange(3), np.arange(1.0, 6.0))
    sample = rows_aside(ExtremeSoftmaxSGD(), targets, np.array([1, 2, 4]), np.array([1, 1, 0]))
    np.testing.assert_array_equal(sample.rows, [1, 4])
    np.testing.assert_array_equal(sample.codes, [1, 0])
    np.testing.assert_allclose(sample.weight, [2 / 7, 5 / 7])


@pytest.mark.parametrize("n", [3, 12])
def test_few_rows_have_the_strongest_ridge(n):
    """None is set aside, or one, which says nothing."""
    X, y = few_rows(2, 30, n, 10)
    for weight in (None, np.ones(n)):
        model = ExtremeSoftmaxSGD(prior="centroids", tol=None, random_state=0).fit(X, y, weight)
        assert model.alpha_ == pytest.approx(1 / n)


def test_no_time_for_a_comparison_leaves_the_strongest_ridge():
    X, y = linear_classes()
    params = {"prior": "centroids", "tol": None, "random_state": 0}
    assert ExtremeSoftmaxSGD(**params).fit(X, y).alpha_ == pytest.approx(1 / (30 * 2000))
    assert ExtremeSoftmaxSGD(**params, max_time=1e-9).fit(X, y).alpha_ == pytest.approx(1 / 2000)


def test_standard_errors_of_weighted_losses():
    losses, weight = np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.3, 0.2])
    mean = 0.5 + 0.6 + 0.8
    expected = (0.25 * (1 - mean) ** 2 + 0.09 * (2 - mean) ** 2 + 0.04 * (4 - mean) ** 2) * 1.5
    judge = SampledObjective(Sample(np.arange(3), np.arange(3), weight, 1.0), np.eye(3), 0.0)
    assert judge.value(Evaluation(0, losses, 0.0)) == pytest.approx((mean, np.sqrt(expected)))


@pytest.mark.parametrize("n_epochs", [1, 2])
def test_a_callback_ends_the_choice_of_the_ridge(n_epochs):
    X, y = linear_classes()
    epochs = []

    def stop(intermediate_result):
        epochs.append(intermediate_result.nit)
        return len(epochs) == n_epochs

    model = ExtremeSoftmaxSGD(prior="centroids", callback=stop, random_state=0).fit(X, y)
    assert len(epochs) == n_epochs
    assert model.n_iter_ == epochs[-1] == len(model.objective_curve_)
    assert model.alpha_ == pytest.approx(1 / 2000)  # no other C had an estimate


def test_a_callback_sees_the_time_of_the_whole_fit():
    X, y = linear_classes()
    times = []
    ExtremeSoftmaxSGD(prior="centroids", callback=lambda now: times.append(now.time), random_state=0).fit(
        X, y
    )
    assert len(times) > 7 and (np.diff(times) > 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(4))
def test_tiny_sets_do_not_warn(seed):
    """The schedule ends where log-losses of new rows do, whatever is left of the objective."""
    rng = np.random.default_rng(seed)
    n_classes, n = 2 + seed, 75
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = np.abs(rng.standard_normal((n_classes, 20)))[y] * (rng.random((n, 20)) < 0.4)
    X = normalize(X + 0.3 * rng.random((n, 20)))
    assert ExtremeSoftmaxSGD(prior="centroids", random_state=seed).fit(X, y).score(X, y) > 0.6
    with pytest.warns(ConvergenceWarning):
        ExtremeSoftmaxSGD(prior="centroids", max_iter=5, random_state=seed).fit(X, y)


@pytest.mark.parametrize("max_iter", [2, 3, 4])
def test_few_epochs_warn_though_the_choice_used_most_of_them(max_iter):
    X, y = few_rows(30, 200, 1500, 0)
    with pytest.warns(ConvergenceWarning, match="still fell"):
        model = ExtremeSoftmaxSGD(prior="centroids", random_state=0, max_iter=max_iter).fit(X, y)
    assert model.n_iter_ == max_iter


def test_a_given_strength_has_the_epochs_of_the_optimum():
    X, y = few_rows(30, 200, 1500, 1)
    given, slow = (
        ExtremeSoftmaxSGD(prior="centroids", alpha=1e-3, random_state=0, **params).fit(X, y)
        for params in ({}, {"decay": 0.97, "max_iter": 150})
    )
    chosen = ExtremeSoftmaxSGD(prior="centroids", random_state=0).fit(X, y)
    assert given.n_iter_ > 2 * chosen.n_iter_
    assert given.objective_ < slow.objective_ + 0.02 * np.log(30)
