"""How minimize_nqn is called and ends: forms of arguments, bad ones, callbacks, reports, exits."""

import numpy as np
import pytest
from scipy import optimize

from sparsekit import minimize_nqn
from sparsekit._solver import outcome


def corner(x):
    """(3.6) of the thesis."""
    r, sign = x[0] + 0.1 * x[1], np.sign(x[0] - x[1])
    return abs(x[0] - x[1]) + 0.5 * r**2, np.array([sign + r, 0.1 * r - sign])


BOUNDS = [(None, -0.5), (None, None)]


def test_as_a_method_of_scipy():
    box = np.array([[-np.inf, -0.5], [-np.inf, np.inf]])
    for bounds in (BOUNDS, box, optimize.Bounds(*box.T)):
        result = optimize.minimize(
            corner, [-0.7, 3.0], jac=True, bounds=bounds, method=minimize_nqn, options={"ftol": 1e-12}
        )
        np.testing.assert_allclose(result.x, [-0.5, -0.5], atol=1e-6)
    result = optimize.minimize(
        lambda x: corner(x)[0], [-0.7, 3.0], jac=lambda x: corner(x)[1], bounds=BOUNDS, method=minimize_nqn
    )
    np.testing.assert_allclose(result.x, [-0.5, -0.5], atol=1e-5)


def test_scipys_names_of_tolerances_and_limits(capsys):
    def run(**kwargs):
        return optimize.minimize(
            optimize.rosen, np.zeros(5), jac=optimize.rosen_der, method=minimize_nqn, **kwargs
        )

    loose, tight = run(tol=1e-2), run(tol=1e-10)
    assert loose.success and loose.nit < tight.nit and tight.optimality <= 1e-10
    own = run(options={"gtol": 1e-2, "ftol": 1e-2})
    assert run(tol=1e-10, options={"gtol": 1e-2, "ftol": 1e-2}).nit == own.nit == loose.nit
    assert run(options={"maxiter": 3, "disp": False}).nit == 3
    assert run(options={"maxfun": 5}).status == outcome.MAX_FUN and not capsys.readouterr().out
    shown = run(options={"disp": True})
    assert shown.message in capsys.readouterr().out
    for double in (dict(max_iter=3, maxiter=3), dict(max_fun=3, maxfun=3)):
        with pytest.raises(TypeError, match="give one of them"):
            minimize_nqn(corner, [-0.7, 3.0], jac=True, **double)


def test_a_pair_without_jac_is_refused_by_name():
    with pytest.raises(ValueError, match="fun, without jac=True, must return a number"):
        minimize_nqn(corner, [-0.7, 3.0])


def test_forms_of_the_gradient_and_arguments():
    def fun(x, a, b):
        return np.sum(a * (x - b) ** 2)

    def grad(x, a, b):
        return 2 * a * (x - b)

    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.3, -2.0, 5.0])
    bounds = [(0, 1), (-1, None), (None, 4)]
    expected = [0.3, -1.0, 4.0]
    exact = minimize_nqn(fun, np.zeros(3), (a, b), grad, bounds)
    pair = minimize_nqn(lambda x, *c: (fun(x, *c), list(grad(x, *c))), np.zeros(3), (a, b), True, bounds)
    np.testing.assert_allclose(exact.x, expected, atol=1e-7)
    np.testing.assert_array_equal(exact.x, pair.x)
    inside = []

    def watched(x, a, b):
        inside.append(x.copy())
        return fun(x, a, b)

    differences = minimize_nqn(watched, np.zeros(3), (a, b), None, bounds)
    np.testing.assert_allclose(differences.x, expected, atol=1e-6)
    assert differences.nfev == len(inside) > exact.nfev
    inside = np.array(inside)
    assert (inside[:, 0] >= 0).all() and (inside[:, 1] >= -1).all() and (inside[:, 2] <= 4).all()
    # one argument need not be in a tuple
    one = minimize_nqn(lambda x, c: (c * x @ x, 2 * c * x), np.ones(2), 3.0, True)
    np.testing.assert_allclose(one.x, 0.0, atol=1e-6)


def test_fixed_variables_and_starts_outside():
    result = minimize_nqn(
        lambda x: (np.abs(x - 3).sum(), np.sign(x - 3)), [9.0, -9.0, 0.0], jac=True,
        bounds=[(0, 5), (1, 1), (-1, 2)],
    )  # fmt: skip
    np.testing.assert_allclose(result.x, [3.0, 1.0, 2.0], atol=1e-8)
    assert result.x[1] == 1.0 and result.x[2] == 2.0
    assert "2 entries of x0" in result.warning and result.warning in result.message
    inside = minimize_nqn(corner, [-0.7, 3.0], jac=True, bounds=BOUNDS)
    assert inside.warning is None


def test_every_exit():
    def quadratic(x):
        return 0.5 * x @ x, x.copy()

    start = np.array([3.0, -4.0])
    assert minimize_nqn(quadratic, start, jac=True).status == 0
    stationary = minimize_nqn(quadratic, np.zeros(2), jac=True)
    assert (stationary.status, stationary.nit, stationary.nfev, stationary.success) == (0, 0, 1, True)
    kink = minimize_nqn(lambda x: (np.abs(x).sum(), np.where(x >= 0, 1.0, -1.0)), start, jac=True)
    assert (
        kink.status == outcome.SMALL_DECREASE and kink.success and kink.fun < 1e-6 and kink.optimality == 1.0
    )
    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, max_iter=3)
    assert (result.status, result.nit, result.success) == (
        outcome.MAX_ITER,
        3,
        False,
    ) and "max_iter" in result.message
    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, max_fun=7)
    assert (result.status, result.nfev) == (outcome.MAX_FUN, 7) and "max_fun" in result.message
    result = minimize_nqn(optimize.rosen, np.zeros(50), jac=optimize.rosen_der, max_time=1e-9)
    assert result.status == outcome.MAX_TIME and "max_time" in result.message
    wrong = minimize_nqn(lambda x: (x @ x, -2 * x), start, jac=True, ftol=-1)
    assert (
        wrong.status in (outcome.NO_DIRECTION, outcome.NO_PROGRESS)
        and not wrong.success
        and "gradient" in wrong.message
    )
    never = minimize_nqn(
        lambda x: (np.abs(x).sum(), np.where(x >= 0, 1.0, -1.0)), start, jac=True, ftol=-1, gtol=0.0
    )
    assert never.status == outcome.NO_PROGRESS and never.fun < 1e-12
    falling = minimize_nqn(lambda x: (x[0] + x[1] ** 2, np.array([1.0, 2 * x[1]])), start, jac=True)
    assert falling.status == outcome.UNBOUNDED and "bounds" in falling.message


def test_callbacks_get_copies_and_may_stop():
    seen = []

    def by_point(x):
        seen.append(x.copy())
        x[:] = np.nan
        return len(seen) == 4

    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, callback=by_point)
    assert (result.status, result.nit) == (outcome.STOPPED, 4)
    np.testing.assert_array_equal(result.x, seen[-1])

    def by_report(intermediate_result):
        seen.append(intermediate_result)
        if intermediate_result.nit == 2:
            raise StopIteration

    result = minimize_nqn(optimize.rosen, np.zeros(5), jac=optimize.rosen_der, callback=by_report)
    assert result.status == outcome.STOPPED and seen[-1].nit == 2 and seen[-1].fun == result.fun


def test_history():
    result = minimize_nqn(corner, [-0.7, 3.0], jac=True, bounds=BOUNDS, history=True)
    assert len(result.history) == result.nit
    # a trial point that was passed by may have been a little lower
    assert 0 <= result.history[-1]["f"] - result.fun < 1e-9 and result.history[-1]["nfev"] <= result.nfev
    assert (np.diff([line["f"] for line in result.history]) <= 0).all()
    assert result.history[-1]["n_active"] == 1
    # short of the kink the gradient holds nothing, the correction does
    assert (0, 1) in [(line["n_predicted"], line["n_held"]) for line in result.history]
    assert all(0 <= line["n_predicted"] <= line["n_held"] <= 2 for line in result.history)


def test_values_that_are_not_finite_are_stepped_back_from():
    def barrier(x):
        if x[0] <= 0.1:
            return (np.nan, np.nan * x) if x[0] < -1 else (np.inf, x)
        if x[0] > 5:
            return 0.0, np.full_like(x, np.nan)  # a point without a gradient is never accepted
        return x[0] - 0.5 * np.log(x[0] - 0.1) + (x[1] - 1) ** 2, np.array(
            [1 - 0.5 / (x[0] - 0.1), 2 * x[1] - 2]
        )

    for start in ([4.9, 50.0], [0.10001, -3.0]):
        result = minimize_nqn(barrier, start, jac=True)
        np.testing.assert_allclose(result.x, [0.6, 1.0], atol=1e-5)


def test_minus_infinity_is_no_minimum():
    result = minimize_nqn(
        lambda x: (np.log(x[0]) if x[0] > 0 else -np.inf, 1 / x), [0.5], jac=True, bounds=[(0, 1)]
    )
    assert np.isfinite(result.fun) and result.x[0] > 0


def test_the_users_arrays_are_neither_kept_nor_changed():
    buffer, x0 = np.empty(3), np.array([1.0, 2.0, 3.0])

    def fun(x):
        value = 0.5 * x @ x
        buffer[:] = x
        x[:] = np.nan
        return value, buffer

    result = minimize_nqn(fun, x0, jac=True)
    np.testing.assert_allclose(result.x, 0.0, atol=1e-6)
    np.testing.assert_array_equal(x0, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("jac", [None, False, "2-point"])
def test_a_function_may_overwrite_its_argument_under_forward_differences(jac):
    def fun(x):
        value = np.sum((x - np.arange(5)) ** 2)
        x[:] = np.nan
        return value

    result = minimize_nqn(fun, np.full(5, 3.0), jac=jac)
    assert result.success
    np.testing.assert_allclose(result.x, np.arange(5), atol=1e-6)


def test_no_variables_and_no_memory():
    empty = minimize_nqn(lambda x: (7.0, np.empty(0)), np.empty(0), jac=True)
    assert empty.success and empty.fun == 7.0 and empty.x.shape == (0,)
    steepest = minimize_nqn(lambda x: (x @ x, 2 * x), np.ones(4), jac=True, memory=0)
    np.testing.assert_allclose(steepest.x, 0.0, atol=1e-6)


@pytest.mark.parametrize(
    "kwargs, error, words",
    [
        (dict(bounds=[(0, 1), (2, 1)]), ValueError, "variable 1 cross"),
        (dict(bounds=[(0, 1), (np.nan, 1)]), ValueError, "lower bound of variable 1 is NaN"),
        (dict(bounds=[(0, 1), (np.inf, np.inf)]), ValueError, "variable 1 hold no finite"),
        (dict(bounds=[(0, 1)]), ValueError, "each of the 2 variables; got 1"),
        (dict(bounds=[(0, 1), 3]), ValueError, "number 1 is 3"),
        (dict(bounds=optimize.Bounds([0, 0, 0], [1, 1, 1])), ValueError, "shape"),
        (dict(active_set="newest"), ValueError, "active_set"),
        (dict(memory=-1), ValueError, "memory"),
        (dict(n_gradients=0), ValueError, "n_gradients"),
        (dict(max_iter=1.5), ValueError, "max_iter"),
        (dict(max_fun=0), ValueError, "max_fun"),
        (dict(gtol=-1.0), ValueError, "gtol"),
        (dict(gtol=np.nan), ValueError, "gtol"),
        (dict(max_time=-1), ValueError, "max_time"),
        (dict(jac="exact"), ValueError, "jac"),
        (dict(jac="3-point"), ValueError, "forward differences"),
        (dict(tol=-1.0), ValueError, "tol"),
        (dict(maxiter=1.5), ValueError, "max_iter"),
        (dict(constraints=[1]), ValueError, "constraints"),
        (dict(hess=len), ValueError, "hess"),
        (dict(x0=[[1.0]]), ValueError, "x0"),
        (dict(x0=[1.0, np.nan]), ValueError, "entry 1"),
        (dict(x0=[1.0, np.inf]), ValueError, "finite"),
        (dict(fun=3), TypeError, "fun"),
        (dict(fun=lambda x: x @ x), ValueError, "jac=True"),
    ],
)
def test_bad_input(kwargs, error, words):
    given_ = {"fun": lambda x: (x @ x, 2 * x), "x0": [1.0, 1.0], "jac": True, **kwargs}
    with pytest.raises(error, match=words):
        minimize_nqn(**given_)


def test_errors_of_the_function_come_through():
    def fails(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        minimize_nqn(fails, [1.0], jac=True)
