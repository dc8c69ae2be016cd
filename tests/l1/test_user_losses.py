"""What minimize_oba and minimize_nqn make of functions that return what they must not, or fall for ever."""

from types import SimpleNamespace

import numpy as np
import pytest

from sparsekit._l1.losses.user_problem import as_problem
from sparsekit._l1.solver.globalise import _search_segment
from sparsekit._l1.solver.oba import minimize_oba as minimize_inner
from sparsekit._l1.solver.oba_run import OBAOptions
from sparsekit._solver import outcome
from sparsekit.optimize import minimize_nqn, minimize_oba


class Loss:
    n_variables = 3

    def __init__(self, value, gradient, product=None):
        self.value, self.gradient = value, gradient
        self.product = product or (lambda x, subset, v: np.zeros(len(subset)))

    def hessian_product(self, x, subset, v):
        return self.product(x, subset, v)


def bowl(x):
    return float(((x - 3) ** 2).sum())


def slope(x):
    return 2 * (x - 3)


def twice(x, subset, v):
    return 2 * v


HESSIANS = pytest.mark.parametrize("hessian", ["exact", "lbfgs"])


@HESSIANS
@pytest.mark.parametrize(
    "value, gradient, match",
    [
        (lambda x: np.nan, slope, "finite at x0; it is nan"),
        (lambda x: np.inf, slope, "finite at x0; it is inf"),
        (lambda x: -np.inf, slope, "finite at x0; it is -inf"),
        (lambda x: 1j, slope, "must return a number"),
        (lambda x: "1", slope, "must return a number"),
        (lambda x: None, slope, "must return a number"),
        (lambda x: x, slope, "must return a number"),
        (bowl, lambda x: x[:2], r"must have shape \(3,\)"),
        (bowl, lambda x: np.zeros((3, 1)), r"must have shape \(3,\)"),
        (bowl, lambda x: 2.0, r"must have shape \(3,\)"),
        (bowl, lambda x: slope(x) * 1j, "real numbers; got complex"),
        (bowl, lambda x: slope(x) * np.nan, "finite at x0; entry 0 is nan"),
        (bowl, lambda x: np.array([1.0, -np.inf, 0.0]), "finite at x0; entry 1 is -inf"),
    ],
)
def test_values_at_the_start(value, gradient, match, hessian):
    with pytest.raises(ValueError, match=match):
        minimize_oba(Loss(value, gradient, twice), 0.1, hessian=hessian)
    with pytest.raises(ValueError, match=match):
        minimize_nqn(lambda x: (value(x), gradient(x)), np.zeros(3), jac=True)


@pytest.mark.parametrize("wrong", [lambda x, s, v: v * 1j, lambda x, s, v: ["a"] * len(v)])
def test_products_that_are_no_numbers(wrong):
    with pytest.raises(ValueError, match=r"what loss\.hessian_product returns must hold"):
        minimize_oba(Loss(bowl, slope, wrong), 0.1)


@HESSIANS
def test_a_gradient_that_ends_takes_the_run_back(hessian):
    def gradient(x):
        return slope(x) if x[0] < 1.0 else np.full(3, np.nan)

    result = minimize_oba(Loss(bowl, gradient, twice), 0.1, hessian=hessian)
    assert result.status == outcome.NOT_FINITE and not result.success
    assert result.x[0] < 1.0 and result.fun == bowl(result.x) + 0.1 * np.abs(result.x).sum()
    np.testing.assert_array_equal(result.grad, slope(result.x))


def test_curvature_that_is_not_finite_ends_the_run():
    result = minimize_oba(Loss(bowl, slope, lambda x, s, v: v * np.nan), 0.1)
    assert result.status == outcome.NOT_FINITE and not result.success and result.fun == 27.0


FALLING = {
    "a plane": (lambda x: -5 * x.sum(), lambda x: np.full(3, -5.0), None),
    "a plane far up": (lambda x: 1e6 - 5 * x.sum(), lambda x: np.full(3, -5.0), None),
    "a dome": (lambda x: -x @ x - x.sum(), lambda x: -2 * x - 1, lambda x, s, v: -2 * v),
    "a cliff": (lambda x: -np.exp(x).sum(), lambda x: -np.exp(x), lambda x, s, v: -np.exp(x[s]) * v),
    "an abyss": (lambda x: -np.inf if x[0] > 3 else -3 * x.sum(), lambda x: np.full(3, -3.0), None),
}


@HESSIANS
@pytest.mark.parametrize("name", FALLING)
@pytest.mark.filterwarnings("ignore:overflow")
def test_falling_for_ever_has_a_status(name, hessian):
    value, gradient, product = FALLING[name]
    result = minimize_oba(Loss(value, gradient, product), 0.1, hessian=hessian)
    assert result.status == outcome.UNBOUNDED and not result.success and "without bound" in result.message
    assert np.isfinite(result.fun) and np.isfinite(result.x).all()
    result = minimize_nqn(lambda x: (value(x), gradient(x)), np.zeros(3), jac=True)
    assert result.status == outcome.UNBOUNDED and not result.success and "without bound" in result.message
    assert np.isfinite(result.fun)


@HESSIANS
def test_a_run_that_is_short_of_iterations_is_not_unbounded(hessian):
    """Bounded below, far away or only just: the penalty holds what f alone does not."""
    far = Loss(lambda x: 1e-9 * ((x - 1e9) ** 2).sum(), lambda x: 2e-9 * (x - 1e9), lambda x, s, v: 2e-9 * v)
    held = Loss(lambda x: -0.0999 * x.sum(), lambda x: np.full(3, -0.0999))
    asks = []

    def value(x):
        asks.append(x.max())
        if x.max() > 1e12:
            raise OverflowError("math range error")
        return -5 * x.sum()

    assert minimize_oba(far, 0.1, hessian=hessian, max_iter=1).status == outcome.MAX_ITER
    assert minimize_oba(held, 0.1, x0=np.ones(3), hessian=hessian).status == outcome.CONVERGED
    refusing = Loss(value, lambda x: np.full(3, -5.0))
    assert minimize_oba(refusing, 0.1, hessian=hessian, max_iter=5).status == outcome.MAX_ITER
    assert max(asks) > 1e12


class Stretched:
    """A quadratic function of curvatures 1 and k along the axes, which counts its evaluations."""

    def __init__(self, k, n=6):
        self.n_variables, self.diagonal, self.n_values, self.n_gradients = n, np.full(n, 1.0), 0, 0
        self.diagonal[0] = k

    def value(self, x):
        self.n_values += 1
        return 0.5 * float(self.diagonal @ (x - 3.0) ** 2)

    def gradient(self, x):
        self.n_gradients += 1
        return self.diagonal * (x - 3.0)


def test_the_first_bound_takes_few_gradients():
    """The power method stops once its norm settles: 6 gradients, not 20."""
    loss = Stretched(1e3)
    problem = as_problem(loss, OBAOptions(hessian="lbfgs"))
    problem.start(np.zeros(6))
    assert 1e3 <= problem.lipschitz() <= 2.1e3 and loss.n_gradients <= 6


@pytest.mark.parametrize("too_small", [1e-3, 1e-6])
def test_a_bound_that_is_too_small_is_doubled_at_once(too_small):
    """Points between are searched only where the ISTA point itself is low enough."""
    loss = Stretched(1.0)
    problem = as_problem(loss, OBAOptions(hessian="lbfgs"))
    problem._lipschitz = too_small
    loss.problem = lambda: problem
    result = minimize_inner(loss, 0.1, hessian="lbfgs", gap=False, unit=1.0)
    assert result.success
    np.testing.assert_allclose(result.x, 2.9, rtol=1e-4)
    assert loss.n_values <= 3 * np.log2(1.0 / too_small) + 30


@pytest.mark.parametrize("value, expected", [(np.nan, None), (np.inf, None), (1.0, 1.0), (3.0, None)])
def test_the_ista_point_is_refused_where_it_is_no_number(value, expected):
    """One evaluation says that the Lipschitz constant was too small."""
    move = SimpleNamespace(direction=lambda dx: dx)
    seen = []

    def try_move(dz, x):
        seen.append(x.copy())
        return value

    state = SimpleNamespace(
        problem=SimpleNamespace(move_all=lambda: move, try_move=try_move), x=np.zeros(2), l1=np.zeros(2)
    )
    run = SimpleNamespace(
        counts=SimpleNamespace(nfev=0),
        kernels=SimpleNamespace(orthant=SimpleNamespace(penalty=lambda x, l1: 0.0)),
    )
    trial, ista = SimpleNamespace(x=np.full(2, 4.0), dz=np.full(2, 4.0)), np.ones(2)
    found = _search_segment(state, trial, ista, 2.0, 2.0, run)
    np.testing.assert_array_equal(seen[0], ista)
    if expected is None:
        assert found is None and run.counts.nfev == 1
    else:
        assert found[1] == expected and run.counts.nfev == 2
