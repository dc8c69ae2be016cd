"""``sparsekit compare`` as a user types it."""

import itertools
import json
import shlex
import sys

import numpy as np
import pytest
from children import run_limited
from compare_problems import FAST, make_family_problem, make_problem
from sklearn.datasets import load_diabetes

from sparsekit import __version__
from sparsekit._compare import cli as _cli
from sparsekit._compare import engine, io, peers, plot
from sparsekit._compare.cli import main


def test_own_file(data, tmp_path, capsys):
    json_file, plot = tmp_path / "out.json", tmp_path / "curves.png"
    pytest.importorskip("matplotlib")
    argv = ["compare", str(data), "--lambda-ratio", "0.1,0.01", "--json", str(json_file), "--plot", str(plot)]
    assert main(argv + FAST) == 0
    out, err = capsys.readouterr()
    assert err == ""  # no progress bar without a terminal
    assert out.count("mine (90 x 8, sparse") == 3  # once of the data, and in each table
    assert "L1LogisticOBA" in out and "LIBLINEAR" in out
    assert "geometric mean of 2 cells" in " ".join(out.split())
    assert "No intercept" in out
    assert plot.read_bytes().startswith(b"\x89PNG")
    content = json.loads(json_file.read_text(encoding="utf-8"))
    assert [round(cell["lambda_ratio"], 6) for cell in content["cells"]] == [0.1, 0.01]
    for cell in content["cells"]:
        by_key = {t["solver"]: t for t in cell["tracks"]}
        assert set(by_key) == {"sparsekit", "liblinear"}
        objectives = [t["objective"] for t in by_key.values()]
        assert max(objectives) - min(objectives) < 1e-6 * min(objectives)
        assert by_key["sparsekit"]["accuracy"] > 0.8
        assert 0 < by_key["sparsekit"]["times"]["1e-06"] < 60


@pytest.mark.parametrize("model", ["lasso", "poisson"])
def test_own_file_of_numbers(model, tmp_path, capsys):
    """Tables and JSON speak of the penalty, the scores and the solvers of the model."""
    if model == "lasso":
        problem, options = make_problem("dense", True, model="lasso"), ["--lasso", "--peers", "lasso"]
        said = ("alpha ||w||_1, z_i = x_i.w + b, b not penal", "LassoOBA is", "scikit-learn's Lasso", "R2")
        score, error = "r2", "mean_squared_error"
    else:
        problem, options = make_family_problem(model), ["--family", model, "--peers", "sklearn-lbfgs"]
        options += ["--l1-ratio", "0"]
        said = ("alpha/2 ||w||^2, D the poisson deviance, z_i = x_i.w + b", "GLMOBA is", "D2")
        score, error = "d2", "mean_deviance"
    path, out_json = tmp_path / "mine.csv", tmp_path / "out.json"
    np.savetxt(path, np.column_stack([problem.X, problem.y]), delimiter=",")
    argv = ["compare", *options, str(path), "--alpha", "0.1,0.01", "--max-time", "2", "--json", str(out_json)]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for words in (*said, "rows held out; columns standardised"):
        assert words in " ".join(out.split())
    assert "accuracy" not in out and "LIBLINEAR" not in out
    assert out.index("alpha = 0.1 (lambda") < out.index("alpha = 0.01 (lambda")
    cells = json.loads(out_json.read_text(encoding="utf-8"))["cells"]
    assert [cell["alpha"] for cell in cells] == pytest.approx([0.1, 0.01])
    for cell in cells:
        ours, theirs = cell["tracks"]
        assert (ours["solver"], theirs["solver"]) == ("sparsekit", options[options.index("--peers") + 1])
        assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-6)
        assert ours[score] > (0.8 if model == "lasso" else 0.0) and ours[error] > 0
        assert model != "lasso" or cell["certified_gap"] < 1e-6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--lasso", "--no-intercept", "--lambda-ratio", "0.5", "--peers", "lasso"],
            ("diabetes (331 x 10", "diabetes, products (331 x 285", "No intercept"),
        ),
        (
            ["--family", "gamma", "--lambda-ratio", "0.1", "--peers", "glum"],
            ("diabetes (331 x 10, dense", "alpha ||w||_1, D the gamma"),
        ),
    ],
)
def test_without_files_of_numbers(options, said, capsys):
    assert main(["compare", "--max-time", "1", *options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(words in out for words in said)


def test_regression_is_refused(tmp_path, capsys):
    """As a file of scikit-learn's diabetes set: whole numbers, but no classes."""
    X, y = load_diabetes(return_X_y=True)
    path = tmp_path / "diabetes.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",")
    assert main(["compare", str(path), *FAST]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "the target has 214 different numbers in 442 rows, from 25 to 346: this is regression" in err
    assert "(--lasso, --family)" in err
    assert "--positive" in err
    argv = ["compare", str(path), "--positive", "72", "--lambda-ratio", "0.5", "--test-size", "0", *FAST]
    assert main(argv) == 0
    assert "214 labels: 72 against the rest" in capsys.readouterr().out


def test_solvers_that_are_not_installed_are_listed_once(data, capsys, monkeypatch):
    class Absent(peers.Liblinear):
        key, title, package = "absent", "Absent", "no-such-distribution"

    monkeypatch.setattr(peers, "SOLVERS", (peers.Sparsekit, peers.Liblinear, Absent))
    json_file = data.parent / "out.json"
    argv = ["compare", str(data), "--lambda-ratio", "0.5,0.1", "--max-time", "2", "--json", str(json_file)]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert out.count("mine (90 x 8, sparse") == 3  # once of the data, and in each table
    assert out.count("Absent (not installed: pip install no-such-distribution)") == out.count("Absent") == 1
    content = json.loads(json_file.read_text())
    assert list(content["not_installed"]) == ["absent"]
    assert all(cell["left_out"] == [] for cell in content["cells"])


def test_labels_of_times_do_not_overlap():
    """In pictures as narrow as they become, over much, little and no more than a decade."""
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    one = ((1e-3, 1e-3 * 1.02), (1.2e-4, 2e-4), (1.3e-3, 7e-3), (1.1e-3, 9.9e-3))
    for first, last in (*one, (0.017, 0.047), (1.4e-3, 0.025), (1e-3, 0.04), (1e-3, 2)):
        figure = Figure(figsize=(2.3, 2.5), layout="constrained")
        canvas = FigureCanvasAgg(figure)
        ax = figure.subplots()
        ax.loglog([first, last], [1, 0.1])
        plot._label_times(ax)
        canvas.draw()
        texts = [text for text in ax.get_xticklabels(which="both") if text.get_text()]
        low, high = ax.get_xlim()
        texts = [text for text in texts if low <= text.get_position()[0] <= high]
        boxes = [text.get_window_extent() for text in texts]
        assert len({text.get_text() for text in texts}) == len(texts) >= 2
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes)), (first, last)


def test_columns_of_words(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(0)
    rows = [f"id{i},{'red' if i % 3 else 'blue'},{rng.normal():.3f},{i % 2}" for i in range(80)]
    path = tmp_path / "words.csv"
    path.write_text("\n".join(["name,colour,x,y", *rows]) + "\n")
    assert main(["compare", str(path), *FAST]) == 1
    assert "--drop name" in capsys.readouterr().err
    assert main(["compare", str(path), "--drop", "name", "--lambda-ratio", "0.5", *FAST]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    out = " ".join(out.split())
    assert "words (60 x 3, dense)" in out and out.count("one-hot encoded (values): colour (2)") == 1
    assert out.count("columns standardised") == 1


def test_values_of_C_and_intercept(data, capsys):
    assert main(["compare", str(data), "--C", "0.5", "--intercept", "--test-size", "0", *FAST]) == 0
    out = capsys.readouterr().out
    assert "C = 0.5 " in out and "(120 x 8" in out
    assert "cannot fit an unpenalised intercept" in out


@pytest.mark.thorough
def test_the_grid_reaches_weak_penalties(data, tmp_path, capsys):
    """By default, and by values of C, which may be any that are positive, in any order."""
    json_file = tmp_path / "out.json"
    for given, name, expected in (
        ([], "lambda_ratio", [0.1, 0.01, 0.001, 1e-4, 1e-5]),
        (["--C", "1e4,0.5,100"], "C", [0.5, 100, 1e4]),
    ):
        argv = ["compare", str(data), "--peers", "liblinear", *given, "--json", str(json_file)]
        assert main(argv) == 0
        content = json.loads(json_file.read_text(encoding="utf-8"))
        assert [cell[name] for cell in content["cells"]] == pytest.approx(expected)
        assert content["settings"]["max_time"] == _cli.MAX_TIME  # the user's files may be large
        # ours gets there at every one of them
        for cell in content["cells"]:
            assert cell["tracks"][0]["times"]["1e-06"] is not None
    capsys.readouterr()


def test_without_files_slow_solvers_get_less_time(monkeypatch, tmp_path, capsys):
    """As README has it; the sets are small, and who is not done soon is far behind."""
    shipped = io.shipped_problems
    monkeypatch.setattr(io, "shipped_problems", lambda **settings: shipped(**settings)[:1])
    json_file = tmp_path / "out.json"
    argv = ["compare", "--peers", "saga", "--C", "1e4", "--json", str(json_file)]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert f"stopped by the limit of {_cli.MAX_TIME_SHIPPED:g} s for a solver: saga (scikit-learn)" in out
    content = json.loads(json_file.read_text(encoding="utf-8"))
    assert content["settings"]["max_time"] == _cli.MAX_TIME_SHIPPED


def test_progress_bar(data, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["compare", str(data), "--lambda-ratio", "0.1", *FAST]) == 0
    err = capsys.readouterr().err
    assert "0/1 mine" in err and "LIBLINEAR (scikit-learn): tol" in err


def test_faulty_file_names_its_line(tmp_path, capsys):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:2\n-1 2:x\n")
    assert main(["compare", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"error: {path}, line 2: '-1 2:x' is not of the form" in err


# "mine" stands for a file
WRONG_USAGE = {
    "": "",
    "compare --C -1": "must be a positive number, is -1",
    "compare --C 1 --lambda-ratio 0.1": "not allowed with",
    "compare --C 1,nan": "must be a positive number, is nan",
    "compare --C 1,two": "must be a number, is two",
    **{f"compare {option} {text}": f"argument {option}: names no number"
       for option in ("--C", "--lambda-ratio") for text in ("''", ",", "' , '")},
    "compare --max-time 0": "must be a positive number",
    "compare --n-jobs 0": "n-jobs",
    "compare --peers nobody": "unknown solver",
    "compare --test x.svm": "--test",
    "compare --test-size 1.5": "test-size",
    "compare --json no/such/folder/out.json": "no such folder",
    "compare --no-standardize": "--no-standardize",
    "compare --nonsense": "unrecognized arguments",
    "compare mine --alpha 1": "--alpha needs --lasso",
    "compare mine --l1-ratio 0.5": "--l1-ratio needs --family",
    "compare mine --lasso --C 1": "--alpha or --lambda-ratio",
    "compare mine --lasso --positive 1": "--positive is for classes",
    "compare mine --lasso --peers liblinear": "unknown solver",
    "compare mine --lasso --alpha 1,x": "argument --alpha: must be a number, is x",
    "compare mine --lasso --lambda-ratio -1": "argument --lambda-ratio: must be a positive number, is -1",
    "compare mine --lasso --test-size half": "argument --test-size: must be a number, is half",
    "compare mine --lasso --path 2.5": "argument --path: must be a whole number, is 2.5",
    "compare mine --family poisson --C 1": "--alpha or --lambda-ratio",
    "compare mine --family poisson --lasso": "not allowed with argument",
    "compare mine --family poisson --path 5": "no --family",
    "compare mine --family poisson --positive 1": "--positive is for classes",
    "compare mine --family poisson --l1-ratio 2": "must be in [0, 1], is 2",
    "compare mine --family beta": "invalid choice",
    "compare --path 5 --plot x.png": "--path has no --plot",
}  # fmt: skip


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage(data, line, capsys):
    assert main([str(data) if word == "mine" else word for word in shlex.split(line)]) == 2
    out, err = capsys.readouterr()
    assert WRONG_USAGE[line] in err and ("usage" in out + err or "error" in err)


def test_python_m_is_the_command():
    done = run_limited([sys.executable, "-P", "-m", "sparsekit", "compare", "--C", "-1"], timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("usage: sparsekit compare")
    done = run_limited([sys.executable, "-P", "-m", "sparsekit", "--version"], timeout=60)
    assert (done.returncode, done.stdout) == (0, f"sparsekit {__version__}\n")


def test_interruption_prints_what_is_done(data, capsys, monkeypatch):
    calls = []
    original = engine.Bench._climb

    def climb(self, cell):
        calls.append(cell)
        if len(calls) == 2:
            raise KeyboardInterrupt
        original(self, cell)

    monkeypatch.setattr(engine.Bench, "_climb", climb)
    assert main(["compare", str(data), *FAST]) == 1
    out, err = capsys.readouterr()
    assert "lambda = 0.1 lambda_max" in out and "interrupted" in out and "interrupted" in err
    assert "lambda = 0.001" not in out
    assert "geometric mean of 1 cell" in out  # the first one only


@pytest.mark.parametrize(
    ("rows", "options"),
    [("1,1\n1,0\n1,1\n1,0\n", []), ("".join(f"1,0.1,{0.7 * i**2}\n" for i in range(30)), ["--lasso"])],
)
def test_unrelated_target(tmp_path, rows, options, capsys):
    path = tmp_path / "flat.csv"
    path.write_text(rows)
    assert main(["compare", str(path), "--test-size", "0", *options]) == 1
    assert "no feature is related to the target" in capsys.readouterr().err
