"""The tagger with an L1 penalty: what its stop means, and what scaled variables save."""

import numpy as np
import pytest

import sparsekit as sk
from sparsekit._l1.solver.oba import minimize_oba
from sparsekit._linalg.class_design import design_of
from sparsekit._solver import outcome
from sparsekit._tagger.losses.constraints import allowed_by
from sparsekit._tagger.losses.loss import ChainLoss
from sparsekit._tagger.solver import scaled
from sparsekit._tagger.solver.scaled import ScaledLoss, minimize_scaled, unit_of


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
    plain, other = (loss_of(rare_and_frequent, **options) for _ in range(2))
    expected = minimize_oba(plain, 0.5, hessian="lbfgs", gap=False, tol=1e-5)
    found = minimize_scaled(other, 0.5, None, tol=1e-6, max_iter=200, max_time=None)
    assert expected.success and found.success
    np.testing.assert_allclose(found.fun, expected.fun, rtol=3e-6)
    assert other.n_evaluations <= 0.7 * plain.n_evaluations


def test_scaled_loss_is_the_loss(rare_and_frequent):
    loss = loss_of(rare_and_frequent)
    unit = unit_of(loss)
    assert unit.max() > 2.0 * unit.min() > 0.0
    for variables in (np.arange(loss.n_variables), np.arange(3, loss.n_variables, 2)):
        of_z = ScaledLoss(loss, unit[variables], variables)
        z, d = np.random.default_rng(1).normal(size=(2, len(variables)))
        x = np.zeros(loss.n_variables)
        x[variables] = unit[variables] * z
        assert of_z.value(z) == loss.value(x) and of_z.n_variables == len(variables)
        slope = (of_z.value(z + 1e-5 * d) - of_z.value(z - 1e-5 * d)) / 2e-5
        np.testing.assert_allclose(of_z.gradient(z) @ d, slope, rtol=1e-6)


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


def test_a_working_set_finds_the_solution_of_all(rare_and_frequent, monkeypatch):
    """OBA works on few of the variables, and ends where a run on all of them does."""
    sizes = []
    begin = ScaledLoss.__init__

    def watched(self, loss, unit, variables, lipschitz):
        sizes.append(len(variables))
        assert (lipschitz is None) == (len(sizes) == 1)
        begin(self, loss, unit, variables, lipschitz)

    monkeypatch.setattr(ScaledLoss, "__init__", watched)
    options = dict(tol=1e-9, max_iter=500, max_time=None, history=True)
    found = minimize_scaled(loss_of(rare_and_frequent), 2.0, None, **options)
    assert len(sizes) > 1 and max(sizes) < 0.5 * len(found.x) and sizes == sorted(sizes)
    sizes.clear()
    monkeypatch.setattr(scaled, "NEAR", -1.0)
    everything = minimize_scaled(loss_of(rare_and_frequent), 2.0, None, **options)
    assert sizes[0] == len(found.x)
    np.testing.assert_allclose(found.fun, everything.fun, rtol=1e-8)
    np.testing.assert_allclose(found.x, everything.x, atol=1e-3)
    for result in (found, everything):
        times = result.history["time"]
        assert len(times) == result.nit + 1 and (np.diff(times) > 0.0).all()
        assert (np.diff(result.history["fun"]) <= 1e-12 * result.fun).all()


def test_what_rounding_stops_on_a_working_set_goes_on_with_more(rare_and_frequent, monkeypatch):
    """A run that makes no progress ends the fit only where no other variable may leave zero."""
    statuses = []
    minimize = scaled.minimize_oba

    def stalls(*args, **options):
        result = minimize(*args, **options)
        if not statuses:
            result.status = outcome.NO_PROGRESS
        statuses.append(result.status)
        return result

    monkeypatch.setattr(scaled, "minimize_oba", stalls)
    options = dict(tol=1e-6, max_iter=500, max_time=None)
    found = minimize_scaled(loss_of(rare_and_frequent), 2.0, None, **options)
    assert statuses[0] == outcome.NO_PROGRESS and len(statuses) > 1 and found.success
    statuses.clear()
    monkeypatch.setattr(scaled, "NEAR", -1.0)
    found = minimize_scaled(loss_of(rare_and_frequent), 2.0, None, **options)
    assert statuses == [outcome.NO_PROGRESS] and found.status == outcome.NO_PROGRESS


@pytest.mark.parametrize("max_iter", [1, 7, 20])
def test_working_sets_share_iterations_and_callbacks(rare_and_frequent, max_iter):
    loss, reports = loss_of(rare_and_frequent), []
    options = dict(tol=1e-9, max_time=None)
    plain = minimize_scaled(loss, 2.0, None, max_iter=max_iter, **options)
    result = minimize_scaled(loss, 2.0, None, max_iter=max_iter, callback=reports.append, **options)
    assert result.nit == max_iter and result.status == outcome.MAX_ITER and not result.success
    assert [report.nit for report in reports] == list(range(1, max_iter + 1))
    np.testing.assert_array_equal(reports[-1].x, result.x)
    for report in reports:
        np.testing.assert_allclose(report.optimality, predicted_reduction(loss, report.x, 2.0), rtol=1e-6)
    assert plain.optimality == result.optimality == reports[-1].optimality
    result = minimize_scaled(
        loss, 2.0, None, max_iter=500, callback=lambda report: report.nit == max_iter, **options
    )
    assert result.nit == max_iter and result.status == outcome.STOPPED
