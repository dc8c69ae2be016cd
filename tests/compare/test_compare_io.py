"""Readers of the comparison: every format gives the same problem, every fault is named with its position."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from sparsekit._compare import io

OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def make_data(n=40, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, p)), 3) * (rng.random((n, p)) < 0.7)
    X[0] = np.arange(1, p + 1)  # every column is used
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return X, y


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("packing", list(OPENERS))
@pytest.mark.parametrize("zero_based", [True, False])
def test_svmlight_round_trip(tmp_path, packing, zero_based):
    X, y = make_data()
    path = tmp_path / f"small.svm{packing}"
    with OPENERS[packing](path, "wb") as stream:
        dump_svmlight_file(X, y, stream, zero_based=zero_based)
    problem = io.read_problem(path, test_size=0)
    assert problem.name == "small"
    assert problem.X_test is None
    np.testing.assert_array_equal(dense(problem.X), X)
    np.testing.assert_array_equal(problem.y, y)


@pytest.mark.parametrize("packing", list(OPENERS))
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_round_trip(tmp_path, packing, header, delimiter):
    X, y = make_data()
    path = tmp_path / f"small.csv{packing}"
    with OPENERS[packing](path, "wt") as stream:
        if header:
            stream.write(delimiter.join([f"f{j}" for j in range(X.shape[1])] + ["class"]) + "\n")
        for row, label in zip(X, y):
            stream.write(delimiter.join([*(str(v) for v in row), "yes" if label > 0 else "no"]) + "\n")
    problem = io.read_problem(path, test_size=0)
    np.testing.assert_array_equal(problem.X, X)
    np.testing.assert_array_equal(problem.y, y)


def test_csv_target_by_name_and_number(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,kind,b\n1,0,2\n3,1,4\n5,1,6\n")
    for target in ("kind", "2"):
        problem = io.read_problem(path, target=target, test_size=0)
        np.testing.assert_array_equal(problem.X, [[1, 2], [3, 4], [5, 6]])
        np.testing.assert_array_equal(problem.y, [-1, 1, 1])


@pytest.mark.parametrize("stored", ["dense", "sparse", "ones"])
def test_npz_round_trip(tmp_path, stored):
    X, y = make_data()
    if stored == "ones":
        X = (X != 0).astype(float)
    S = sparse.csr_matrix(X)
    parts = {"X": X}
    if stored != "dense":
        data = S.data if stored == "sparse" else np.zeros(0)
        parts = {"X_data": data, "X_indices": S.indices, "X_indptr": S.indptr, "X_shape": np.array(S.shape)}
    path = tmp_path / "small.npz"
    np.savez(path, y=y.astype(np.int8), **parts)
    problem = io.read_problem(path, test_size=0)
    assert problem.is_sparse == (stored != "dense")
    np.testing.assert_array_equal(dense(problem.X), X)
    np.testing.assert_array_equal(problem.y, y)


def test_npz_with_its_own_test_part(tmp_path):
    X, y = make_data()
    path = tmp_path / "parts.npz"
    np.savez(path, X_train=X[:30], y_train=y[:30], X_test=X[30:], y_test=y[30:])
    problem = io.read_problem(path)
    np.testing.assert_array_equal(problem.X_test, X[30:])
    np.testing.assert_array_equal(problem.y_test, y[30:])


def test_test_file_with_fewer_columns(tmp_path):
    """svmlight leaves trailing empty columns out; index 0 in one part keeps column 0 in both."""
    (tmp_path / "a.svm").write_text("1 1:1 4:2\n-1 2:1\n1 3:1\n")
    (tmp_path / "b.svm").write_text("-1 1:5\n1 2:1\n")
    problem = io.read_problem(tmp_path / "a.svm", test=tmp_path / "b.svm")
    assert problem.X.shape == (3, 4)
    np.testing.assert_array_equal(dense(problem.X_test), [[5, 0, 0, 0], [0, 1, 0, 0]])
    (tmp_path / "b.svm").write_text("-1 0:5\n1 2:1\n")
    problem = io.read_problem(tmp_path / "a.svm", test=tmp_path / "b.svm")
    assert problem.X.shape == (3, 5)
    np.testing.assert_array_equal(dense(problem.X_test), [[5, 0, 0, 0, 0], [0, 0, 1, 0, 0]])


def test_split_is_stratified():
    X, y = make_data(200)
    Xs, ys, X_test, y_test, _ = io.split(X, y, 0.25, 0)
    assert len(y_test) == 50 and len(ys) == 150 and Xs.shape[0] == 150 and X_test.shape[0] == 50
    assert abs(np.mean(ys == 1) - np.mean(y_test == 1)) < 0.02


def test_many_labels(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("1,a\n2,b\n3,b\n4,c\n5,c\n6,b\n")
    problem = io.read_problem(path, test_size=0)
    np.testing.assert_array_equal(problem.y, [-1, 1, 1, -1, -1, 1])  # b is the most frequent
    assert "3 labels: b against the rest" in " ".join(problem.notes)
    problem = io.read_problem(path, test_size=0, positive="c")
    np.testing.assert_array_equal(problem.y, [-1, -1, -1, 1, 1, -1])


def test_numeric_positive_label(tmp_path):
    path = tmp_path / "num.svm"
    path.write_text("1 1:1\n2 1:2\n2 1:3\n")
    np.testing.assert_array_equal(io.read_problem(path, test_size=0, positive="1").y, [1, -1, -1])


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_faulty_svmlight_line(tmp_path, packing):
    """Which faults there are stands in tests/datasets."""
    path = tmp_path / f"bad.svm{packing}"
    with OPENERS[packing](path, "wt") as stream:
        stream.write("# comment\n1 1:2 3:4\n\n-1 qid:3 1:1 # fine\n1 1:abc\n1 1:2\n")
    with pytest.raises(io.DataError) as info:
        io.read_problem(path)
    assert str(info.value).startswith(f"{path}, line 5: '1 1:abc' is not of the form")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,y\n1,2,0\n3,4\n", "two classes are needed"),
        ("a,b,y\n1,2,0\n3,1,,4\n", "Expected 3 fields in line 3, saw 4"),
        ("a,b,y\n1,2,0\n3,-inf,1\n", "column 'b' holds inf"),
        ("a,b,y\n1,2,0\n3,4,inf\n", "the target holds NaN or inf"),
        ("1\n2\n", "at least two columns"),
        ("a,b,y\n", "holds 0 rows"),
        ("", "No columns to parse"),
        ("a,y\n1,0\n2,0\n", "two classes are needed"),
    ],
)
def test_faulty_csv(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(io.DataError, match=r"bad\.csv") as info:
        io.read_problem(path)
    assert message in str(info.value)


def write_target(path, values):
    """A file of one feature and this target, of any kind."""
    if path.suffix == ".svm":
        path.write_text("".join(f"{v} 1:{i + 1}\n" for i, v in enumerate(values)))
    elif path.suffix == ".csv":
        path.write_text("".join(f"{i},{v}\n" for i, v in enumerate(values)))
    else:
        np.savez(path, X=np.arange(len(values))[:, None], y=np.array(values))


@pytest.mark.parametrize("kind", [".csv", ".svm", ".npz"])
@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([i * 0.25 for i in range(200)], r"200 different numbers in 200 rows, from 0 to 49\.75: this is reg"),
        ([25 + i % 22 for i in range(400)], "22 different numbers in 400 rows, from 25 to 46: this is reg"),
        ([0.5 * (i % 3) for i in range(60)], "3 different numbers in 60 rows, from 0 to 1: this is regr"),
    ],
    ids=["real", "whole", "halves"],
)
def test_regression_target_is_refused(tmp_path, kind, values, match):
    """More than twenty numbers, or several that are not whole; the message says what to do."""
    path = tmp_path / f"reg{kind}"
    write_target(path, values)
    with pytest.raises(io.DataError, match=match) as caught:
        io.read_problem(path)
    assert "--positive" in str(caught.value) and "--target" in str(caught.value)
    # and that works
    problem = io.read_problem(path, positive=str(values[1]), test_size=0)
    assert np.count_nonzero(problem.y > 0) == sum(v == values[1] for v in values)
    assert f"{len(set(values))} labels" in " ".join(problem.notes)


@pytest.mark.parametrize("kind", [".csv", ".svm", ".npz"])
def test_classes_are_no_regression(tmp_path, kind):
    """Twenty numbers, two of any kind, and any words."""
    path = tmp_path / f"classes{kind}"
    for values in ([i % 20 for i in range(400)], [(i % 2) - 0.5 for i in range(40)], [-1, 1] * 20):
        write_target(path, values)
        assert set(np.unique(io.read_problem(path, test_size=0).y)) == {-1.0, 1.0}
    if kind != ".svm":
        write_target(path, [f"c{i % 25}" for i in range(50)])
        assert "25 labels: c0 against" in " ".join(io.read_problem(path, test_size=0).notes)


def test_a_table_with_an_svmlight_name(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("a\tb\ty\n1\t2\t0\n")
    with pytest.raises(io.DataError, match=r"txt, line 1: 'a\\tb\\ty' is not .*tables are named \.csv"):
        io.read_problem(path)


def test_names_are_no_classes(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("".join(f"{i},person {i}\n" for i in range(150)))
    with pytest.raises(io.DataError, match=r"150 different values in 150 rows, not classes.*--positive"):
        io.read_problem(path)
    assert (io.read_problem(path, positive="person 3", test_size=0).y > 0).sum() == 1


def test_unknown_column_and_label(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    with pytest.raises(io.DataError, match="no column 'z'; columns are a, y"):
        io.read_problem(path, target="z")
    with pytest.raises(io.DataError, match="no row has the label '7'"):
        io.read_problem(path, positive="7")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"A": np.eye(2)}, "the file holds A"),
        ({"X": np.eye(3), "y": np.array([0, 1])}, "y has shape (2,), but X has 3 rows"),
        ({"X": np.full((2, 2), np.nan), "y": np.array([0, 1])}, "X holds NaN or inf"),
        ({"X": np.ones(3), "y": np.array([0, 1, 1])}, "must be a numeric matrix"),
        ({"X_indptr": np.array([0, 1]), "y": np.array([1])}, "X_data is not"),
        (
            {
                "X_data": np.ones(2),
                "X_indices": np.array([0, 9]),
                "X_indptr": np.array([0, 1, 2]),
                "X_shape": np.array([2, 3]),
                "y": np.array([0, 1]),
            },
            "not a valid CSR matrix",
        ),
    ],
)
def test_faulty_npz(tmp_path, arrays, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    with pytest.raises(io.DataError) as info:
        io.read_problem(path)
    assert message in str(info.value)


def test_not_what_the_name_says(tmp_path):
    for name, content in (("a.npz", b"no zip"), ("b.svm.gz", b"not gzip"), ("c.csv.xz", b"no xz")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(io.DataError, match=name):
            io.read_problem(path)
    with pytest.raises(io.DataError, match="no such file"):
        io.read_problem(tmp_path / "absent.svm")
    for name in ("d.feather", "e.parquet.gz"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(io.DataError, match="unknown kind of file"):
            io.read_problem(tmp_path / name)


def test_shipped_problems():
    cancer, digits = io.shipped_problems()
    assert cancer.X.shape == (426, 30) and digits.X.shape == (1347, 64)
    np.testing.assert_allclose(cancer.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(cancer.X.std(axis=0), 1)
    for problem in (cancer, digits):
        assert set(np.unique(problem.y)) == {-1.0, 1.0} == set(np.unique(problem.y_test))


def test_a_fault_of_held_out_rows_names_their_file(tmp_path):
    path, test = tmp_path / "train.csv", tmp_path / "held.csv"
    path.write_text("1,0\n2,1\n4,3\n")
    test.write_text("1,2\n2,-1\n")
    with pytest.raises(io.DataError, match=r"held\.csv: .*-1") as caught:
        io.read_problem(path, test=test, family="poisson")
    assert "train" not in str(caught.value)
