"""``sparsekit compare --lasso``: every adapter states the same least squares, and reports speak of them."""

import csv
import json

import numpy as np
import pytest
from compare_problems import climb, make_problem
from scipy import sparse
from sklearn.linear_model import Lasso

from sparsekit import LassoOBA
from sparsekit._compare import io, lasso_peers
from sparsekit._compare.cli import main
from sparsekit._compare.lasso_problem import LassoProblem

FAST = ["--peers", "lasso", "--max-time", "2"]


@pytest.fixture
def data(tmp_path):
    problem = make_problem("dense", True, is_lasso=True)
    path = tmp_path / "mine.csv"
    np.savetxt(path, np.column_stack([problem.X, problem.y]), delimiter=",")
    return path


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "free intercept"])
@pytest.mark.parametrize("ratio", [0.1, 1e-3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("solver", lasso_peers.all_lasso_solvers(), ids=lambda s: s.key)
def test_the_knob_leads_to_the_stated_problem(solver, kind, ratio, fit_intercept):
    if solver.missing():
        pytest.skip(f"{solver.title}: {solver.missing()}")
    problem = make_problem(kind, fit_intercept, is_lasso=True)
    if solver.refuses(problem):
        assert kind == "sparse" and solver.key == "lasso-gram"
        return
    C = 1 / (ratio * problem.lambda_max)
    exact = LassoOBA(alpha=problem.alpha(C), fit_intercept=fit_intercept, tol=1e-11).fit(problem.X, problem.y)
    best = problem.objective(exact.coef_, exact.intercept_, C)
    assert best == pytest.approx(exact.objective_, rel=1e-12)
    climb(solver, problem, C, best)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_problem_against_scikit_learn(fit_intercept):
    """Objective, largest useful penalty, and a bound that is below the optimum and tight at it."""
    problem = make_problem("dense", fit_intercept, is_lasso=True)
    C = 1 / (0.1 * problem.lambda_max)
    model = Lasso(problem.alpha(C), fit_intercept=fit_intercept, tol=1e-14, max_iter=10**5)
    model.fit(problem.X, problem.y)
    best = problem.objective(model.coef_, model.intercept_, C)
    residual = problem.y - model.predict(problem.X)
    assert best == pytest.approx(residual @ residual / 240 + problem.alpha(C) * np.abs(model.coef_).sum())
    assert problem.lower_bound(model.coef_, model.intercept_, C) == pytest.approx(best, rel=1e-9)
    for scale in (0.0, 0.5, 2.0, -1.0):
        assert problem.lower_bound(scale * model.coef_, model.intercept_, C) <= best * (1 + 1e-12)
    at_zero = LassoOBA(alpha=problem.lambda_max / 120 * 1.0001, fit_intercept=fit_intercept)
    assert not at_zero.fit(problem.X, problem.y).coef_.any()
    at_zero.set_params(alpha=problem.lambda_max / 120 * 0.99)
    assert at_zero.fit(problem.X, problem.y).coef_.any()


def test_held_out_rows():
    problem = make_problem("dense", True, is_lasso=True)
    model = LassoOBA(alpha=0.1).fit(problem.X, problem.y)
    held = LassoProblem("h", problem.X, problem.y, True, problem.X[:30], problem.y[:30])
    r2, error = held.held_out(model.coef_, model.intercept_)
    assert r2 == pytest.approx(model.score(problem.X[:30], problem.y[:30]))
    assert error == pytest.approx(np.mean((model.predict(problem.X[:30]) - problem.y[:30]) ** 2))
    assert np.isnan(problem.held_out(model.coef_, model.intercept_)).all()


def test_own_file(data, tmp_path, capsys):
    out_json, out_csv = tmp_path / "out.json", tmp_path / "out.csv"
    argv = ["compare", "--lasso", str(data), "--alpha", "0.1,0.01"]
    assert main([*argv, "--json", str(out_json), "--csv", str(out_csv), *FAST]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "alpha ||w||_1, z_i = x_i.w + b, b not penalised" in " ".join(out.split())
    assert "alpha = 0.1 (lambda" in out and out.index("alpha = 0.1 ") < out.index("alpha = 0.01 ")
    assert "LassoOBA is" in out and "scikit-learn's Lasso" in out and "LIBLINEAR" not in out
    assert "; 30 rows held out; columns standardised" in out and "R2" in out and "accuracy" not in out
    content = json.loads(out_json.read_text(encoding="utf-8"))
    assert [cell["alpha"] for cell in content["cells"]] == pytest.approx([0.1, 0.01])
    for cell in content["cells"]:
        ours, theirs = cell["tracks"]
        assert (ours["solver"], theirs["solver"]) == ("sparsekit", "lasso")
        assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-6)
        assert ours["r2"] > 0.8 and ours["mean_squared_error"] > 0
        assert cell["certified_gap"] < 1e-6
    with open(out_csv, encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 4 and float(rows[0]["alpha"]) == pytest.approx(0.1) and float(rows[0]["r2"]) > 0.8


def test_without_files(capsys):
    argv = ["compare", "--lasso", "--no-intercept", "--lambda-ratio", "0.5", "--max-time", "1"]
    assert main([*argv, "--peers", "lasso"]) == 0
    out = capsys.readouterr().out
    assert "diabetes (331 x 10" in out and "diabetes, products (331 x 285" in out and "No intercept" in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--lasso", "--C", "1"], "--alpha or --lambda-ratio"),
        (["--alpha", "1"], "--alpha needs --lasso"),
        (["--lasso", "--positive", "1"], "--positive is for classes"),
        (["--lasso", "--peers", "liblinear"], "unknown solver"),
    ],
)
def test_options_that_do_not_go_together(data, capsys, argv, words):
    assert main(["compare", str(data), *argv]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--alpha", "1,x"], "argument --alpha: must be a number, is x"),
        (["--lambda-ratio", "-1"], "argument --lambda-ratio: must be a positive number, is -1"),
        (["--test-size", "half"], "argument --test-size: must be a number, is half"),
        (["--n-lambda", "2.5"], "argument --n-lambda: must be a whole number, is 2.5"),
    ],
)
def test_options_that_are_no_numbers(data, capsys, argv, words):
    assert main(["compare", str(data), "--lasso", *argv]) == 2
    assert words in capsys.readouterr().err


def test_columns_that_say_nothing(tmp_path, capsys):
    rows = "".join(f"1,0.1,{0.7 * i**2}\n" for i in range(30))
    path = tmp_path / "constant.csv"
    path.write_text("a,b,y\n" + rows, encoding="utf-8")
    assert main(["compare", str(path), "--lasso", "--peers", "lasso"]) == 1
    assert "no feature is related to the target" in capsys.readouterr().err
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    for size in (1e-200, 1.0, 1e200):  # data of any size do
        for matrix in (size * X, sparse.csr_array(size * X)):
            found = LassoProblem("", matrix, y, True, None, None, []).lambda_max
            np.testing.assert_allclose(found, size * np.abs(X.T @ (y - y.mean())).max())


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["a", "b", "c", "d"], "--lasso and --family need numbers"),
        (["2", "2", "2", "2"], "all 4 rows have the target 2"),
    ],
)
def test_targets_that_are_none(tmp_path, column, words):
    path = tmp_path / "bad.csv"
    path.write_text("x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(column)), encoding="utf-8")
    with pytest.raises(io.DataError, match=words):
        io.read_problem(path, numbers=LassoProblem)
