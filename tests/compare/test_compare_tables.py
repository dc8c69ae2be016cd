"""Words in the columns of a user's table, CSV and parquet files."""

import builtins

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsekit._compare import io

CSV = """age,colour,city,y
1,red,Rome,no
2,blue,Oslo,yes
3,red,Oslo,yes
4,green,Rome,no
"""
# colours blue, green, red; cities Oslo, Rome; age
ENCODED = [[0, 0, 1, 0, 1, 1], [1, 0, 0, 1, 0, 2], [0, 0, 1, 1, 0, 3], [0, 1, 0, 0, 1, 4]]


def write(path, text):
    path.write_text(text)
    return path


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def test_words_are_one_hot_encoded(tmp_path):
    problem = io.read_problem(write(tmp_path / "t.csv", CSV), test_size=0)
    assert not problem.is_sparse
    np.testing.assert_array_equal(problem.X, ENCODED)
    np.testing.assert_array_equal(problem.y, [-1, 1, 1, -1])
    assert "one-hot encoded (values): colour (3), city (2)" in problem.notes


def test_many_words_make_a_sparse_matrix(tmp_path):
    rows = "".join(f"word{i % 15},{i},{i % 2}\n" for i in range(60))
    problem = io.read_problem(write(tmp_path / "t.csv", "w,x,y\n" + rows), test_size=0)
    assert problem.is_sparse and problem.X.format == "csr" and problem.X.shape == (60, 16)
    assert problem.X.nnz == 119  # a word in each row, and x but for its 0


@pytest.mark.parametrize(
    ("text", "X"),
    [
        ("a;b;y\n1,5;2;0\n-2,5e1;3;1\n", [[1.5, 2], [-25, 3]]),
        ("1,5;2,5;0\n2,5;3,5;1\n", [[1.5, 2.5], [2.5, 3.5]]),  # as many commas as semicolons
        ("length, in m;size;y\n1,5;2;0\n3;3;1\n", [[1.5, 2], [3, 3]]),
        ("a\tb\ty\n1.5\t2\t0\n3\t3\t1\n", [[1.5, 2], [3, 3]]),
        ('"a", b,y\n1.5, 2,0\n3, 3,1\n', [[1.5, 2], [3, 3]]),
    ],
)
def test_delimiters_and_decimal_commas(tmp_path, text, X):
    np.testing.assert_array_equal(io.read_problem(write(tmp_path / "t.csv", text), test_size=0).X, X)


def test_the_first_line_holds_names_unless_one_is_a_number(tmp_path):
    path = write(tmp_path / "t.csv", "1,2\n3,4\n5,6\n")
    assert io.read_problem(path, test_size=0, positive="2").X.tolist() == [[1], [3], [5]]
    path = write(tmp_path / "t.csv", "31,rare\n12,usual\n40,rare\n")
    assert io.read_problem(path, test_size=0).X.tolist() == [[31], [12], [40]]
    path = write(tmp_path / "t.csv", "s,p\ns,e\nt,p\n")
    assert len(io.read_problem(path, test_size=0).y) == 2


def test_spreadsheets(tmp_path):
    """Marks of byte order, quotes behind a space, empty lines."""
    text = 'size; "où, ""là""";y\r\n1,5; "b; c";no\r\n2,5;d;yes\r\n\r\n'
    path = tmp_path / "t.csv"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_bytes(text.encode(encoding))
        problem = io.read_problem(path, test_size=0)
        np.testing.assert_array_equal(problem.X, [[1, 0, 1.5], [0, 1, 2.5]])
        assert 'one-hot encoded (values): où, "là" (2)' in problem.notes
    path.write_bytes(text.encode("cp1252"))
    with pytest.raises(io.DataError, match="is not text in UTF-8"):
        io.read_problem(path)


MISSING = "age,cabin,town,y\n1,,Rome,no\n2,B,NA,yes\n?,C,Oslo,yes\n4,D,Oslo,no\n5,D,Rome,yes\n6,,Rome,no\n"


def test_missing_values(tmp_path):
    """Rows are left out, with their number in each column."""
    path = write(tmp_path / "t.csv", MISSING)
    problem = io.read_problem(path, test_size=0)
    np.testing.assert_array_equal(problem.X, [[1, 1, 0, 4], [1, 0, 1, 5]])
    assert problem.notes[0] == "left out: 4 of 6 rows, with missing values in age (1), cabin (2), town (1)"
    assert io.read_problem(path, test_size=0, drop=["age", "cabin"]).X.shape[0] == 5
    with pytest.raises(io.DataError, match=r"every row has missing values in a \(2\), b \(2\)\. Leave col"):
        io.read_problem(write(path, "a,b,y\n1,,0\n,2,1\n,,1\n"))


def test_columns_are_standardised(tmp_path):
    """By the training rows; sparse ones are not centred."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(5, 1000, 40), rng.normal(0, 1e-3, 40), np.arange(40) % 2])
    path = tmp_path / "t.csv"
    np.savetxt(path, rows, delimiter=",")
    plain, scaled = (io.read_problem(path, standardize=given) for given in (False, None))
    mean, scale = plain.X.mean(axis=0), plain.X.std(axis=0)
    np.testing.assert_allclose(scaled.X, (plain.X - mean) / scale, atol=1e-12)
    np.testing.assert_allclose(scaled.X_test, (plain.X_test - mean) / scale, atol=1e-12)
    assert any("standardised" in note and "--no-standardize" in note for note in scaled.notes)
    path = write(tmp_path / "t.svm", "1 1:100\n-1 2:1\n1 1:300\n")
    assert dense(io.read_problem(path, test_size=0, standardize=None).X).max() == 300
    X = io.read_problem(path, test_size=0, standardize=True).X
    assert X.nnz == 3 and np.allclose(X.toarray().std(axis=0), 1)
    with pytest.raises(io.DataError, match="too large to be standardised"):
        io.read_problem(write(tmp_path / "u.csv", "1e300,0\n-1e300,1\n"), test_size=0, standardize=True)


def test_columns_are_left_out(tmp_path):
    path = write(tmp_path / "t.csv", CSV.replace("Rome", ""))
    problem = io.read_problem(path, test_size=0, drop=["city", "2"])
    np.testing.assert_array_equal(problem.X, [[1], [2], [3], [4]])
    for options, match in (
        (dict(drop=["town"]), "no column 'town'; columns are age, colour, city, y"),
        (dict(drop=["y"]), "column 'y' is the target"),
    ):
        with pytest.raises(io.DataError, match=match):
            io.read_problem(path, **options)
    path = write(tmp_path / "t.svm", "1 1:1\n0 1:2\n")
    with pytest.raises(io.DataError, match="--drop is for the columns of CSV and parquet"):
        io.read_problem(path, drop=["1"])


def test_text_is_no_category(tmp_path):
    rows = "".join(f"person {i},{i % 7},{i % 2}\n" for i in range(40))
    path = write(tmp_path / "t.csv", "name,x,y\n" + rows)
    with pytest.raises(io.DataError, match=r"'name' is text .* 40 different words in 40 rows") as caught:
        io.read_problem(path)
    assert "--drop name" in str(caught.value)
    assert io.read_problem(path, test_size=0, drop=["name"]).X.shape == (40, 1)


def test_held_out_rows_have_the_same_columns(tmp_path):
    path = write(tmp_path / "a.csv", CSV)
    test = write(tmp_path / "b.csv", "age,colour,city,y\n7,green,Bonn,yes\n8,grey,Oslo,no\n")
    problem = io.read_problem(path, test=test)
    np.testing.assert_array_equal(dense(problem.X_test), [[0, 1, 0, 0, 0, 7], [0, 0, 0, 1, 0, 8]])
    np.testing.assert_array_equal(problem.y_test, [1, -1])
    for text in (
        "age,city,colour,y\n7,Bonn,red,yes\n8,Rome,red,no\n",
        "age,colour,city,y\n7,5,Bonn,yes\n8,6,Oslo,no\n",
        "age,colour,city,y\nold,red,Bonn,yes\nyoung,red,Oslo,no\n",
    ):
        with pytest.raises(io.DataError, match="its columns are not those of the training rows"):
            io.read_problem(path, test=write(tmp_path / "c.csv", text))


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [1, 2, 3, 4],
            "colour": ["red", "blue", "red", "green"],
            "city": pd.Categorical(["Rome", "Oslo", "Oslo", "Rome"]),
            "y": ["no", "yes", "yes", "no"],
        }
    )


@pytest.fixture
def reader():
    pytest.importorskip("pyarrow", reason="reads and writes parquet files")


def test_parquet(tmp_path, frame, reader):
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    problem = io.read_problem(path, test_size=0)
    assert problem.name == "t"
    np.testing.assert_array_equal(problem.X, ENCODED)
    np.testing.assert_array_equal(problem.y, [-1, 1, 1, -1])
    other = io.read_problem(path, test_size=0, target="age", positive="3", drop=["y"])
    np.testing.assert_array_equal(other.y, [-1, -1, 1, -1])
    assert other.X.shape == (4, 5)


def test_types_of_parquet_columns(tmp_path, frame, reader):
    path = tmp_path / "t.parquet"
    frame = frame.assign(flag=[True, False, True, True], small=np.array([1, 2, 3, 4], dtype=np.float32))
    frame[["flag", "small", "age", "y"]].set_index("y").to_parquet(path)
    # the index of a frame is a column of the file; one without a name is none
    problem = io.read_problem(path, target="y", test_size=0)
    np.testing.assert_array_equal(problem.X, [[1, 1, 1], [0, 2, 2], [1, 3, 3], [1, 4, 4]])
    frame[["small", "flag"]].set_axis([5, 6, 7, 9]).to_parquet(path)
    problem = io.read_problem(path, test_size=0)
    np.testing.assert_array_equal(problem.X, [[1], [2], [3], [4]])
    np.testing.assert_array_equal(problem.y, [1, -1, 1, 1])


def test_faulty_parquet(tmp_path, frame, reader):
    path = tmp_path / "t.parquet"
    for column, values, match in (
        ("age", [1.0, np.inf, 3.0, 4.0], "column 'age' holds inf"),
        ("colour", [None] * 4, r"every row has missing values in colour \(4\)"),
        ("age", pd.to_datetime(["2020-01-01"] * 4), "column 'age' is of type .*--drop age"),
    ):
        frame.assign(**{column: values}).to_parquet(path)
        with pytest.raises(io.DataError, match=match):
            io.read_problem(path)
        assert io.read_problem(path, test_size=0, drop=[column]).X.shape[0] == 4
    frame[["y"]].to_parquet(path)
    with pytest.raises(io.DataError, match="at least two columns"):
        io.read_problem(path)
    for content in (b"", b"no parquet at all"):
        path.write_bytes(content)
        with pytest.raises(io.DataError, match="not a readable parquet file"):
            io.read_problem(path)


@pytest.mark.parametrize(("suffix", "library"), [("csv", "pandas"), ("parquet", "pandas")])
def test_without_a_reader(tmp_path, monkeypatch, suffix, library):
    original = builtins.__import__

    def fail(name, *args, **kwargs):
        if name == library:
            raise ImportError(f"No module named {name}")
        return original(name, *args, **kwargs)

    path = write(tmp_path / f"t.{suffix}", CSV)
    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(io.DataError, match=f"{library} is needed: pip install {library}"):
        io.read_problem(path)
