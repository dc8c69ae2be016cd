"""Loaders: what they read equals what was written, and a broken file is named with its line."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
import scipy.io.arff
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.externals import _arff

from sparsekit import datasets
from sparsekit.datasets import load_arff, load_svmlight, load_xc, make_oba_synthetic, make_spelled_digits

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        suffix = path.suffix if path.suffix in COMPRESS else ""
        path.write_bytes(COMPRESS[suffix](text if isinstance(text, bytes) else text.encode()))
        return path

    return write


def says(path, line, problem):
    """Regular expression of an error that names file, line and problem."""
    place = f"{path.name}, line {line}" if line else path.name
    return rf"{place}: .*{problem}"


# svmlight


@pytest.mark.parametrize("suffix", list(COMPRESS))
def test_svmlight_reads_what_scikit_learn_writes(write, suffix):
    X, y = load_breast_cancer(return_X_y=True)
    out = io.BytesIO()
    dump_svmlight_file(X, y, out, zero_based=False)
    X_read, y_read = load_svmlight(write("cancer.svm" + suffix, out.getvalue()))
    assert X_read.format == "csr" and X_read.dtype == np.float64
    assert_array_equal(X_read.toarray(), X)
    assert_array_equal(y_read, y)


def test_svmlight_options(write):
    path = write("a.svm", "1 1:0.5 3:2\n-1 2:1 # a comment\n\n")
    X, y = load_svmlight(path, n_features=5, dtype=np.float32)
    assert X.dtype == np.float32
    assert_array_equal(X.toarray(), [[0.5, 0, 2, 0, 0], [0, 1, 0, 0, 0]])
    assert_array_equal(y, [1, -1])
    X, _ = load_svmlight(path, zero_based=True)
    assert X.shape == (2, 4)
    X, Y = load_svmlight(write("m.svm", "1,3 0:1\n 1:2\n"), multilabel=True)
    assert Y == [(1.0, 3.0), ()]
    assert_array_equal(X.toarray(), [[1, 0], [0, 2]])


@pytest.mark.parametrize(
    "text, line, problem",
    [
        ("1 1:2\nyes 1:3\n", 2, "label is 'yes', not a number"),
        ("1 1:2\n\n0 1:3 2:x\n", 3, "value of index 2 is 'x', not a number"),
        ("1 1:2 3\n", 1, "'3' is not of the form index:value"),
        ("1 1:2\n1 a:2\n", 2, "index 'a' is not an integer"),
        ("1 2:1 1:1\n", 1, "index 1 comes after 2"),
        ("1 2:1 2:1\n", 1, "index 2 comes after 2"),
        ("1 1:1\n-1 1:nan\n", 2, "value of index 1 is 'nan', not a finite number"),
        ("1 1:1\ninf 1:1\n", 2, "label is 'inf', not a finite number"),
        ("1 -1:1\n", 1, "index -1 is below"),
        ("1:1 2:1\n", 1, "starts with '1:1', not with a label"),
        ("# nothing\n", None, "holds no row"),
        ("", None, "holds no row"),
    ],
)
def test_svmlight_errors_name_file_line_and_problem(write, text, line, problem):
    path = write("bad.svm", text)
    with pytest.raises(ValueError, match=says(path, line, problem)):
        load_svmlight(path)


def test_svmlight_errors_that_depend_on_options(write):
    path = write("bad.svm", "1 1:1\n1 0:2\n")
    with pytest.raises(ValueError, match=says(path, 2, "index 0 is below 1")):
        load_svmlight(path, zero_based=False)
    path = write("wide.svm", "1 1:1\n1 9:2\n")
    with pytest.raises(ValueError, match=says(path, 2, "index 9 is too large for 3 features")):
        load_svmlight(path, n_features=3)


@pytest.mark.parametrize("load", [load_svmlight, load_xc, load_arff])
def test_missing_and_damaged_files(tmp_path, load):
    with pytest.raises(FileNotFoundError, match="absent"):
        load(tmp_path / "absent.txt")
    for suffix in (".gz", ".bz2", ".xz"):
        path = tmp_path / f"text{suffix}"
        path.write_bytes(b"1 1:1\n")
        with pytest.raises(ValueError, match=says(path, None, "damaged or not compressed")):
            load(path)
        valid = {load_svmlight: "1 1:1\n", load_xc: "5000 2 2\n" + "1 1:1\n" * 5000, load_arff: iris_arff()}
        cut = tmp_path / f"cut{suffix}"
        cut.write_bytes(COMPRESS[suffix](valid[load].encode())[:-12])
        with pytest.raises(ValueError, match=says(cut, None, "damaged or not compressed")):
            load(cut)


# XC repository


def xc_text(X, labels):
    rows = [
        ",".join(map(str, row_labels)) + " " + " ".join(f"{j}:{float(row[j])!r}" for j in np.flatnonzero(row))
        for row, row_labels in zip(X, labels, strict=True)
    ]
    return rows


@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 5)),
        elements=st.sampled_from([0.0, 1.0, -0.25, 1e-300, 3.14159265358979]),
    ),
    data=st.data(),
)
def test_xc_round_trip(tmp_path_factory, X, data):
    n_labels = 4
    labels = data.draw(
        st.lists(
            st.lists(st.integers(0, n_labels - 1), unique=True, max_size=n_labels),
            min_size=len(X),
            max_size=len(X),
        )
    )
    path = tmp_path_factory.mktemp("xc") / "data.txt"
    path.write_text("\n".join([f"{len(X)} {X.shape[1]} {n_labels}", *xc_text(X, labels)]) + "\n")
    X_read, Y = load_xc(path)
    assert_array_equal(X_read.toarray(), X)
    expected = np.zeros((len(X), n_labels), dtype=np.int8)
    for i, row in enumerate(labels):
        expected[i, row] = 1
    assert_array_equal(Y.toarray(), expected)
    assert X_read.has_sorted_indices and Y.has_sorted_indices


@pytest.mark.parametrize("suffix", list(COMPRESS))
def test_xc_many_lines_and_odd_rows(write, suffix):
    # more rows than are parsed at a time; rows without labels (with and without the space), without features
    pattern = ["2,0 0:1.5 2:-1e-3", " 1:2", "1:2", "1", "", "1  2:4\t"]
    n = 25_000
    lines = [pattern[i % len(pattern)] for i in range(n)]
    X, Y = load_xc(write("big.txt" + suffix, "\n".join([f"{n} 3 3", *lines, "", ""])), dtype=np.float32)
    assert X.dtype == np.float32 and X.indices.dtype == np.int32
    first_X = [[1.5, 0, -1e-3], [0, 2, 0], [0, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 4]]
    first_Y = [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0]]
    rows = np.arange(n) % len(pattern)
    assert_array_equal(X.toarray(), np.array(first_X, dtype=np.float32)[rows])
    assert_array_equal(Y.toarray(), np.array(first_Y)[rows])


def test_xc_without_rows(write):
    X, Y = load_xc(write("none.txt", "0 3 2\n"))
    assert X.shape == (0, 3) and Y.shape == (0, 2)


@pytest.mark.parametrize(
    "text, line, problem",
    [
        ("2 3\n0 0:1\n", 1, "the header must be three counts"),
        ("", 1, "the header must be three counts"),
        ("2 3 2\n0 0:1\n", 3, "ends after 1 rows; its header says 2"),
        ("1 3 2\n0 0:1\n1 1:1\n", 3, "more rows than the 1"),
        ("2 3 2\n0 0:1\n2 0:1\n", 3, "label 2 is not between 0 and 1"),
        ("2 3 2\n0 0:1\n0 3:1\n", 3, "feature 3 is not between 0 and 2"),
        ("2 3 2\n0 0:1\n0 -1:1\n", 3, "feature -1 is not between 0 and 2"),
        ("2 3 2\n0 0:1\n0,x 1:1\n", 3, "label 'x' is not an integer"),
        ("2 3 2\n0 0:1\n0 1.5:1\n", 3, "feature '1.5' is not an integer"),
        ("2 3 2\n0 0:1\n0 1:one\n", 3, "value of feature 1 is 'one', not a finite number"),
        ("2 3 2\n0 0:1\n0 1:inf\n", 3, "value of feature 1 is 'inf', not a finite number"),
        ("2 3 2\n0 0:1\n0 1: 2:1\n", 3, "value of feature 1 is '', not a finite number"),
        ("2 3 2\n0 0:1\n0 1:2:1\n", 3, "'1:2:1' is not of the form index:value"),
        ("2 3 2\n0 0:1\n0 1 2:1\n", 3, "'1' is not of the form index:value"),
        ("2 3 2\n0 0:1\n0 1:1 1:2\n", 3, "feature 1 occurs twice"),
        ("2 3 2\n0 0:1\n1,1 1:1\n", 3, "label 1 occurs twice"),
        ("2 3 2\n0 0:1\n1, 1:1\n", 3, "label '' is not an integer"),
    ],
)
def test_xc_errors_name_file_line_and_problem(write, text, line, problem):
    path = write("bad.txt", text)
    with pytest.raises(ValueError, match=says(path, line, problem)):
        load_xc(path)


# ARFF


def iris_arff():
    iris = load_iris()
    rows = [
        ",".join(map(repr, row.tolist())) + f",Iris-{iris.target_names[k]}"
        for row, k in zip(iris.data, iris.target, strict=True)
    ]
    kinds = "\n".join(f"@ATTRIBUTE '{name}' NUMERIC" for name in iris.feature_names)
    classes = ",".join(f"Iris-{name}" for name in iris.target_names)
    return f"% a comment\n@RELATION iris\n\n{kinds}\n@ATTRIBUTE class {{{classes}}}\n@DATA\n" + "\n".join(
        rows
    )


def test_arff_iris_agrees_with_scipy(write):
    text = iris_arff()
    bunch = load_arff(write("iris.arff.gz", text), target="class")
    records, _ = scipy.io.arff.loadarff(io.StringIO(text))
    assert bunch.relation == "iris"
    assert bunch.feature_names == load_iris().feature_names and bunch.target_names == ["class"]
    assert_array_equal(bunch.data, load_iris().data)
    for j, name in enumerate(bunch.feature_names):
        assert_array_equal(bunch.data[:, j], records[name])
    assert_array_equal(bunch.target, records["class"].astype(str))
    assert bunch.categories == {"class": ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]}


DENSE = """@relation 'toy: -C 2'
@attribute 'a b' real
@attribute colour {red, 'dark blue', "it's"}
@attribute l1 {0,1}
@attribute l2 {0,1}
@data
1.5,red,0,1
?,'dark blue',1,1
-2e-3 , "it's" , 0 , 0
"""
XML = """<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">
<label name="l2"><label name="l1"></label></label></labels>"""


def test_arff_quotes_missing_values_and_nominal_features(write):
    bunch = load_arff(write("toy.arff", DENSE))
    assert bunch.target is None and bunch.relation == "toy: -C 2"
    assert bunch.feature_names == ["a b", "colour", "l1", "l2"]
    assert bunch.categories["colour"] == ["red", "dark blue", "it's"]
    assert_array_equal(bunch.data, [[1.5, 0, 0, 1], [np.nan, 1, 1, 1], [-2e-3, 2, 0, 0]])


@pytest.mark.parametrize("as_xml", [True, False])
def test_arff_several_targets(write, as_xml):
    target = write("toy.xml", XML) if as_xml else ["l2", "l1"]
    bunch = load_arff(write("toy.arff", DENSE), target=target)
    assert bunch.target_names == ["l2", "l1"] and bunch.feature_names == ["a b", "colour"]
    assert_array_equal(bunch.target, [[1, 0], [1, 1], [0, 0]])
    if as_xml:
        assert_array_equal(load_arff(write("toy.arff", DENSE), target=str(target)).target, bunch.target)


def test_arff_sparse(write):
    text = """@relation s
@attribute f0 numeric
@attribute f1 numeric
@attribute kind {yes,no}
@attribute n {3,0}
@attribute l {0,1}
@data
{0 1.5, 4 1}
{}
{1 -2,2 no,3 0}
"""
    bunch = load_arff(write("s.arff", text), target=["l"])
    assert sp.issparse(bunch.data) and sp.issparse(bunch.target)
    # absent: 0 for numbers, the first declared value for nominal attributes
    assert_array_equal(bunch.data.toarray(), [[1.5, 0, 0, 3], [0, 0, 0, 3], [0, -2, 1, 0]])
    assert_array_equal(bunch.target.toarray(), [[1], [0], [0]])
    single = load_arff(write("s.arff", text), target="kind")
    assert_array_equal(single.target, ["yes", "yes", "no"])


HEAD = "@relation r\n@attribute x numeric\n@attribute c {a,b}\n"


@pytest.mark.parametrize(
    "text, line, problem",
    [
        (HEAD + "@data\n1,a\n1,a,2\n", 6, "3 values, but 2 attributes are declared"),
        (HEAD + "@data\none,a\n", 5, "attribute 'x' has the value 'one', which is not a number"),
        (HEAD + "@data\n1,c\n", 5, "attribute 'c' has the value 'c', which is not one of 'a, b'"),
        (HEAD + "@data\n1,'a\n", 5, "an unreadable row"),
        (HEAD + "@data\n{0 1}\n1,a\n", 6, "a dense row after sparse ones"),
        (HEAD + "@data\n1,a\n{0 1}\n", 6, "a sparse row after dense ones"),
        (HEAD + "@data\n{0 1\n", 5, "is not a sparse row"),
        (HEAD + "@data\n{2 1}\n", 5, "index 2, but only 2 attributes"),
        (HEAD + "@data\n{0 1, 0 2}\n", 5, "an index occurs twice"),
        (HEAD + "@data\n", None, "holds no row after @data"),
        (HEAD, 3, "the file ends without @data"),
        ("@relation r\n@attribute t string\n@data\n", 2, "attribute 't' has type 'string'"),
        (HEAD + "@attribute x real\n@data\n", 4, "attribute 'x' is declared twice"),
        ("@relation r\n@data\n", 2, "@data without any @attribute"),
        ("hello\n", 1, "expected @relation, @attribute or @data, found 'hello'"),
        ("@attribute c {a,a}\n@data\n", 1, "attribute 'c' lists a value twice"),
        ("@attribute c {}\n@data\n", 1, "attribute 'c': cannot read the values"),
    ],
)
def test_arff_errors_name_file_line_and_problem(write, text, line, problem):
    path = write("bad.arff", text)
    with pytest.raises(ValueError, match=says(path, line, problem)):
        load_arff(path)


def test_arff_target_errors(write):
    path = write("toy.arff", DENSE)
    with pytest.raises(ValueError, match=r"toy.arff: no attribute is named 'l9', which target asks for"):
        load_arff(path, target=["l1", "l9"])
    with pytest.raises(ValueError, match=r"broken.xml, line 1: not well-formed XML"):
        load_arff(path, target=write("broken.xml", "<labels><label>"))
    with pytest.raises(ValueError, match=r"empty.xml: holds no <label name=...> elements"):
        load_arff(path, target=write("empty.xml", "<labels/>"))
    missing = write("missing.arff", HEAD + "@data\n1,?\n")
    with pytest.raises(ValueError, match=r"missing.arff: the target 'c' has missing values"):
        load_arff(missing, target="c")


def test_arff_percent_signs_and_escapes(write):
    """As scikit-learn's reader has them, where it reads such values at all."""
    text = r"""@relation r % not a comment
@attribute share {10%, '20%', '30\%'} % a comment
@attribute text {'a\tb', "c\nd", '\u00e9\101', 'it\'s', 'x\\y'}
@data
10%, 'a\tb'
20%, "c\nd"
'30\%', '\u00e9\101'
30%, "it\'s"
10%, 'x\\y'
"""
    bunch = load_arff(write("p.arff", text))
    assert bunch.categories == {
        "share": ["10%", "20%", "30%"],
        "text": ["a\tb", "c\nd", "\u00e9A", "it's", "x\\y"],
    }
    assert_array_equal(bunch.data, [[0, 0], [1, 1], [2, 2], [2, 3], [0, 4]])
    for line, codes in zip(text.splitlines()[4:], bunch.data, strict=True):
        read = [values[int(code)] for values, code in zip(bunch.categories.values(), codes, strict=True)]
        assert _arff._parse_values(line) == read


def test_arff_ranges_tabs_and_quoted_question_marks(write):
    text = "@relation r\n@attribute a INTEGER [0, 9] % digits\n@attribute b real[0,1]\n"
    text += "@attribute\tc\t{'?', x, 'y, z'}\n@data\n1\t.5\t'?'\n2 \t\t 1 , ?\n3,\t0,\t'y, z'\n"
    assert_array_equal(load_arff(write("r.arff", text)).data, [[1, 0.5, 0], [2, 1, np.nan], [3, 0, 2]])
    with pytest.raises(ValueError, match=r"line 6: attribute 'a' has the value .*which is not a number"):
        load_arff(write("q.arff", text.replace("1\t.5", "'?'\t.5")))


def test_arff_names_that_look_like_numbers(write):
    """What would merge, or is no finite number, stays a name; a target has the names as they are written."""
    text = "@relation r\n@attribute a {01,1}\n@attribute b {1e2,100}\n@attribute c {nan,1}\n"
    text += "@attribute d {2,1.5,-1e2}\n@data\n1,100,nan,-1e2\n01,1e2,1,1.5\n"
    path = write("n.arff", text)
    assert_array_equal(load_arff(path).data, [[1, 1, 0, -100], [0, 0, 1, 1.5]])
    assert load_arff(path, target="a").target.tolist() == ["1", "01"]
    assert load_arff(path, target="b").target.tolist() == ["100", "1e2"]


def test_arff_weights(write):
    bunch = load_arff(write("w.arff", HEAD + "@data\n1,a, {5}\n2,b\n3,'a'\t{ .5 }\n"))
    assert_array_equal(bunch.sample_weight, [5, 1, 0.5])
    assert_array_equal(bunch.data, [[1, 0], [2, 1], [3, 0]])
    bunch = load_arff(write("s.arff", HEAD + "@data\n{}\n{0 2,1 b},{3}\n"))
    assert_array_equal(bunch.sample_weight, [1, 3])
    assert_array_equal(bunch.data.toarray(), [[0, 0], [2, 1]])
    assert load_arff(write("o.arff", HEAD + "@data\n1,a\n")).sample_weight is None
    for weight in ("-1", "nan", "x", ""):
        path = write("f.arff", HEAD + f"@data\n1,a\n1,a,{{{weight}}}\n")
        with pytest.raises(ValueError, match=says(path, 6, f"the weight of the row is '{weight}'")):
            load_arff(path)


def test_arff_strings_are_left_out_on_request(write):
    head = "@relation r\n@attribute t string\n@attribute x numeric\n@attribute d date 'yyyy-MM-dd'\n@data\n"
    path = write("t.arff", head + "'some, text 50%',1,'2020-01-01'\n?,2,?\n")
    with pytest.raises(ValueError, match=says(path, 2, "type 'string'; .*skip_strings=True leaves it out")):
        load_arff(path)
    bunch = load_arff(path, skip_strings=True)
    assert bunch.feature_names == ["x"] and bunch.data.tolist() == [[1], [2]]
    sparse = load_arff(write("s.arff", head + "{0 'text',1 3}\n{2 '2020-01-01'}\n"), skip_strings=True)
    assert sparse.data.toarray().tolist() == [[3], [0]]
    with pytest.raises(ValueError, match="the target 't' is a string or date"):
        load_arff(path, skip_strings=True, target="t")
    with pytest.raises(ValueError, match="all attributes are strings or dates"):
        load_arff(write("o.arff", "@attribute t string\n@data\nx\n"), skip_strings=True)


def test_arff_encodings(write):
    text = "% Jos\u00e9\r\n@relation r\r\n@attribute \u00e9 numeric\r\n@data\r\n1\r\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        bunch = load_arff(write("e.arff", text.encode(encoding)), encoding=encoding)
        assert bunch.feature_names == ["\u00e9"]
    for encoding, line in (("latin-1", 3), ("utf-16", 1)):
        path = write("e.arff", text.encode(encoding))
        with pytest.raises(ValueError, match=says(path, line, "is not text in utf-8; give the encoding")):
            load_arff(path)
    with pytest.raises(ValueError, match="encoding must name one that Python knows; got 'no-such'"):
        load_arff(path, encoding="no-such")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_byte_order_marks_are_skipped(write, tmp_path, suffix):
    def marked(name, text):
        return write(name + suffix, b"\xef\xbb\xbf" + text.encode())

    assert load_arff(marked("b.arff", HEAD + "@data\n1,a\n")).data.tolist() == [[1, 0]]
    X, y = load_svmlight(marked("b.svm", "1 1:2\n-1 2:3\n"))
    assert X.toarray().tolist() == [[2, 0], [0, 3]] and y.tolist() == [1, -1]
    X, Y = load_xc(marked("b.txt", "1 2 2\n0 1:3\n"))
    assert X.toarray().tolist() == [[0, 3]] and Y.toarray().tolist() == [[1, 0]]
    rows = datasets.convert_svmlight(marked("c.svm", "1 1:2\n-1 2:3\n"), tmp_path / "folder")
    assert rows[:].toarray().tolist() == [[2, 0], [0, 3]]


# generators


def test_oba_synthetic_is_the_papers_problem():
    n = 60
    X, y = make_oba_synthetic(n, random_state=0)
    assert X.shape == (n, n) and set(y) == {-1.0, 1.0}
    assert_array_equal(X, np.triu(X))
    # R^T R = U + U^T - 2 lambda_min I: off the diagonal sums of two uniforms, smallest eigenvalue mirrored
    A = X.T @ X
    off = A[~np.eye(n, dtype=bool)]
    assert off.min() > 0 and off.max() < 2 and abs(off.mean() - 1) < 0.05
    shift = np.linalg.eigvalsh(A)[0]
    unshifted = A - 2 * shift * np.eye(n)
    assert_allclose(np.linalg.eigvalsh(unshifted)[0], -shift, rtol=1e-8)
    assert np.diag(unshifted).min() >= 0 and np.diag(unshifted).max() <= 2


def test_oba_synthetic_seed_and_bad_size():
    X, y = make_oba_synthetic(8, random_state=3)
    again_X, again_y = make_oba_synthetic(8, random_state=np.random.RandomState(3))
    assert_array_equal(X, again_X)
    assert_array_equal(y, again_y)
    assert not np.array_equal(X, make_oba_synthetic(8, random_state=4)[0])
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        make_oba_synthetic(0)


def test_spelled_digits_spell_their_numbers():
    data = make_spelled_digits(200, min_digits=2, max_digits=5, random_state=0)
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    names = dict(zip(words, "0123456789"))
    assert data.inputs.shape == (200, max(map(len, data.texts))) and data.targets.shape == (200, 6)
    for text, number, letters, length, target, count in zip(
        data.texts, data.numbers, data.inputs, data.input_lengths, data.targets, data.target_lengths
    ):
        assert "".join(names[word] for word in text.split()) + "#" == number
        assert "".join(data.letters[k] for k in letters[:length]) == text and not letters[length:].any()
        assert 3 <= count == len(number) <= 6
        assert "".join("#" if k == 10 else str(k) for k in target[:count]) == number
        assert (target[count:] == 10).all()
    sizes = np.bincount(data.target_lengths - 1, minlength=6)
    assert (sizes[2:] > 20).all() and not sizes[:2].any()
    again = make_spelled_digits(200, min_digits=2, max_digits=5, random_state=np.random.RandomState(0))
    assert again.texts == data.texts
    assert make_spelled_digits(0).inputs.shape == (0, 0)
    with pytest.raises(ValueError, match="min_digits <= max_digits"):
        make_spelled_digits(3, min_digits=4, max_digits=2)
    with pytest.raises(ValueError, match="n_samples must be at least 0"):
        make_spelled_digits(-1)
