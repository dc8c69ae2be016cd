"""The displays: what they draw is what the path or history says."""

import inspect
import sys

import numpy as np
import pytest
from children import run_limited
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

import sparsekit
from sparsekit.inspection import ConvergenceDisplay, RegularizationPathDisplay
from sparsekit.optimize import LogisticLoss

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return (X - X.mean()) / X.std(), y


def test_path_display_draws_the_path(cancer):
    X, y = cancer
    path = sparsekit.l1_logistic_path(X, y, n_lambdas=10)
    display = RegularizationPathDisplay.from_path(path, n_named=5, chosen=0.1)
    ever = np.flatnonzero(np.abs(path.coefs).max(axis=1))
    assert sorted(display.drawn_) == list(ever) and len(display.lines_) == len(ever)
    for feature, line in zip(display.drawn_, display.lines_):
        np.testing.assert_allclose(line.get_xdata(), np.log10(path.Cs))
        np.testing.assert_array_equal(line.get_ydata(), path.coefs[feature])
    top = np.argsort(-np.abs(path.coefs).max(axis=1))[:5]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [X.columns[j] for j in top] + ["C = 0.1"]
    assert "log" in display.ax_.get_xlabel() and display.ax_.get_ylabel() == "coefficient"
    ax = matplotlib.pyplot.figure().add_subplot()
    few = RegularizationPathDisplay.from_path(path, max_lines=3, ax=ax)
    assert few.ax_ is ax
    assert len(few.lines_) == 3 and f"3 of {len(ever)} coefficients" in few.ax_.get_title()


def test_path_display_of_classes_sparse_and_lasso():
    X, y = load_iris(return_X_y=True)
    dense = sparsekit.l1_logistic_path(scale(X), y, n_lambdas=6)
    sparse = sparsekit.l1_logistic_path(scale(X), y, n_lambdas=6, coefs="sparse")
    for target in range(3):
        first = RegularizationPathDisplay.from_path(dense, target=target)
        second = RegularizationPathDisplay.from_path(sparse, target=target)
        np.testing.assert_array_equal(first.drawn_, second.drawn_)
        for one, two, feature in zip(first.lines_, second.lines_, first.drawn_):
            np.testing.assert_array_equal(one.get_ydata(), two.get_ydata())
            np.testing.assert_array_equal(one.get_ydata(), dense.coefs[target, feature])
        assert f"class {target}" in first.ax_.get_title()
    with pytest.raises(ValueError, match="target"):
        RegularizationPathDisplay.from_path(dense, target=3)
    with pytest.raises(ValueError, match="feature_names"):
        RegularizationPathDisplay.from_path(dense, feature_names=["one"])
    for chosen in (0, -1.0, np.inf, np.nan, "0.1"):
        with pytest.raises(ValueError, match="chosen must be a finite number > 0, the path's C; got"):
            RegularizationPathDisplay.from_path(dense, chosen=chosen)
    path = sparsekit.LassoOBA.path(*load_diabetes(return_X_y=True), n_lambdas=5)
    display = RegularizationPathDisplay.from_path(path)
    assert "alpha" in display.ax_.get_xlabel()
    np.testing.assert_allclose(display.lines_[0].get_xdata(), -np.log10(path.alphas))


def test_convergence_display(cancer, tmp_path):
    X, y = cancer
    tight = sparsekit.L1LogisticOBA(history=True, tol=1e-8).fit(X, y)
    loose = sparsekit.L1LogisticOBA(history=True, tol=1e-2).fit(X, y)
    display = ConvergenceDisplay.from_estimator(tight, loose, names=["tight", "loose"])
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), tight.history_["optimality"])
    np.testing.assert_array_equal(display.lines_[1].get_xdata(), loose.history_["time"])
    assert display.ax_.get_yscale() == "log"
    display.figure_.savefig(tmp_path / "convergence.png")
    gap = ConvergenceDisplay.from_estimator(tight, y="gap", x="iteration")
    fun = tight.history_["fun"]
    values = gap.lines_[0].get_ydata()
    np.testing.assert_allclose(values[:-1], (fun[:-1] - fun.min()) / fun.min())
    assert np.isnan(values[-1])  # the best itself can't be drawn on a log axis
    np.testing.assert_array_equal(gap.lines_[0].get_xdata(), np.arange(len(fun)))
    twice = ConvergenceDisplay.from_estimator(tight, loose)
    assert [line.get_label() for line in twice.lines_] == ["L1LogisticOBA 1", "L1LogisticOBA 2"]
    with pytest.raises(ValueError, match="history=True"):
        ConvergenceDisplay.from_estimator(sparsekit.L1LogisticOBA().fit(X, y))
    with pytest.raises(ValueError, match="y must be"):
        ConvergenceDisplay.from_estimator(tight, y="loss")
    with pytest.raises(ValueError, match="names must be"):
        ConvergenceDisplay.from_estimator(tight, names=["a", "b"])


RECORDERS = sorted(
    name
    for name in sparsekit.__all__
    if inspect.isclass(getattr(sparsekit, name))
    and "history" in inspect.signature(getattr(sparsekit, name)).parameters
)


def fitted(name, **options):
    X, y = load_iris(return_X_y=True)
    if name.startswith("LPSparseMAP"):
        y = np.column_stack([y == 0, y != 1])
    if name == "SequenceTagger":
        return sparsekit.SequenceTagger(**options).fit([scale(X)], [y])
    return getattr(sparsekit, name)(**options).fit(scale(X), y)


def test_all_estimators_with_a_history_are_known():
    assert {"L1LogisticOBA", "LassoOBA", "SparsemaxClassifier", "SoftmaxClassifier", "BoundedRegressor",
            "BoundedClassifier", "LPSparseMAPClassifier"} <= set(RECORDERS)  # fmt: skip


@pytest.mark.parametrize("name", RECORDERS)
@pytest.mark.thorough(keep=3)
def test_every_estimators_history_is_drawn(name):
    model = fitted(name, history=True)
    history = {key: np.asarray(values) for key, values in model.history_.items()}
    outputs = history.get("output", np.zeros(len(history["fun"])))
    n_iter = np.atleast_1d(model.n_iter_)
    for y, column in (("optimality", "optimality"), ("objective", "fun")):
        for x in ("time", "iteration"):
            display = ConvergenceDisplay.from_estimator(model, y=y, x=x)
            assert len(display.lines_) == len(np.unique(outputs))
            for output, line in enumerate(display.lines_):
                mine = outputs == output
                values = history[column][mine]
                shown = line.get_ydata()
                if y == "optimality":  # no zero on a log axis
                    values = np.where(values > 0, values, np.nan)
                np.testing.assert_array_equal(shown, values)
                if x == "time":
                    np.testing.assert_array_equal(line.get_xdata(), history["time"][mine])
                else:  # the last is the number of iterations, whether the start is there or not
                    assert line.get_xdata()[-1] == n_iter[output] and (np.diff(line.get_xdata()) == 1).all()
            display.figure_.canvas.draw()
    with pytest.raises(ValueError, match=f"{name} has no history_: fit it with history=True"):
        ConvergenceDisplay.from_estimator(fitted(name))


def test_convergence_of_outputs_has_a_best_each():
    X, y = load_iris(return_X_y=True)
    model = sparsekit.BoundedClassifier(history=True).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model, y="gap")
    assert [line.get_label() for line in display.lines_] == [
        f"BoundedClassifier, output {k}" for k in range(3)
    ]
    for output, line in enumerate(display.lines_):
        fun = model.history_["fun"][model.history_["output"] == output]
        gap = (fun - fun.min()) / fun.min()
        np.testing.assert_allclose(line.get_ydata(), np.where(gap > 0, gap, np.nan))


def test_convergence_of_epochs_and_of_what_records_none():
    X, y = load_iris(return_X_y=True)
    model = sparsekit.ExtremeSoftmaxSGD(max_iter=3, learning_rate=0.01, random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), model.objective_curve_)
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [1, 2, 3])
    assert display.ax_.get_ylabel() == "objective" and display.ax_.get_yscale() == "linear"
    with pytest.raises(ValueError, match="x='time' needs 'time'"):
        ConvergenceDisplay.from_estimator(model, x="time")
    with pytest.raises(ValueError, match="call fit"):
        ConvergenceDisplay.from_estimator(sparsekit.ExtremeSoftmaxSGD())
    with pytest.raises(TypeError, match="SparsemaxClassifierCV records no history"):
        ConvergenceDisplay.from_estimator(sparsekit.SparsemaxClassifierCV().fit(X, y))
    with pytest.raises(ValueError, match="at least one"):
        ConvergenceDisplay.from_estimator()


def test_convergence_of_results(cancer):
    X, y = cancer
    loss = LogisticLoss(X.to_numpy(), np.where(y, 1, -1))
    oba = sparsekit.minimize_oba(loss, 1.0, history=True)
    display = ConvergenceDisplay.from_history({"OBA": oba})
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), oba.history["optimality"])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["OBA"]

    def fun(x):
        return float(np.abs(x).sum() + x @ x), np.sign(x) + 2 * x

    runs = [sparsekit.minimize_nqn(fun, np.full(3, start), jac=True, history=True) for start in (1.0, 2.0)]
    named = {f"result {k}": run for k, run in enumerate(runs, start=1)}
    display = ConvergenceDisplay.from_history(named, x="iteration")
    for run, line in zip(runs, display.lines_):
        np.testing.assert_array_equal(line.get_ydata(), [row["f"] for row in run.history])
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, run.nit + 1))
    assert display.ax_.get_ylabel() == "objective" and display.ax_.get_xlabel() == "iteration"
    # solvers of two kinds
    display = ConvergenceDisplay.from_history({"OBA": oba, **named}, x="time", y="objective")
    for run, line in zip(runs, display.lines_[1:]):
        times = [row["time"] for row in run.history]
        np.testing.assert_array_equal(line.get_xdata(), times)
        assert times[0] > 0 and (np.diff(times) > 0).all()
    display = ConvergenceDisplay.from_history({"run": runs[0]}, y="projected_gradient", x="evaluations")
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [row["nfev"] for row in runs[0].history])
    assert "projected gradient" in display.ax_.get_ylabel()
    with pytest.raises(ValueError, match="y='dual_gap' needs 'dual_gap'; 'result 1' recorded fun"):
        ConvergenceDisplay.from_history(named, y="dual_gap")
    with pytest.raises(ValueError, match="result 1 has no history: call the solver with history=True"):
        ConvergenceDisplay.from_history({"result 1": sparsekit.minimize_nqn(fun, np.ones(3), jac=True)})


def test_a_run_that_is_at_the_optimum_at_once_is_seen():
    done = sparsekit.minimize_nqn(lambda x: (x @ x, 2 * x), np.zeros(2), jac=True, history=True)
    far = sparsekit.minimize_nqn(lambda x: (x @ x, 2 * x), np.full(2, 5.0), jac=True, history=True)
    assert not done.history  # there was no iteration
    display = ConvergenceDisplay.from_history({"done": done, "far": far}, y="gap", best=0)
    assert display.ax_.get_ylabel() == "objective gap"  # relative to 0 it cannot be
    triangle = display.edges_[0]
    assert triangle.get_marker() == "v" and triangle.get_label() == "done: 0"
    assert triangle.get_color() == display.lines_[0].get_color()
    np.testing.assert_array_equal(triangle.get_xdata(), [0])
    display.figure_.canvas.draw()
    height = triangle.get_transform().transform([(0, 0)])[0, 1]
    assert height == pytest.approx(display.ax_.get_window_extent().y0)  # the end of the axis
    assert ConvergenceDisplay.from_history({"done": done}).ax_.get_xlabel() == "time (s)"
    model = sparsekit.SparsemaxClassifier(history=True).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    alone = ConvergenceDisplay.from_estimator(model)  # optimal from the start
    assert [t.get_text() for t in alone.ax_.get_legend().get_texts()] == [
        "SparsemaxClassifier",
        "SparsemaxClassifier: 0",
    ]


def test_convergence_of_zeros_infinities_and_dual_gaps():
    history = {"fun": [3.0, 2.0, 1.0], "dual_gap": [np.inf, 0.5, 0.0]}
    display = ConvergenceDisplay.from_history({"mine": history}, y="dual_gap")
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [np.nan, 0.5, np.nan])
    drawn = [(line.get_marker(), *line.get_xdata(), *line.get_ydata()) for line in display.edges_]
    assert drawn == [("v", 2, 0.0), ("^", 0, 1.0)]
    assert display.ax_.get_ylabel() == "duality gap"
    objective = ConvergenceDisplay.from_history({"mine": {"fun": [1.0, 0.0, -1.0]}}, y="objective")
    np.testing.assert_array_equal(objective.lines_[0].get_ydata(), [1.0, 0.0, -1.0])
    assert not objective.edges_
    ax = matplotlib.pyplot.figure().add_subplot()
    assert ConvergenceDisplay.from_history({"mine": history}, ax=ax, y="gap", best=0.5).ax_ is ax
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [5.0, 3.0, 1.0])
    with pytest.raises(ValueError, match="at least one"):
        ConvergenceDisplay.from_history({})


def test_path_display_of_sparsemax_and_softmax():
    X, y = load_iris(return_X_y=True, as_frame=True)
    path = sparsekit.fenchel_young_path(X, y, alphas=[1e-3, 1e-1, 1e-2])
    for target in range(3):
        display = RegularizationPathDisplay.from_path(path, target=target, chosen=0.02)
        assert sorted(display.drawn_) == [0, 1, 2, 3]
        for feature, line in zip(display.drawn_, display.lines_):
            np.testing.assert_allclose(line.get_xdata(), [1, 2, 3])
            np.testing.assert_array_equal(line.get_ydata(), path.coefs[:, target, feature])
        np.testing.assert_allclose(display.ax_.lines[-1].get_xdata(), -np.log10(0.02))
        assert f"class {target}" in display.ax_.get_title() and "alpha" in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match=r"target must be in \[0, 2\]"):
        RegularizationPathDisplay.from_path(path, target=3)
    with pytest.raises(TypeError, match="path must be a result of"):
        RegularizationPathDisplay.from_path(np.ones((3, 2)))


def test_works_without_matplotlib():
    code = """
import sys
sys.modules["matplotlib"] = None
from sklearn.datasets import load_iris
from sparsekit import l1_logistic_path
from sparsekit.inspection import RegularizationPathDisplay
path = l1_logistic_path(*load_iris(return_X_y=True), n_lambdas=3)
try:
    RegularizationPathDisplay.from_path(path)
except ImportError as error:
    print("told:", error)
"""
    done = run_limited([sys.executable, "-P", "-c", code], timeout=120)
    assert "told: matplotlib is needed" in done.stdout, done.stderr
