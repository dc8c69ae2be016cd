"""Bounded models on a GPU: coefficients, gaps and errors as in main memory, and the way back."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_data import to_device

from sparsekit._bounded.losses.losses import classification_loss, regression_loss
from sparsekit._bounded.losses.problem import BoundedProblem
from sparsekit._bounded.solver.box_step import minimize_in_box
from sparsekit._bounded.solver.minimize_bounded import minimize_bounded
from sparsekit._bounded.solver.run import BoundedOptions
from sparsekit._linalg.newton import NewtonSystem

pytestmark = pytest.mark.thorough


def _data(n, p, sparse=False):
    """X, targets and weights; a tenth of the weights are zero."""
    rng = np.random.default_rng(0)
    X = sp.random(n, p, 0.3, format="csr", random_state=rng) if sparse else rng.standard_normal((n, p))
    y = X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n) + 3.0
    return X, y, np.where(rng.random(n) < 0.1, 0.0, rng.random(n))


@pytest.mark.parametrize("side", ["columns", "rows"])
@pytest.mark.parametrize("sparse", [False, True])
def test_steps_in_a_box(cupy, side, sparse):
    n, p = (60, 20) if side == "columns" else (15, 330)
    X, y, weight = _data(n, p, sparse)
    rng, steps, moments, weight = np.random.default_rng(1), [], [], weight / weight.sum()
    d, gradient, cols = rng.random(n) + 0.1, rng.standard_normal(p + 1), np.delete(np.arange(p), 3)
    for put in (np.asarray, cupy.asarray):
        up = X if put is np.asarray else to_device(cupy, X)
        loss = regression_loss("squared", put(y), put(weight), quantile=0.5, epsilon=0.1)
        problem = BoundedProblem(up, loss, put(np.zeros(p)), put(np.ones(p)), 0.0, 0.1, fit_intercept=True)
        system = NewtonSystem.build(
            problem.matrix, put(np.arange(1, n)), put(cols), put(d[1:]), problem.l2, problem.fit_intercept
        )
        assert (system.gram is None) == (side == "rows")
        moments.append([a if put is np.asarray else a.get() for a in problem.moments()])
        low, high = put(np.full(p, -0.05)), put(np.full(p, 0.05))
        steps.append(minimize_in_box(system, put(gradient[:p]), low, high, put(np.full(p, 1e-3))))
        # a matrix that is not positive definite is no step, and no error
        bad = minimize_in_box(system, put(gradient[:p]), low, high, put(np.full(p, -1e6)))
        assert np.isnan(bad if put is np.asarray else bad.get()).all()
    np.testing.assert_allclose(steps[1].get(), steps[0], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(moments[1], moments[0], rtol=1e-10, atol=1e-14)


def test_waits_of_an_iteration(cupy):
    """About thirty, of NQN or of Newton: numbers that a step of either depends on."""
    if not hasattr(cupy, "emulation"):
        pytest.skip("only the stand-in counts what the host waits for")
    X, y, weight = _data(1200, 20)
    weight = weight / weight.sum()
    losses = (
        regression_loss("absolute", cupy.asarray(y), cupy.asarray(weight), quantile=0.5, epsilon=0.1),
        (classification_loss("log_loss", cupy.asarray(np.where(y > 3, 1.0, -1.0)), cupy.asarray(weight))),
    )
    for loss in losses:
        lower = cupy.asarray(np.full(20, -0.5))
        problem = BoundedProblem(cupy.asarray(X), loss, lower, -lower, 0.0, 1e-3, fit_intercept=True)
        before = dict(cupy.emulation.counts)
        result = minimize_bounded(problem, cupy.zeros(20), 0.0, BoundedOptions(tol=1e-5))
        assert result.success
        assert (cupy.emulation.counts["syncs"] - before["syncs"]) / result.nit < 45
