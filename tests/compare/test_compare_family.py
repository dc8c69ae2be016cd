"""``sparsekit compare --family``: every adapter states the same generalised linear model."""

import csv
import json

import numpy as np
import pytest
from compare_problems import climb
from scipy import sparse
from sklearn.linear_model import TweedieRegressor

from sparsekit import GLMOBA
from sparsekit._compare import family_peers, io
from sparsekit._compare.cli import main
from sparsekit._compare.family_problem import FamilyProblem, make_claims
from sparsekit._compare.options import DISPERSION, FAMILIES, POWERS

FAST = ["--peers", "sklearn-lbfgs", "--max-time", "2"]


def make_problem(family, kind="dense", fit_intercept=True, l1_ratio=1.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8)) * (rng.random((150, 8)) < 0.7)
    mean = np.exp(X @ np.where(np.arange(8) % 3 == 0, 0.5, 0.0) + 0.2)
    y = rng.gamma(2.0, mean / 2.0) if family == "gamma" else rng.poisson(mean).astype(float)
    X = sparse.csr_matrix(X) if kind == "sparse" else X
    return FamilyProblem("small", X, y, fit_intercept, family=family, l1_ratio=l1_ratio)


@pytest.fixture
def data(tmp_path):
    problem = make_problem("poisson")
    path = tmp_path / "counts.csv"
    np.savetxt(path, np.column_stack([problem.X, problem.y]), delimiter=",")
    return path


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize(
    ("kind", "fit_intercept", "l1_ratio", "ratio"),
    [("dense", True, 1.0, 0.1), ("sparse", False, 0.0, 0.1), ("dense", False, 0.5, 1e-2),
     ("sparse", True, 0.0, 1e-2), ("dense", True, 0.0, 0.1)],
)  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("solver", family_peers.all_family_solvers(), ids=lambda s: s.key)
def test_the_knob_leads_to_the_stated_problem(solver, family, kind, fit_intercept, l1_ratio, ratio):
    if solver.missing():
        pytest.skip(f"{solver.title}: {solver.missing()}")
    problem = make_problem(family, kind, fit_intercept, l1_ratio)
    if solver.refuses(problem):
        assert (solver.key == "statsmodels" and (kind == "sparse" or family == "tweedie")) or (
            solver.key.startswith("sklearn") and (l1_ratio > 0 or family == "negative-binomial")
        )
        return
    C = 1 / (ratio * problem.lambda_max)
    exact = GLMOBA(
        family, dispersion=DISPERSION, alpha=problem.alpha(C), l1_ratio=l1_ratio, tol=1e-11,
        fit_intercept=fit_intercept,
    ).fit(problem.X, problem.y)  # fmt: skip
    best = problem.objective(exact.coef_, exact.intercept_, C)
    assert best == pytest.approx(exact.objective_, rel=1e-12)
    climb(solver, problem, C, best)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("family", POWERS)
def test_problem_against_scikit_learn(family, fit_intercept):
    problem = make_problem(family, fit_intercept=fit_intercept, l1_ratio=0.0)
    C = 1 / (0.1 * problem.lambda_max)
    model = TweedieRegressor(
        power=POWERS[family], link="log", alpha=problem.alpha(C), fit_intercept=fit_intercept, tol=1e-10,
        max_iter=10_000,
    ).fit(problem.X, problem.y)  # fmt: skip
    best = problem.objective(model.coef_, model.intercept_, C)
    for scale in (0.0, 0.99, 1.01):
        assert problem.objective(scale * model.coef_, model.intercept_, C) > best
    assert np.isnan(problem.lower_bound(model.coef_, model.intercept_, C))
    for ratio in (1.0, 0.5):
        lasso = make_problem(family, fit_intercept=fit_intercept, l1_ratio=ratio)
        for part, is_zero in ((1.0001, True), (0.99, False)):
            alpha = part * lasso.lambda_max / len(lasso.y)
            fit = GLMOBA(family, alpha=alpha, l1_ratio=ratio, fit_intercept=fit_intercept)
            assert fit.fit(lasso.X, lasso.y).coef_.any() != is_zero


@pytest.mark.parametrize("family", FAMILIES)
def test_held_out_rows(family):
    problem = make_problem(family)
    model = GLMOBA(family, dispersion=DISPERSION, alpha=0.05).fit(problem.X, problem.y)
    held = FamilyProblem("h", problem.X, problem.y, True, problem.X[:30], problem.y[:30], family=family)
    d2, mean = held.held_out(model.coef_, model.intercept_)
    assert d2 == pytest.approx(model.score(problem.X[:30], problem.y[:30]))
    assert mean > 0
    assert np.isnan(problem.held_out(model.coef_, model.intercept_)).all()


def test_problems_go_to_processes_with_their_family():
    problem = make_problem("gamma", l1_ratio=0.25)
    for part in (problem.training_part(), problem.sample()):
        assert (part.family, part.l1_ratio, part.fit_intercept) == ("gamma", 0.25, True)
        assert part.X_test is None
    assert problem.sample().X.shape == (40, 8)


@pytest.mark.parametrize("family", FAMILIES)
def test_made_claims_are_one_hot_with_targets_of_the_family(family):
    X, y = make_claims(family)
    assert sparse.issparse(X) and (X.sum(axis=1) == 5).all() and set(X.data) == {1.0}
    assert (y >= 0).all() and np.isfinite(y).all()
    assert (y == 0).any() == (family != "gamma")
    assert (y == np.rint(y)).all() == (family in ("poisson", "negative-binomial"))


def test_own_file(data, tmp_path, capsys):
    out_json, out_csv = tmp_path / "out.json", tmp_path / "out.csv"
    argv = ["compare", "--family", "poisson", "--l1-ratio", "0", str(data), "--alpha", "0.1,0.01"]
    assert main([*argv, "--json", str(out_json), "--csv", str(out_csv), *FAST]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "alpha/2 ||w||^2, D the poisson deviance, z_i = x_i.w + b" in " ".join(out.split())
    assert "alpha = 0.1 (lambda" in out and "GLMOBA is" in out and "D2" in out and "accuracy" not in out
    content = json.loads(out_json.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        ours, theirs = cell["tracks"]
        assert (ours["solver"], theirs["solver"]) == ("sparsekit", "sklearn-lbfgs")
        assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-6)
        assert ours["mean_deviance"] > 0
    with open(out_csv, encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 4 and float(rows[0]["d2"]) == pytest.approx(
        content["cells"][0]["tracks"][0]["d2"], rel=1e-3
    )


def test_without_files(capsys):
    argv = ["compare", "--family", "gamma", "--lambda-ratio", "0.1", "--max-time", "1", "--peers", "glum"]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "claims (15000 x 200, sparse" in out and "diabetes (331 x 10, dense" in out
    assert "alpha ||w||_1, D the gamma deviance" in " ".join(out.split())


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--family", "poisson", "--C", "1"], "--alpha or --lambda-ratio"),
        (["--family", "poisson", "--lasso"], "not allowed with argument"),
        (["--family", "poisson", "--path", "5"], "no --family"),
        (["--family", "poisson", "--positive", "1"], "--positive is for classes"),
        (["--family", "poisson", "--l1-ratio", "2"], "must be in [0, 1], is 2"),
        (["--family", "beta"], "invalid choice"),
        (["--l1-ratio", "0.5"], "--l1-ratio needs --family"),
    ],
)
def test_options_that_do_not_go_together(data, capsys, argv, words):
    assert main(["compare", str(data), *argv]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("family", "column", "words"),
    [
        ("poisson", [-1, 2, 0, 3], "y must be at least 0 .* got -1.0 in row 0"),
        ("gamma", [1, 2, 0, 3], "y must be above 0 .* in row 2"),
        ("gamma", ["a", "b", "c", "d"], "--lasso and --family need numbers"),
    ],
)
def test_targets_out_of_range_are_named(tmp_path, family, column, words):
    path = tmp_path / "bad.csv"
    path.write_text("x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(column)), encoding="utf-8")
    with pytest.raises(io.DataError, match=words):
        io.read_problem(path, test_size=0, numbers=lambda *given: FamilyProblem(*given, family=family))
