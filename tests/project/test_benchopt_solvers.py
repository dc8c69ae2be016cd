"""The solver files for benchopt solve the objectives of its benchmarks, which are written out as formulas."""

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, QuantileRegressor

# What benchopt passes for the first point of a curve.
FIRST_TOLERANCE = 3e38
TOLERANCE = 1e-9
# Excess of our objective over that of the tightly solved peer, relative to it.
MOST_EXCESS = 1e-7
TIGHT = dict(tol=1e-12, max_iter=100_000)


@pytest.fixture
def load(checkout, monkeypatch):
    """Class of a file below benchmarks/benchopt, with small stand-ins for benchopt's modules."""
    benchopt, criteria = ModuleType("benchopt"), ModuleType("benchopt.stopping_criterion")
    benchopt.BaseSolver = type("BaseSolver", (), {})
    benchopt.BaseDataset = type("BaseDataset", (), {})
    criteria.SufficientProgressCriterion = lambda **settings: settings
    monkeypatch.setitem(sys.modules, "benchopt", benchopt)
    monkeypatch.setitem(sys.modules, "benchopt.stopping_criterion", criteria)

    def loaded(file, name):
        path = checkout / "benchmarks" / "benchopt" / file
        spec = importlib.util.spec_from_file_location("loaded_for_benchopt", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)

    return loaded


@pytest.fixture
def solve(load):
    """What a benchmark's solver returns for an objective's parameters."""

    def solved(benchmark, **objective):
        solver = load(f"{benchmark}/solvers/sparsekit.py", "Solver")()
        if hasattr(solver, "skip"):
            assert solver.skip(**objective) == (False, None)
        solver.set_objective(**objective)
        solver.warm_up()
        solver.run(FIRST_TOLERANCE)
        solver.run(TOLERANCE)
        return solver.get_result()

    return solved


def make_data(is_sparse):
    """X whose columns have different means, and y with a mean far from zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20)) + rng.random(20)
    X[np.abs(X) < 0.5] = 0.0
    y = 3.0 + X[:, :4] @ [2.0, -1.0, 1.0, 0.5] + rng.standard_normal(80)
    return (sparse.csc_matrix(X) if is_sparse else X), y


def assert_lowest(objective, ours, peer):
    """Our value is the peer's, at equal scaling; both differ from that of zero by much more."""
    value, least = objective(ours), objective(peer)
    assert value <= least + MOST_EXCESS * abs(least)
    assert objective(np.zeros_like(ours)) > 1.05 * least
    assert np.count_nonzero(ours) < ours.size


@pytest.mark.parametrize("is_sparse", [False, True])
def test_logistic_loss_is_a_sum(solve, is_sparse):
    X, y = make_data(is_sparse)
    y = np.where(y > np.median(y), 1.0, -1.0)
    lmbd = 0.1 * np.abs(X.T @ y).max() / 2

    def objective(beta):
        return np.log1p(np.exp(-y * (X @ beta))).sum() + lmbd * np.abs(beta).sum()

    ours = solve("benchmark_logreg_l1", X=X, y=y, lmbd=lmbd)["beta"]
    peer = LogisticRegression(
        l1_ratio=1, C=1 / lmbd, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(X, y)
    assert ours.shape == (20,)
    assert_lowest(objective, ours, peer.coef_[0])


def half_squares(residual):
    return 0.5 * residual @ residual


def pinball(residual, quantile=0.8):
    return np.where(residual > 0, quantile * residual, (quantile - 1) * residual).mean()


def l1(w):
    return np.abs(w).sum()


def mixed(w, l1_ratio=0.7):
    return l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * (w @ w)


# Benchmark: its result, its penalty's name and other parameters, loss of the residual, penalty, and the peer.
REGRESSIONS = {
    "lasso": ("beta", "lmbd", {}, half_squares, l1, lambda a, c: Lasso(a / 80, fit_intercept=c, **TIGHT)),
    "lasso_path": (
        "coefs", "lambdas", {}, half_squares, l1, lambda a, c: Lasso(a / 80, fit_intercept=c, **TIGHT)
    ),
    "elastic_net": (
        "beta", "lmbda", {"l1_ratio": 0.7}, lambda r: half_squares(r) / 80, mixed,
        lambda a, c: ElasticNet(a, l1_ratio=0.7, fit_intercept=c, **TIGHT),
    ),
    "quantile_regression": (
        "params", "lmbd", {"quantile": 0.8}, pinball, l1,
        lambda a, c: QuantileRegressor(quantile=0.8, alpha=a, fit_intercept=c),
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("benchmark", REGRESSIONS)
def test_regressions(solve, benchmark, is_sparse, fit_intercept):
    result, name, more, loss, penalty, make_peer = REGRESSIONS[benchmark]
    X, y = make_data(is_sparse)
    largest = 0.5 if loss is pinball else np.abs(X.T @ y).max() / (1 if loss is half_squares else 56)
    values = largest * np.array([0.5, 0.1, 0.02] if name == "lambdas" else [0.1])
    given = {name: values if name == "lambdas" else values[0], "fit_intercept": fit_intercept, **more}
    found = np.atleast_2d(solve(f"benchmark_{benchmark}", X=X, y=y, **given)[result].T)
    assert found.shape == (len(values), 20 + fit_intercept)
    for ours, strength in zip(found, values):

        def objective(v, strength=strength):
            residual = y - X @ v[:20] - (v[20] if fit_intercept else 0.0)
            return loss(residual) + strength * penalty(v[:20])

        peer = make_peer(strength, fit_intercept).fit(X, y)
        assert_lowest(objective, ours, np.append(peer.coef_, peer.intercept_)[: 20 + fit_intercept])


def test_lasso_leaves_out_linear_operators(load):
    X, y = make_data(False)
    solver = load("benchmark_lasso/solvers/sparsekit.py", "Solver")()
    skipped, reason = solver.skip(X=aslinearoperator(X), y=y, lmbd=1.0, fit_intercept=False)
    assert skipped and "LinearOperator" in reason


BENCHMARKS = ("logreg_l1", "lasso", "lasso_path", "elastic_net", "quantile_regression")


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_tolerances_fall_and_stay_above_zero(load, benchmark):
    solver = load(f"benchmark_{benchmark}/solvers/sparsekit.py", "Solver")()
    tolerances = [FIRST_TOLERANCE]
    for _ in range(20):
        tolerances.append(solver.get_next(tolerances[-1]))
    assert tolerances[1] == 0.1
    assert all(np.diff(tolerances) <= 0) and tolerances[-1] == 1e-15


@pytest.mark.parametrize("kind", ["dense", "text", "table"])
@pytest.mark.parametrize("target", ["numbers", "labels"])
def test_made_data(load, kind, target):
    dataset = load("datasets/made.py", "Dataset")()
    dataset.kind, dataset.target, dataset.random_state = kind, target, 0
    assert kind in dataset.parameters["kind"]
    data = dataset.get_data()
    X, y = data["X"], data["y"]
    assert sparse.issparse(X) == (kind != "dense") and y.shape == (X.shape[0],)
    assert np.isfinite(X.sum()) and np.isfinite(y).all()
    assert (set(y) == {-1.0, 1.0}) == (target == "labels")
    if kind == "table":
        assert (X.sum(axis=1) == len(load("datasets/made.py", "TABLE_CATEGORIES"))).all()
