"""The tagger with an L1 penalty: what its stop means, and what scaled variables save."""

import numpy as np
import pytest

import sparsekit as sk
from sparsekit._l1.solver.oba import minimize_oba
from sparsekit._linalg.class_design import design_of
from sparsekit._tagger.losses.constraints import allowed_by
from sparsekit._tagger.losses.loss import ChainLoss
from sparsekit._tagger.solver.scaled import ScaledLoss, minimize_scaled


@pytest.fixture(scope="module")
def rare_and_frequent():
    """Positions (N, p) of sequences of 12, features of very different frequencies, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, size=600).astype(np.int32)
    X = np.zeros((600, 160))
    X[np.arange(600), np.minimum(rng.zipf(1.4, size=600), 30) * 5 + (y + (rng.random(600) < 0.3)) % 5] = 1.0
    X[:, 0] = 1.0
    return X, y, np.arange(0, 601, 12).astype(np.int64)


def loss_of(data, C=1.0, l1_ratio=0.5, **options):
    X, y, starts = data
    weight = np.full(len(starts) - 1, C)
    return ChainLoss(design_of(X, 1), starts, y, allowed_by(None, np.arange(5)), weight, ridge=1.0 - l1_ratio,
                     **options)  # fmt: skip


def predicted_reduction(loss, x, l1):
    """Relative reduction of the model with the loss's diagonal, one variable after another."""
    total = 0.0
    diagonal = loss.curvature()
    for at, slope, curvature in zip(x, loss.gradient(x), np.maximum(diagonal, 1e-6 * diagonal.max())):
        least = slope + l1 * np.sign(at) if at else max(abs(slope) - l1, 0.0)
        total += 0.5 * least**2 / curvature
    return total / (loss.value(x) + l1 * np.abs(x).sum())


@pytest.mark.parametrize("C, l1_ratio, tol", [(1.0, 0.5, 1e-3), (0.1, 1.0, 1e-5), (50.0, 0.05, 1e-4)])
def test_the_measure_is_that_of_the_coefficients(rare_and_frequent, C, l1_ratio, tol):
    X, y, starts = rare_and_frequent
    loss = loss_of(rare_and_frequent, C, l1_ratio)
    seen = []
    model = sk.SequenceTagger(C, l1_ratio=l1_ratio, tol=tol, history=True, callback=seen.append).fit(
        np.split(X, starts[1:-1]), np.split(y, starts[1:-1])
    )
    x = loss.pack(np.vstack([model.coef_.T, model.transitions_, model.start_, model.stop_]))
    np.testing.assert_allclose(model.optimality_, predicted_reduction(loss, x, l1_ratio), rtol=1e-6)
    assert model.optimality_ <= tol < model.history_["optimality"][-2]
    assert model.history_["optimality"][-1] == seen[-1].optimality == model.optimality_
    np.testing.assert_array_equal(seen[-1].x, x)
    np.testing.assert_allclose(model.objective_, loss.value(x) + l1_ratio * np.abs(x).sum(), rtol=1e-12)
    assert len(seen) == model.n_iter_[0] == len(model.history_["fun"]) - 1


@pytest.mark.parametrize("C, l1_ratio", [(0.1, 0.9), (1.0, 0.3), (20.0, 0.05), (300.0, 0.5)])
def test_what_is_left_is_about_tol(rare_and_frequent, C, l1_ratio):
    X, y, starts = rare_and_frequent
    parts = np.split(X, starts[1:-1]), np.split(y, starts[1:-1])
    least = sk.SequenceTagger(C, l1_ratio=l1_ratio, tol=1e-9).fit(*parts).objective_
    for tol in (1e-2, 1e-4):
        found = sk.SequenceTagger(C, l1_ratio=l1_ratio, tol=tol).fit(*parts).objective_
        assert least * (1.0 - 1e-8) <= found <= (1.0 + 5.0 * tol) * least


@pytest.mark.parametrize("seen", [True, False])
def test_scaled_variables_take_two_thirds_of_the_evaluations(rare_and_frequent, seen):
    options = {"l1_ratio": 0.5, "all_states": not seen, "all_transitions": not seen}
    plain, scaled = (loss_of(rare_and_frequent, **options) for _ in range(2))
    expected = minimize_oba(plain, 0.5, hessian="lbfgs", gap=False, tol=1e-5)
    found = minimize_scaled(scaled, 0.5, None, tol=1e-6, max_iter=200, max_time=None)
    assert expected.success and found.success
    np.testing.assert_allclose(found.fun, expected.fun, rtol=3e-6)
    assert scaled.n_evaluations <= 0.7 * plain.n_evaluations


def test_scaled_loss_is_the_loss(rare_and_frequent):
    loss = loss_of(rare_and_frequent)
    scaled = ScaledLoss(loss)
    assert scaled.unit.max() > 2.0 * scaled.unit.min() > 0.0
    z, d = np.random.default_rng(1).normal(size=(2, scaled.n_variables))
    x = scaled.unit * z
    assert scaled.value(z) == loss.value(x)
    slope = (scaled.value(z + 1e-5 * d) - scaled.value(z - 1e-5 * d)) / 2e-5
    np.testing.assert_allclose(scaled.gradient(z) @ d, slope, rtol=1e-6)


def test_a_start_at_the_end_and_one_worse_than_zero(rare_and_frequent):
    loss = loss_of(rare_and_frequent)
    options = dict(tol=1e-4, max_iter=200, max_time=None, history=True)
    end = minimize_scaled(loss, 0.5, None, **options)
    again = minimize_scaled(loss, 0.5, end.x, **options)
    assert again.nit == 0 and again.success and again.optimality <= 1e-4
    np.testing.assert_allclose(again.x, end.x, rtol=1e-12)
    far = minimize_scaled(loss, 0.5, np.full(loss.n_variables, 1e3), **options)
    np.testing.assert_array_equal(far.x, end.x)
    assert far.history["optimality"][0] == end.history["optimality"][0]


def test_one_label_has_no_curvature():
    """The diagonal is 0 there, without a ridge as well."""
    model = sk.SequenceTagger(l1_ratio=1.0).fit([np.ones((3, 2))], [["a", "a", "a"]])
    assert not model.coef_.any() and model.predict([np.ones((2, 2))]) == [["a", "a"]]
