"""``sparsekit compare`` as a user types it."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from sparsekit import __version__
from sparsekit._cli import main
from sparsekit._compare import engine

FAST = ["--peers", "liblinear", "--max-time", "2"]


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(120) > 0, 1, -1)
    path = tmp_path / "mine.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    return path


def test_own_file(data, tmp_path, capsys):
    json_file, plot = tmp_path / "out.json", tmp_path / "curves.png"
    pytest.importorskip("matplotlib")
    argv = ["compare", str(data), "--lambda-ratio", "0.1,0.01", "--json", str(json_file), "--plot", str(plot)]
    assert main(argv + FAST) == 0
    out, err = capsys.readouterr()
    assert err == ""  # no progress bar where nobody looks
    assert out.count("mine (90 x 8, sparse") == 2
    assert "L1LogisticOBA" in out and "LIBLINEAR (scikit-learn)" in out and "geometric mean of 2 cells" in out
    assert "No intercept" in out
    assert plot.read_bytes().startswith(b"\x89PNG")
    content = json.loads(json_file.read_text())
    assert [round(cell["lambda_ratio"], 6) for cell in content["cells"]] == [0.1, 0.01]
    for cell in content["cells"]:
        by_key = {t["solver"]: t for t in cell["tracks"]}
        assert set(by_key) == {"sparsekit", "liblinear"}
        objectives = [t["objective"] for t in by_key.values()]
        assert max(objectives) - min(objectives) < 1e-6 * min(objectives)
        assert by_key["sparsekit"]["accuracy"] > 0.8
        assert 0 < by_key["sparsekit"]["times"]["1e-06"] < 60


def test_values_of_C_and_intercept(data, capsys):
    assert main(["compare", str(data), "--C", "0.5", "--intercept", "--test-size", "0", *FAST]) == 0
    out = capsys.readouterr().out
    assert "C = 0.5 " in out and "(120 x 8" in out
    assert "cannot fit an unpenalised intercept" in out


def test_progress_bar(data, capsys):
    assert main(["compare", str(data), "--n-lambda", "1", "--progress", *FAST]) == 0
    err = capsys.readouterr().err
    assert "0/1 mine" in err and "LIBLINEAR (scikit-learn): tol" in err


def test_faulty_file_names_its_line(tmp_path, capsys):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:2\n-1 2:x\n")
    assert main(["compare", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"error: {path}:2: value 'x' of feature 2 is not a finite number" in err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["compare", "--C", "-1"],
        ["compare", "--C", "1", "--n-lambda", "3"],
        ["compare", "--max-time", "0"],
        ["compare", "--n-jobs", "0"],
        ["compare", "--peers", "nobody"],
        ["compare", "--test", "x.svm"],
        ["compare", "--test-size", "1.5"],
        ["compare", "--json", "no/such/folder/out.json"],
        ["compare", "--nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_usage(argv, capsys):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert "usage" in out + err or "error" in err


def test_help_and_version(capsys):
    assert main(["compare", "--help"]) == 0
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


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


def test_unrelated_target(tmp_path, capsys):
    path = tmp_path / "flat.csv"
    path.write_text("1,1\n1,0\n1,1\n1,0\n")
    assert main(["compare", str(path), "--test-size", "0"]) == 1
    assert "no feature is related to the target" in capsys.readouterr().err
