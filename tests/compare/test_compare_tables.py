"""Words in the columns of a user's table, and parquet files."""

import builtins
import csv

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsekit._compare import io, tables

CSV = """age,colour,city,y
1,red,Rome,no
2,blue,Oslo,yes
3,red,Oslo,yes
4,green,Rome,no
"""
ENCODED = [[1, 0, 0, 1, 0, 1], [2, 1, 0, 0, 1, 0], [3, 0, 0, 1, 1, 0], [4, 0, 1, 0, 0, 1]]


def write(path, text):
    path.write_text(text)
    return path


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def test_words_are_one_hot_encoded(tmp_path):
    """A column of ones for each word, in the words' order and the column's place; the notes say so."""
    problem = io.read_problem(write(tmp_path / "t.csv", CSV), test_size=0)
    assert not problem.is_sparse
    np.testing.assert_array_equal(problem.X, ENCODED)
    np.testing.assert_array_equal(problem.y, [-1, 1, 1, -1])
    assert "one-hot encoded (values): colour (3), city (2)" in problem.notes


def test_chunks_make_no_difference(tmp_path, monkeypatch):
    path = write(tmp_path / "t.csv", CSV)
    monkeypatch.setattr(tables, "CHUNK", 1)
    np.testing.assert_array_equal(io.read_problem(path, test_size=0).X, ENCODED)
    with pytest.raises(io.DataError, match=r":4: column 'a' holds 'x', which is not a number"):
        io.read_problem(write(tmp_path / "u.csv", "a,y\n1,0\n2,1\nx,1\n"))
    with pytest.raises(io.DataError, match=r":3: column 'a' is empty"):
        io.read_problem(write(tmp_path / "u.csv", "a,y\n1,0\n,1\n3,1,7\n"))


def test_many_words_make_a_sparse_matrix(tmp_path):
    rows = "".join(f"word{i % 15},{i},{i % 2}\n" for i in range(60))
    problem = io.read_problem(write(tmp_path / "t.csv", "w,x,y\n" + rows), test_size=0)
    assert problem.is_sparse and problem.X.format == "csr" and problem.X.shape == (60, 16)
    assert problem.X.nnz == 119  # a word in each row, and x but for its 0


def test_numbers_as_categories(tmp_path):
    path = write(tmp_path / "t.csv", "code,x,y\n3,1,0\n5,2,1\n3,3,1\n")
    np.testing.assert_array_equal(io.read_problem(path, test_size=0).X, [[3, 1], [5, 2], [3, 3]])
    for name in ("code", "1"):
        problem = io.read_problem(path, test_size=0, categorical=[name])
        np.testing.assert_array_equal(problem.X, [[1, 0, 1], [0, 1, 2], [1, 0, 3]])
    # a column of both is an error that names the line and the remedy, which works
    path = write(tmp_path / "t.csv", "code,x,y\n3,1,0\nE5,2,1\n3,3,1\n")
    with pytest.raises(io.DataError, match=r":3: column 'code' holds 'E5', which .*--categorical code"):
        io.read_problem(path)
    np.testing.assert_array_equal(
        io.read_problem(path, test_size=0, categorical=["code"]).X, [[1, 0, 1], [0, 1, 2], [1, 0, 3]]
    )


def test_a_field_without_end_names_its_line(tmp_path):
    """As of a quote that is never closed, also where another library has lifted the csv module's limit."""
    path = write(tmp_path / "t.csv", "a,y\n1,0\n2,1\n" + "3" * 200_000 + ",0\n")
    before = csv.field_size_limit(1_000_000)
    try:
        with pytest.raises(io.DataError, match=r"t\.csv:4: field larger than field limit"):
            io.read_problem(path)
        assert csv.field_size_limit() == 1_000_000
    finally:
        csv.field_size_limit(before)


def test_decimal_commas_are_no_words(tmp_path):
    said = "column '{}' holds '{}', a number with a comma; write it with a point"
    for text, name, value, line in (
        ("a;b;y\n1,5;2;0\n-2,5;3;1\n+0,25;4;0\n", "a", "1,5", ""),
        ("1,5;2;0\n2,5;3;1\n", "1", "1,5", ""),
        ("1,5;2,5;0\n2,5;3,5;1\n", "1", "1,5", ""),  # as many commas as semicolons
        ("a;b;y\n1;2;0\n1,5;3;1\n", "a", "1,5", ":3"),
        ("a;b;y\n1,5;2;0\n1;3;1\n", "a", "1,5", ":2"),
        ('a,b,y\n"1,5",2,0\n"2,5",3,1\n', "a", "1,5", ""),
        # more than may be categories
        ("a;b;y\n" + "".join(f"{i},5;{i};{i % 2}\n" for i in range(60)), "a", "0,5", ""),
    ):
        path = write(tmp_path / "t.csv", text)
        with pytest.raises(io.DataError) as caught:
            io.read_problem(path, test_size=0)
        assert str(caught.value).startswith(f"{path}{line}: " + said.format(name, value)), text
        assert f"--categorical {name}" in str(caught.value)
        assert io.read_problem(path, test_size=0, categorical=[name, "2"]).X.shape[0] > 1
    # words of which only some look so are words
    path = write(tmp_path / "t.csv", "a;b;y\n1,5;2;0\nx;3;1\n")
    np.testing.assert_array_equal(io.read_problem(path, test_size=0).X, [[1, 0, 2], [0, 1, 3]])


def test_lines_of_spaces_are_no_rows(tmp_path):
    path = write(tmp_path / "t.csv", "a,y\n1,0\n2,1\n   \n")
    np.testing.assert_array_equal(io.read_problem(path, test_size=0).X, [[1], [2]])
    with pytest.raises(io.DataError, match=":4: has 1 fields where 2 are expected"):
        io.read_problem(write(path, "a,y\n1,0\n2,1\nx\n"))


def test_columns_are_left_out(tmp_path):
    path = write(tmp_path / "t.csv", CSV.replace("Rome", "").replace("age", "years"))
    problem = io.read_problem(path, test_size=0, drop=["city", "2"])
    np.testing.assert_array_equal(problem.X, [[1], [2], [3], [4]])
    for options, match in (
        (dict(drop=["town"]), "no column 'town'; columns are years, colour, city, y"),
        (dict(categorical=["town"]), "no column 'town'"),
        (dict(drop=["y"]), "column 'y' is the target"),
        ({}, ":2: column 'city' is empty"),
    ):
        with pytest.raises(io.DataError, match=match):
            io.read_problem(path, **options)
    path = write(tmp_path / "t.csv", "a,b,a,y\n1,2,3,0\n4,5,6,1\n")
    for options in (dict(drop=["a"]), dict(target="a")):
        with pytest.raises(io.DataError, match="columns 1, 3 are all called 'a'; say which by its number"):
            io.read_problem(path, **options)
    np.testing.assert_array_equal(io.read_problem(path, test_size=0, drop=["3"]).X, [[1, 2], [4, 5]])
    path = write(tmp_path / "t.svm", "1 1:1\n0 1:2\n")
    with pytest.raises(io.DataError, match="--categorical and --drop are for the columns of CSV and parquet"):
        io.read_problem(path, drop=["1"])


def test_text_is_no_category(tmp_path):
    rows = "".join(f"person {i},{i % 7},{i % 2}\n" for i in range(40))
    path = write(tmp_path / "t.csv", "name,x,y\n" + rows)
    with pytest.raises(io.DataError, match="column 'name' holds 40 different words in 40 rows") as caught:
        io.read_problem(path)
    assert "--drop name" in str(caught.value) and "--categorical name" in str(caught.value)
    assert io.read_problem(path, test_size=0, drop=["name"]).X.shape == (40, 1)
    for name in ("name", "1"):
        assert io.read_problem(path, test_size=0, categorical=[name]).X.shape == (40, 41)


def test_held_out_rows_have_the_same_columns(tmp_path):
    path = write(tmp_path / "a.csv", CSV)
    test = write(tmp_path / "b.csv", "age,colour,city,y\n7,green,Bonn,yes\n8,grey,Oslo,no\n")
    problem = io.read_problem(path, test=test)
    np.testing.assert_array_equal(dense(problem.X_test), [[7, 0, 1, 0, 0, 0], [8, 0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(problem.y_test, [1, -1])
    assert any("2 words of held-out rows are in no training row" in note for note in problem.notes)
    for text, match in (
        ("age,city,colour,y\n7,Bonn,red,yes\n8,Rome,red,no\n", "its columns are not those of the training"),
        (
            "age,colour,city,y\n7,5,Bonn,yes\n8,6,Oslo,no\n",
            "'colour' holds numbers, in the .* rows words",
        ),
        ("age,colour,city,y\nold,red,Bonn,yes\nyoung,red,Oslo,no\n", "'age' holds words, in the .* numbers"),
    ):
        with pytest.raises(io.DataError, match=match):
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


def hide(monkeypatch, *names):
    original = builtins.__import__

    def fail(name, globals=None, *args, **kwargs):
        # what pandas and the like import is none of our business
        ours = (globals or {}).get("__name__", "").startswith("sparsekit")
        if ours and name.partition(".")[0] in names:
            raise ImportError(f"No module named {name}")
        return original(name, globals, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fail)


def test_parquet(tmp_path, frame, reader):
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    problem = io.read_problem(path, test_size=0)
    assert problem.name == "t"
    np.testing.assert_array_equal(problem.X, ENCODED)
    np.testing.assert_array_equal(problem.y, [-1, 1, 1, -1])
    assert "one-hot encoded (values): colour (3), city (2)" in problem.notes
    other = io.read_problem(path, test_size=0, target="age", positive="3", drop=["y"], categorical=["city"])
    np.testing.assert_array_equal(other.y, [-1, -1, 1, -1])
    assert other.X.shape == (4, 5)
    forced = io.read_problem(path, test_size=0, categorical=["age"])
    np.testing.assert_array_equal(forced.X[:, :4], np.eye(4))


def test_types_of_parquet_columns(tmp_path, frame, reader):
    path = tmp_path / "t.parquet"
    frame = frame.assign(flag=[True, False, True, True], small=np.array([1, 2, 3, 4], dtype=np.float32))
    frame[["flag", "small", "age", "y"]].set_index("age").reset_index().set_index("y").to_parquet(path)
    # the index of a frame is a column of the file; one without a name is none
    problem = io.read_problem(path, target="y", test_size=0)
    np.testing.assert_array_equal(problem.X, [[1, 1, 1], [2, 0, 2], [3, 1, 3], [4, 1, 4]])
    frame[["small", "flag"]].set_axis([5, 6, 7, 9]).to_parquet(path)
    problem = io.read_problem(path, test_size=0)
    np.testing.assert_array_equal(problem.X, [[1], [2], [3], [4]])
    np.testing.assert_array_equal(problem.y, [1, -1, 1, 1])


def test_faulty_parquet(tmp_path, frame, reader):
    path = tmp_path / "t.parquet"
    for column, values, match in (
        ("age", [1.0, np.inf, 3.0, 4.0], r"column 'age' holds NaN or inf \(row 2\)"),
        ("colour", ["red", None, None, "blue"], "column 'colour' is empty in 2 rows; .*--drop colour"),
        ("y", ["no", None, "yes", "no"], r"column 'y' is empty in 1 row; numbers and words are needed$"),
        ("age", pd.to_datetime(["2020-01-01"] * 4), "column 'age' is of type .*--drop age"),
    ):
        frame.assign(**{column: values}).to_parquet(path)
        with pytest.raises(io.DataError, match=match):
            io.read_problem(path)
        if column != "y":
            assert io.read_problem(path, test_size=0, drop=[column]).X.shape[0] == 4
    frame[["y"]].to_parquet(path)
    with pytest.raises(io.DataError, match="at least two columns"):
        io.read_problem(path)
    for content in (b"", b"no parquet at all"):
        path.write_bytes(content)
        with pytest.raises(io.DataError, match="not a readable parquet file"):
            io.read_problem(path)


def test_parquet_without_a_reader(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    hide(monkeypatch, "pyarrow")
    with pytest.raises(io.DataError, match="pyarrow is needed: pip install pyarrow"):
        io.read_problem(path)
