"""Text to a folder of blocks: as scikit-learn reads it, and a folder that was interrupted begins anew."""

import gzip
import io

import numpy as np
import pytest
import scipy.sparse as sp
from dataset_files import COMPRESS, files
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file, load_svmlight_files
from sklearn.preprocessing import MultiLabelBinarizer

from sparsekit.datasets import _svmlight, convert_svmlight, load_svmlight, open_csr


def text_of(n=400, p=60, density=0.1, seed=0, zero_based=False):
    X = sp.random_array((n, p), density=density, rng=seed, format="csr")
    out = io.BytesIO()
    dump_svmlight_file(X, np.arange(n) % 5 - 2, out, zero_based=zero_based)
    return out.getvalue()


def check(folder, X, y):
    found = folder[:]
    assert found.shape == X.shape and found.dtype == X.dtype
    for name in ("indptr", "indices", "data"):
        assert_array_equal(getattr(found, name), getattr(X, name))
    assert_array_equal(folder.y, y)


@pytest.mark.parametrize("suffix", list(COMPRESS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zero_based", [False, True])
def test_as_scikit_learn_reads_it(tmp_path, monkeypatch, suffix, dtype, zero_based):
    monkeypatch.setattr(_svmlight, "CHUNK", 1000)
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(COMPRESS[suffix](text_of(zero_based=zero_based)))
    X, y = load_svmlight(path, dtype=dtype)
    for option in ("auto", zero_based):
        out = tmp_path / f"folder {option}"
        folder = convert_svmlight(path, out, dtype=dtype, zero_based=option, block_bytes=3000)
        assert folder.n_blocks > 5 and folder.dtype == dtype
        check(folder, X, y)
        for block in folder.blocks():
            used = sum(len(a) * a.itemsize for a in (block.indptr, block.indices, block.data))
            assert used + 8 * block.shape[0] <= 3000


def test_several_files(tmp_path, monkeypatch):
    """The first one's last line has no newline; what a block holds does not stop at the end of a file."""
    monkeypatch.setattr(_svmlight, "CHUNK", 500)
    texts = [text_of(90, seed=1)[:-1], gzip.compress(text_of(1, seed=2)), text_of(200, 70, seed=3)]
    paths = [tmp_path / name for name in ("a.svm", "b.svm.gz", "c.svm")]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    loaded = load_svmlight_files([str(path) for path in paths])
    folder = convert_svmlight(paths, tmp_path / "folder", block_bytes=2000)
    check(folder, sp.csr_matrix(sp.vstack(loaded[::2], format="csr")), np.concatenate(loaded[1::2]))
    together = tmp_path / "all.svm"
    together.write_bytes(b"".join([texts[0], b"\n", gzip.decompress(texts[1]), texts[2]]))
    other = convert_svmlight(together, tmp_path / "other", block_bytes=2000)
    assert_array_equal(other.starts, folder.starts)


LINES = b"""# a remark
1 1:0.5 3:2  # behind a row

-1\t2:1e-3   4:-2.5E+2\r
  3   # no values
+2. qid:7 1:.5 2:+00012.
0 3:123456789012345678901234567890 4:4.9e-324 5:1.7976931348623157e308
2 6:0 7:-0.0
1e0 00000000001:1_0 +2:5
"""


def test_odd_lines(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(LINES)
    X, y = load_svmlight(path)
    assert X.shape == (7, 7) and X.nnz == 13
    for block_bytes in (1, 30, 90, 2**20):
        folder = convert_svmlight(path, tmp_path / f"{block_bytes}", block_bytes=block_bytes)
        check(folder, X, y)


PIECES = st.sampled_from(
    [b"1", b"0", b"-3.5", b" ", b"  ", b"\t", b"\n", b"\n", b"\r\n", b"1:", b"2:", b"3:0.5", b" 4:1",
     b" 7:1e2", b" 0:1", b"#", b":", b",", b"qid:3", b"nan", b"1e999", b"-", b"\x00", b"\xff", b"_",
     b" 99999999999:1", b"\x0b", b"0x1"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=14).map(b"".join), st.booleans(), st.sampled_from([True, False, "auto"]))
def test_any_text_is_read_as_in_memory_or_refused_as_there(tmp_path_factory, text, multilabel, zero_based):
    tmp_path = tmp_path_factory.mktemp("any")
    path = tmp_path / "a.svm"
    path.write_bytes(text)
    options = dict(multilabel=multilabel, zero_based=zero_based)
    try:
        X, y = load_svmlight(path, **options)
        if multilabel and any(label < 0 or label != int(label) for labels in y for label in labels):
            X = None  # labels are columns on disk
    except ValueError:
        X = None
    if X is None:
        with pytest.raises(ValueError):
            convert_svmlight(path, tmp_path / "folder", **options)
        return
    folder = convert_svmlight(path, tmp_path / "folder", block_bytes=40, **options)
    if multilabel:
        assert [set(row.indices) for row in folder.y] == [set(map(int, labels)) for labels in y]
        assert_array_equal(folder[:].toarray(), X.toarray())
    else:
        check(folder, X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_labels(tmp_path, dtype):
    path = tmp_path / "a.svm"
    path.write_bytes(b"3,1,1 1:1\n 2:1\n0 3:1\n2:7\n5,4\n" * 20)
    X, labels = load_svmlight_file(str(path), multilabel=True, dtype=dtype)
    Y = MultiLabelBinarizer(classes=range(6)).fit_transform([list(map(int, row)) for row in labels])
    folder = convert_svmlight(path, tmp_path / "folder", multilabel=True, block_bytes=300, dtype=dtype)
    assert folder.n_blocks > 3 and folder.y.dtype == np.int8
    check_X = folder[:]
    assert_array_equal(check_X.toarray(), X.toarray())
    assert_array_equal(folder.y.toarray(), Y)
    wide = convert_svmlight(path, tmp_path / "wide", multilabel=True, n_labels=9)
    assert wide.y.shape == (100, 9)
    with pytest.raises(ValueError, match=r"a.svm, line 5: .*has a label that is no whole number from 0 to 4"):
        convert_svmlight(path, tmp_path / "few", multilabel=True, n_labels=5)


def test_number_of_features(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:1 5:2\n2 3:1\n")
    assert convert_svmlight(path, tmp_path / "5", n_features=5).shape == (2, 5)
    assert convert_svmlight(path, tmp_path / "9", n_features=9).shape == (2, 9)
    assert convert_svmlight(path, tmp_path / "0", zero_based=True).shape == (2, 6)
    for option, most in (("auto", 4), (False, 4), (True, 5)):
        with pytest.raises(ValueError, match=r"a.svm, line 1: .*index 5; the largest allowed is 4"):
            convert_svmlight(path, tmp_path / "no", n_features=most, zero_based=option)
    path.write_bytes(b"1 5:2\n2 0:1\n")
    with pytest.raises(ValueError, match="index 5 is too large for 5 features, as index 0 occurs too"):
        convert_svmlight(path, tmp_path / "no", n_features=5)
    path.write_bytes(b"1\n2\n")
    assert convert_svmlight(path, tmp_path / "none").shape == load_svmlight(path)[0].shape == (2, 1)
    path.write_bytes(b"1 2147483646:1\n")
    assert convert_svmlight(path, tmp_path / "widest").shape == (1, 2**31 - 2)
    # wherever the indices begin, they and the number of columns fit into int32
    path.write_bytes(b"1 2147483647:1\n")
    assert convert_svmlight(path, tmp_path / "from 1", zero_based=False).shape == (1, 2**31 - 1)
    for option in ("auto", True):
        with pytest.raises(
            ValueError, match=r"line 1: .*index 2147483647; the largest allowed is 2147483646"
        ):
            convert_svmlight(path, tmp_path / f"no {option}", zero_based=option)


@pytest.mark.parametrize(
    "text, line, problem, options",
    [
        ("2 1:x", 2, "is not of the form", {}),
        ("# remark\n\nyes 1:1", 4, "is not of the form", {}),
        ("1,2 1:3", 2, "is not of the form", {}),
        ("inf 1:1", 2, "has a value that is NaN, infinite or too large for float64", {}),
        ("1:1 2:1", 2, "is not of the form", {}),
        ("-1 1:nan", 2, "has a value that is NaN, infinite", {}),
        ("-1 1:inf", 2, "has a value that is NaN, infinite", {}),
        ("2 1:1e39", 2, "too large for float32", {"dtype": np.float32}),
        ("2 3:1 2:1", 2, "is not of the form .* increase", {}),
        ("2 3:1 3:1", 2, "is not of the form .* increase", {}),
        ("1 -1:1", 2, "is not of the form", {}),
        ("2 0:1", 2, "has the index 0; the lowest allowed is 1", {"zero_based": False}),
        ("1 9:2", 2, "has the index 9; the largest allowed is 3", {"n_features": 3}),
        ("1 2147483648:1", 2, "is not of the form", {}),
        ("1 a:2", 2, "is not of the form", {}),
        ("1 7", 2, "'1 7' is not of the form `label index:value ...`", {}),
        ("1 1:2 qid:3 4:5", 2, "is not of the form", {}),
        ("1 qid:1 qid:2 1:1", 2, "is not of the form", {}),
        ("1 \u0661:1", 2, "'1 \u0661:1' is not of the form", {}),
        ("1 qid:3 2:3.4028235e38\n2 1:1e39", 3, "too large for float32", {"dtype": np.float32}),
        ("1.5 1:1", 2, "has a label that is no whole number from 0", {"multilabel": True}),
        ("-1 1:1", 2, "has a label that is no whole number from 0", {"multilabel": True}),
    ],
)
def test_a_broken_line_is_named(tmp_path, text, line, problem, options):
    path, said = tmp_path / "a.svm", f"a.svm, line {line}: .*{problem}"
    path.write_text(f"1 1:1\n{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        convert_svmlight(path, tmp_path / "folder", block_bytes=20, **options)
    if "multilabel" not in options:  # in memory labels may be any numbers
        with pytest.raises(ValueError, match=said):
            load_svmlight(path, **options)
    before = tmp_path / "before.svm"
    before.write_bytes(b"1 1:1\n" * 5)  # whose lines do not count
    with pytest.raises(ValueError, match=said):
        convert_svmlight([before, path], tmp_path / "both", block_bytes=20, **options)
    path.write_bytes(b"1 1:1\n")  # no block was lost
    convert_svmlight(path, tmp_path / "folder", block_bytes=20, **options)


def test_files_that_are_not_there_empty_or_damaged(tmp_path):
    path = tmp_path / "a.svm"
    with pytest.raises(FileNotFoundError, match=r"a.svm"):
        convert_svmlight(path, tmp_path / "folder")
    for text in (b"", b"\n# nothing\n"):
        path.write_bytes(text)
        for read in (load_svmlight, lambda path: convert_svmlight(path, tmp_path / "folder")):
            with pytest.raises(ValueError, match=r"a.svm: holds no row"):
                read(path)
    packed = tmp_path / "a.svm.gz"
    packed.write_bytes(gzip.compress(text_of())[:-20])
    with pytest.raises(ValueError, match=r"a.svm.gz: damaged"):
        convert_svmlight(packed, tmp_path / "folder")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dtype": np.int32}, "dtype must be float32 or float64"),
        ({"zero_based": "maybe"}, "zero_based must be"),
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_features": 2**31}, "n_features must be at most"),
        ({"n_labels": 3}, "multilabel=True"),
        ({"block_bytes": 0}, "block_bytes must be at least 1"),
    ],
)
def test_wrong_arguments(tmp_path, options, message):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:1\n")
    with pytest.raises(ValueError, match=message):
        convert_svmlight(path, tmp_path / "folder", **options)
    with pytest.raises(ValueError, match="names no file"):
        convert_svmlight([], tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_what_was_interrupted_begins_anew(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(text_of() + b"broken\n")
    with pytest.raises(ValueError, match=r"a.svm, line 401: .*'broken' is not of the form"):
        convert_svmlight(path, tmp_path / "folder", block_bytes=5000)
    path.write_bytes(text_of())
    expected = files(convert_svmlight(path, tmp_path / "whole", block_bytes=5000).path)
    for kept in range(len(expected)):
        out = tmp_path / f"{kept}"
        out.mkdir()
        for name in sorted(expected)[:kept]:
            (out / name).write_bytes(b"PK")
        (out / ".manifest.77.part.json").write_bytes(b"half")
        with pytest.raises(FileNotFoundError, match="manifest"):
            open_csr(out)
        assert files(convert_svmlight(path, out, block_bytes=5000).path) == expected
    with pytest.raises(FileExistsError, match="a finished data set"):
        convert_svmlight(path, tmp_path / "whole", block_bytes=5000)
    assert files(tmp_path / "whole") == expected
