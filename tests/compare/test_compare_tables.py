"""Words in the columns of a user's table, and parquet files."""

import builtins
import csv

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsekit._compare import csv_input, io

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
    monkeypatch.setattr(csv_input, "CHUNK", 1)
    np.testing.assert_array_equal(io.read_problem(path, test_size=0).X, ENCODED)
    with pytest.raises(io.DataError, match=r":4: column 'a' holds 'x', which is not a number"):
        io.read_problem(write(tmp_path / "u.csv", "a,y\n1,0\n2,1\nx,1\n"))
    with pytest.raises(io.DataError, match=r":3: column 'a' holds inf"):
        io.read_problem(write(tmp_path / "u.csv", "a,y\n1,0\ninf,1\n3,1,7\n"))
    path = write(tmp_path / "v.csv", "w,a,y\n,,0\nred,1,1\nNA,2,0\nblue,?,1\nred,3,0\n")
    problem = io.read_problem(path, test_size=0, drop_missing=True)
    np.testing.assert_array_equal(problem.X, [[1, 1], [1, 3]])


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


def test_decimal_commas(tmp_path):
    """Between semicolons or tabs they are read; between commas, where they may separate thousands, not."""
    for text, X in (
        ("a;b;y\n1,5;2;0\n-2,5e1;3;1\n", [[1.5, 2], [-25, 3]]),
        ("a\tb\ty\n1.001,5\t2\t0\n3\t3\t1\n", [[1001.5, 2], [3, 3]]),
        ("1,5;2,5;0\n2,5;3,5;1\n", [[1.5, 2.5], [2.5, 3.5]]),  # as many commas as semicolons
        ("length, in m;size;y\n1,5;2;0\n3;3;1\n", [[1.5, 2], [3, 3]]),
    ):
        problem = io.read_problem(write(tmp_path / "t.csv", text), test_size=0)
        np.testing.assert_array_equal(problem.X, X)
        assert problem.notes[0].startswith("numbers with decimal commas: ")
    problem = io.read_problem(write(tmp_path / "t.csv", "a;y\n1;0,5\n2;1,5\n"), lasso=True, test_size=0)
    np.testing.assert_array_equal(problem.y, [0.5, 1.5])
    with pytest.raises(io.DataError, match=r"column 'a' holds both '1,5' and '1\.234'"):
        io.read_problem(write(tmp_path / "t.csv", "a;y\n1,5;0\n1.234;1\n"))
    for value in ("12%", "$1,200", "1,234.5", "€ 3", "-1,234,567"):
        path = write(tmp_path / "t.csv", f'a,b,y\n"{value}",2,0\n"{value}",3,1\n')
        with pytest.raises(io.DataError, match=r"column 'a' holds .*, a number with a comma or a sign"):
            io.read_problem(path)
    path = write(tmp_path / "t.csv", 'a,b,y\n"1,5",2,0\n"2,5",3,1\n')
    with pytest.raises(io.DataError, match=r"column 'a' holds '1,5', a number with a comma.*--categorical a"):
        io.read_problem(path)
    np.testing.assert_array_equal(
        io.read_problem(path, test_size=0, categorical=["a"]).X, [[1, 0, 2], [0, 1, 3]]
    )


def test_which_first_line_is_a_header(tmp_path):
    """Names, or the first row; what is no more than likely is said, and --header decides."""
    for text, n_rows, note in (
        ("2019,2020,kind\n1.5,2,good\n3,1.5,bad\n2,2,bad\n", 3, "--no-header"),
        ("0,1,2\n1.5,2,good\n3,1.5,bad\n", 3, "--header"),  # not a word in it
        (",0,1\n0,1.5,0\n1,2.5,1\n", 2, "--no-header"),  # pandas' index, and columns without names
        ("31,170,rare\n12,140,usual\n40,180,rare\n", 3, ""),
        ("x,s,e\np,s,e\nx,t,p\n", 3, ""),  # words that are values further down
        ("1,,0\n2,5,1\n3,5,0\n", 2, ""),  # a missing value is no name
        ("cap,gill,class\nx,s,e\nx,t,p\n", 2, ""),
    ):
        path = write(tmp_path / "t.csv", text)
        problem = io.read_problem(path, test_size=0, drop_missing=True)
        assert len(problem.y) == n_rows, text
        assert [n for n in problem.notes if "header" in n] == [n for n in problem.notes if note and note in n]
    path = write(tmp_path / "t.csv", "1,2\n3,4\n5,6\n")
    assert io.read_problem(path, test_size=0, header=True).X.tolist() == [[3], [5]]
    path = write(tmp_path / "t.csv", CSV)
    with pytest.raises(io.DataError, match=":2: column '1' holds '1', a number among words"):
        io.read_problem(path, header=False)


def test_an_index_without_a_name_is_no_feature(tmp_path):
    """As `DataFrame.to_csv` writes it; one that does not count the rows is a feature, which is said."""
    for name in ("", "Unnamed: 0"):
        path = write(tmp_path / "t.csv", f"{name},a,y\n2,5,0\n0,6,1\n1,7,1\n")
        problem = io.read_problem(path, test_size=0)
        np.testing.assert_array_equal(problem.X, [[5], [6], [7]])
        assert any(n.startswith("left out: column") and "counts the rows" in n for n in problem.notes)
    test = write(tmp_path / "u.csv", "Unnamed: 0,a,y\n17,5,0\n4,6,1\n")
    np.testing.assert_array_equal(io.read_problem(path, test=test).X_test, [[5], [6]])
    problem = io.read_problem(write(tmp_path / "t.csv", ",a,y\n2,5,0\n9,6,1\n"), test_size=0)
    np.testing.assert_array_equal(problem.X, [[2, 5], [9, 6]])
    assert "column 1 has no name and is a feature; --drop 1 leaves it out" in problem.notes
    problem = io.read_problem(write(tmp_path / "t.csv", "row id,a,y\n2,5,0\n1,6,1\n"), test_size=0)
    assert problem.notes == ["column row id counts the rows and is a feature; --drop 'row id' leaves it out"]


def test_labels_with_leading_zeros_are_names(tmp_path):
    path = write(tmp_path / "t.csv", "a,y\n5,01\n2,1\n3,01\n4,2\n")
    problem = io.read_problem(path, test_size=0)
    np.testing.assert_array_equal(problem.y, [1, -1, 1, -1])
    assert problem.notes == ["3 labels: 01 against the rest (choose with --positive)"]
    assert io.read_problem(path, test_size=0, lasso=True).y.tolist() == [1, 1, 1, 2]
    with pytest.raises(io.DataError, match="the target holds NaN or inf"):
        io.read_problem(write(path, "a,y\n5,01e999\n2,1\n"), test_size=0, lasso=True)


def test_spreadsheets(tmp_path):
    """Marks of byte order, other encodings, quotes behind a space, and what stands behind the table."""
    X, y = [[1.5, 1, 0], [2.5, 0, 1]], [-1, 1]
    text = 'size; "où, ""là""";y;;\r\n1,5; "b; c";no;;\r\n2,5;d;yes;;\r\n;;;;\r\n\r\n'
    path = tmp_path / "t.csv"
    for encoding, said in (("utf-8-sig", None), ("utf-16", None), ("cp1252", "cp1252")):
        for head in ("", "sep=;\r\n"):
            path.write_bytes((head + text).encode(encoding))
            problem = io.read_problem(path, test_size=0, encoding=said)
            np.testing.assert_array_equal(problem.X, X)
            np.testing.assert_array_equal(problem.y, y)
            assert 'one-hot encoded (values): où, "là" (2)' in problem.notes
    with pytest.raises(io.DataError, match=r"t\.csv:2: is not text in UTF-8; .*--encoding cp1252"):
        io.read_problem(path)
    with pytest.raises(io.DataError, match="--encoding no-such: Python knows no such encoding"):
        io.read_problem(path, encoding="no-such")
    path.write_bytes(b"\xef\xbb\xbf1 1:2\n-1 1:3\n")
    np.testing.assert_array_equal(
        dense(io.read_problem(path.rename(tmp_path / "t.svm"), test_size=0).X), [[2], [3]]
    )


MISSING = "age,cabin,town,y\n1,,Rome,no\n2,B,NA,yes\n?,C,Oslo,yes\n4,D,Oslo,no\n5,D,Rome,yes\n6,,Rome,no\n"


def test_missing_values(tmp_path):
    """Refused with their number in each column; rows or columns are left out on request."""
    path = write(tmp_path / "t.csv", MISSING)
    with pytest.raises(io.DataError) as caught:
        io.read_problem(path)
    assert str(caught.value) == (
        f"{path}: 4 of 6 rows have missing values, in the columns age (1, first in line 4), cabin (2, first "
        "in line 2), town (1, first in line 3). Leave the rows out (--drop-missing) or columns out (--drop "
        "age,cabin,town)."
    )
    problem = io.read_problem(path, test_size=0, drop_missing=True)
    np.testing.assert_array_equal(problem.X, [[4, 1, 1, 0], [5, 1, 0, 1]])
    assert problem.notes[0].startswith("left out: 4 of 6 rows, with missing values in age (1, ")
    problem = io.read_problem(path, test_size=0, drop=["age", "cabin"], categorical=["town"])
    assert problem.X.shape == (6, 3)  # NA is a town
    for text, match in (
        ("a,b,y\n1,,0\n,2,1\n", r"every row has .* Leave columns out \(--drop a,b\)\."),
        (
            "a,y\n1,0\n2,\n3,1\n",
            r"1 of 3 rows .* y, the target \(1, .* Leave the rows out \(--drop-missing\)\.$",
        ),
    ):
        with pytest.raises(io.DataError, match=match):
            io.read_problem(write(path, text), drop_missing="every" in match)


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
        ({}, r"2 of 4 rows .* city \(2, first in line 2\).*--drop city"),
    ):
        with pytest.raises(io.DataError, match=match):
            io.read_problem(path, **options)
    path = write(tmp_path / "t.csv", "a,b,a,y\n1,2,3,0\n4,5,6,1\n")
    for options in (dict(drop=["a"]), dict(target="a")):
        with pytest.raises(io.DataError, match="columns 1, 3 are all called 'a'; say which by its number"):
            io.read_problem(path, **options)
    np.testing.assert_array_equal(io.read_problem(path, test_size=0, drop=["3"]).X, [[1, 2], [4, 5]])
    path = write(tmp_path / "t.svm", "1 1:1\n0 1:2\n")
    with pytest.raises(
        io.DataError, match="--categorical, --drop and --drop-missing are for the columns of CSV and parquet"
    ):
        io.read_problem(path, drop=["1"])


def test_text_is_no_category(tmp_path):
    rows = "".join(f"person {i},{i % 7},{i % 2}\n" for i in range(40))
    path = write(tmp_path / "t.csv", "name,x,y\n" + rows)
    with pytest.raises(io.DataError, match=r"different words in 40 rows: 'name' \(40\)") as caught:
        io.read_problem(path)
    assert "--drop name" in str(caught.value) and "--categorical name" in str(caught.value)
    # all at once
    both = write(tmp_path / "u.csv", "".join(f"a{i},b{i},{i % 2}\n" for i in range(30)))
    with pytest.raises(io.DataError, match=r"'1' \(30\), '2' \(30\).*--drop 1,2"):
        io.read_problem(both)
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
        ("age", [1.0, np.inf, 3.0, 4.0], r"column 'age' holds inf \(row 2\)"),
        (
            "colour",
            ["red", None, None, "blue"],
            r"2 of 4 rows .* colour \(2, first in row 2\).*--drop colour",
        ),
        (
            "y",
            ["no", None, "yes", "no"],
            r"1 of 4 rows .* y, the target \(1, first in row 2\)\. Leave the rows out \(--drop-missing\)\.$",
        ),
        ("age", pd.to_datetime(["2020-01-01"] * 4), "column 'age' is of type .*--drop age"),
    ):
        frame.assign(**{column: values}).to_parquet(path)
        with pytest.raises(io.DataError, match=match):
            io.read_problem(path)
        if column == "y":
            problem = io.read_problem(path, test_size=0, drop_missing=True)
            np.testing.assert_array_equal(problem.X[:, 0], [1, 3, 4])
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
