"""Loaders: what they read equals what was written, and a broken file is named with its line."""

import io

import numpy as np
import pytest
from dataset_files import COMPRESS, says
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

from sparsekit import datasets
from sparsekit.datasets import load_svmlight, load_xc, make_oba_synthetic, make_spelled_digits

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


@pytest.mark.parametrize("load", [load_svmlight, load_xc])
def test_missing_and_damaged_files(tmp_path, load):
    with pytest.raises(FileNotFoundError, match="absent"):
        load(tmp_path / "absent.txt")
    for suffix in (".gz", ".bz2", ".xz"):
        path = tmp_path / f"text{suffix}"
        path.write_bytes(b"1 1:1\n")
        with pytest.raises(ValueError, match=says(path, None, "damaged or not compressed")):
            load(path)
        valid = {load_svmlight: "1 1:1\n", load_xc: "5000 2 2\n" + "1 1:1\n" * 5000}
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


def test_xc_label_that_stands_twice(write):
    assert_array_equal(load_xc(write("a.txt", "2 3 2\n1,1 1:1\n0,1,0 0:1\n"))[1].toarray(), [[0, 1], [1, 1]])


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
        ("2 3 2\n0 0:1\n2 0:1\n", 3, "has a label that is no whole number from 0 to 1"),
        ("2 3 2\n0 0:1\n-1 0:1\n", 3, "has a label that is no whole number from 0 to 1"),
        ("2 3 2\n0 0:1\n0 3:1\n", 3, "has the index 3; the largest allowed is 2"),
        ("2 3 2\n0 0:1\n0 -1:1\n", 3, "is not of the form"),
        ("2 3 2\n0 0:1\n0 1: 2:1\n", 3, "is not of the form"),
        ("2 3 2\n0 0:1\n0 1:2:1\n", 3, "is not of the form"),
        ("2 3 2\n0 0:1\n1, 1:1\n", 3, "is not of the form"),
        ("3 3 2\n0 0:1\n# hi\n1 1:1\n", 3, "no comments"),
        ("2 3 2\n0 0:1\n1 1:1 # hi\n", 3, "no comments"),
        ("2 3 2\n0 0:1\n1 qid:3 1:1\n", 3, "no qid"),
        ("2 3 2\n0 0:1\nqid:3 1:1\n", 3, "no qid"),
        ("2 3 2\n0 0:1\n1 \u0661:1\n", 3, "'1 \u0661:1' is not of the form"),
        ("\u0661 3 2\n0 0:1\n", 1, "the header must be three counts"),
    ],
)
def test_xc_errors_name_file_line_and_problem(write, text, line, problem):
    path = write("bad.txt", text)
    with pytest.raises(ValueError, match=says(path, line, problem)):
        load_xc(path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_byte_order_marks_are_skipped(write, tmp_path, suffix):
    def marked(name, text):
        return write(name + suffix, b"\xef\xbb\xbf" + text.encode())

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
