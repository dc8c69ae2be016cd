"""``sparsekit compare --path``: every solver states the same problem, and reports say what failed."""

import json

import numpy as np
import pytest
from compare_problems import make_problem

from sparsekit._compare import paths, peers
from sparsekit._compare.cli import main

LOGISTIC, LASSO = paths.all_path_solvers("binomial"), paths.all_path_solvers("gaussian")


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "free intercept"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("is_lasso", "solver"),
    [(False, s) for s in LOGISTIC] + [(True, s) for s in LASSO],
    ids=lambda s: getattr(s, "key", str(s)),
)
def test_a_path_is_that_of_the_stated_problem(is_lasso, solver, kind, fit_intercept):
    if solver.missing():
        pytest.skip(f"{solver.title}: {solver.missing()}")
    model = "lasso" if is_lasso else "logistic"
    problem = make_problem(kind, fit_intercept, model=model, standardize=True)
    ours = (LASSO if is_lasso else LOGISTIC)[0]
    own, run = paths.compare_paths(problem, [ours, solver], 6, 1e-2, max_time=20.0)
    assert own.excess <= paths.ACCURACY and not own.failure
    if solver.refuses_path(problem):
        assert run.failure == solver.refuses_path(problem) and np.isnan(run.seconds)
        return
    assert run.excess <= paths.ACCURACY, run
    assert run.seconds > 0.0 and run.setting in (solver.path_ladder or solver.ladder)
    # glmnet-rs ends where the deviance is explained
    assert run.n_penalties == 6 or solver.key == "glmnet-rs"


class Scaled(peers.Sparsekit):
    """Ours at another penalty: no setting makes it accurate."""

    def path(self, X, problem, Cs, setting, n_threads, end):
        return super().path(X, problem, 1.1 * Cs, setting, n_threads, end)


class Half(peers.Sparsekit):
    """Ours, which ends after a half of the penalties."""

    def path(self, X, problem, Cs, setting, n_threads, end):
        return super().path(X, problem, Cs[: len(Cs) // 2], setting, n_threads, end)


def test_what_is_not_accurate_or_ends_early_is_said():
    problem = make_problem("dense", True, standardize=True)
    solvers = [kind() for kind in (peers.Sparsekit, Scaled, Half)]
    _, scaled, half = runs = list(paths.compare_paths(problem, solvers, 4))
    assert scaled.failure == "not accurate" and scaled.setting == peers.Sparsekit.path_ladder[-1]
    assert half.failure == "solved 2 of 4 penalties" and half.n_penalties == 2
    lines = [paths.table_line(solvers, run, runs[0]) for run in runs]
    assert lines[1].endswith("not accurate") and lines[2].endswith("solved 2 of 4 penalties")


def test_time_has_a_limit():
    problem = make_problem("dense", True, standardize=True)
    _, run = paths.compare_paths(problem, [LOGISTIC[0], peers.Saga()], 4, max_time=1e-9)
    assert run.n_penalties == 0 and run.failure == "not accurate within 1e-09 s"


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize("lasso", [False, True])
def test_the_command(lasso, tmp_path, capsys):
    problem = make_problem("dense", True, model="lasso" if lasso else "logistic", standardize=True)
    file, numbers = tmp_path / "mine.csv", tmp_path / "numbers.json"
    np.savetxt(file, np.column_stack([problem.X, problem.y]), delimiter=",")
    peer = "lasso" if lasso else "liblinear"
    options = ["--path", "5", "--max-time", "5", "--peers", peer, "--json", str(numbers)]
    assert main(["compare", *(["--lasso"] if lasso else []), *options, str(file)]) == 0
    out = capsys.readouterr().out
    assert "mine, 5 penalties" in out and "ours is faster by" in out
    rows = json.loads(numbers.read_text())
    assert [row["n_penalties"] for row in rows] == [5, 5]
    assert all(row["excess"] <= paths.ACCURACY for row in rows)
