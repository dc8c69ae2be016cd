"""Loader of ARFF files: what it reads equals what was written, and a broken file is named with its line."""

import io

import numpy as np
import pytest
import scipy.io.arff
import scipy.sparse as sp
from dataset_files import says
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.externals import _arff

from sparsekit.datasets import load_arff


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


def test_arff_names_that_are_digits(write):
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
