"""Text to a folder of blocks: as scikit-learn reads it, and the same however often the process was killed."""

import gzip
import io
import os

import numpy as np
import pytest
import scipy.sparse as sp
from dataset_files import COMPRESS, files
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file, load_svmlight_files
from sklearn.preprocessing import MultiLabelBinarizer

from sparsekit.datasets import _convert_svmlight, convert_svmlight, load_svmlight, open_csr

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")


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
    monkeypatch.setattr(_convert_svmlight, "CHUNK", 1000)
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
    monkeypatch.setattr(_convert_svmlight, "CHUNK", 500)
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
    with pytest.raises(ValueError, match=r"a.svm, line 5: label 5 is too large for 5 labels"):
        convert_svmlight(path, tmp_path / "few", multilabel=True, n_labels=5)


def test_number_of_features(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:1 5:2\n2 3:1\n")
    assert convert_svmlight(path, tmp_path / "5", n_features=5).shape == (2, 5)
    assert convert_svmlight(path, tmp_path / "9", n_features=9).shape == (2, 9)
    assert convert_svmlight(path, tmp_path / "0", zero_based=True).shape == (2, 6)
    for option, most in (("auto", 4), (False, 4), (True, 5)):
        with pytest.raises(ValueError, match=f"a.svm, line 1: index 5 is too large for {most} features"):
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
        with pytest.raises(ValueError, match="line 1: index 2147483647 is too large for int32"):
            convert_svmlight(path, tmp_path / f"no {option}", zero_based=option)


@pytest.mark.parametrize(
    "text, line, problem, options",
    [
        ("2 1:x", 2, "value of index 1 is 'x', not a number", {}),
        ("# remark\n\nyes 1:1", 4, "label is 'yes', not a number", {}),
        ("1,2 1:3", 2, "label is '1,2', not a number", {}),
        ("inf 1:1", 2, "label is 'inf', not a finite number", {}),
        ("1:1 2:1", 2, "the line starts with '1:1', not with a label", {}),
        ("-1 1:nan", 2, "value of index 1 is 'nan', not a finite number", {}),
        ("-1 1:inf", 2, "value of index 1 is 'inf', not a finite number", {}),
        ("2 1:1e39", 2, "too large for float32", {"dtype": np.float32}),
        ("2 3:1 2:1", 2, "index 2 comes after 3", {}),
        ("2 3:1 3:1", 2, "index 3 comes after 3", {}),
        ("1 -1:1", 2, "index -1 is below", {}),
        ("2 0:1", 2, "index 0 is below 1", {"zero_based": False}),
        ("1 9:2", 2, "index 9 is too large for 3 features", {"n_features": 3}),
        ("1 2147483648:1", 2, "index 2147483648 is too large for", {}),
        ("1 a:2", 2, "index 'a' is not an integer", {}),
        ("1 7", 2, "'7' is not of the form index:value", {}),
        ("1 1:2 qid:3 4:5", 2, "index 'qid' is not an integer", {}),
        ("1 qid:1 qid:2 1:1", 2, "index 'qid' is not an integer", {}),
        ("1 \u0661:1", 2, "index '\u0661' is not an integer", {}),
        ("1 qid:3 2:3.4028235e38\n2 1:1e39", 3, "value of index 1 .*float32", {"dtype": np.float32}),
        ("1.5 1:1", 2, "label '1.5' is not a whole number", {"multilabel": True}),
        ("-1 1:1", 2, "label '-1' is not a whole number", {"multilabel": True}),
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


def test_lines_of_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_convert_svmlight, "CHUNK", 2000)
    path = tmp_path / "a.svm"
    path.write_bytes(text_of())
    convert_svmlight(path, tmp_path / "silent", block_bytes=5000)
    assert capsys.readouterr().out == ""
    convert_svmlight(path, tmp_path / "loud", block_bytes=5000, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 4 and lines[0].startswith("[convert_svmlight] 1 blocks of ")


# interruptions


class Killed(BaseException):
    """Instead of a signal."""


@pytest.mark.parametrize("multilabel", [False, True])
def test_it_goes_on_from_wherever_it_stopped(tmp_path, monkeypatch, multilabel):
    """Stopped at each write to the disk, one after the other, before it and after it."""
    monkeypatch.setattr(_convert_svmlight, "CHUNK", 700)
    paths = [tmp_path / "a.svm", tmp_path / "b.svm.gz"]
    paths[0].write_bytes(b"# a remark\n" + text_of(60, zero_based=True).replace(b"-", b""))
    paths[1].write_bytes(gzip.compress(text_of(50, seed=1, zero_based=True).replace(b"-", b"")))
    options = dict(block_bytes=3000, multilabel=multilabel)
    whole = convert_svmlight(paths, tmp_path / "whole", **options)
    assert whole.n_blocks > 3
    expected = files(whole.path)
    rename = os.replace
    for after in (False, True):
        stops = 0
        for stop in range(1000):
            left = [stop]

            def stopping(part, target, left=left, after=after):
                if not left[0] and not after:
                    raise Killed
                rename(part, target)
                left[0] -= 1
                if left[0] < 0:
                    raise Killed

            out = tmp_path / f"{after} {stop}"
            monkeypatch.setattr(os, "replace", stopping)
            try:
                convert_svmlight(paths, out, **options)
            except Killed:
                stops += 1
            else:
                break
            finally:
                monkeypatch.setattr(os, "replace", rename)
            if not (out / "manifest.json").exists():
                # before the first block there is nothing yet
                kind, message = (
                    (ValueError, "not finished") if stop or after else (FileNotFoundError, "manifest")
                )
                with pytest.raises(kind, match=message):
                    open_csr(out)
            (out / ".000004.csr.77.part.npz").write_bytes(b"half of a block, of a process that was killed")
            if not (out / "manifest.json").exists():
                convert_svmlight(paths, out, **options)
                assert files(out) == expected
        assert stops > whole.n_blocks


def test_what_is_finished_is_returned(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(text_of())
    first = convert_svmlight(path, tmp_path / "folder")
    written = (tmp_path / "folder" / "000000.csr.npz").stat().st_mtime_ns
    again = convert_svmlight([path], tmp_path / "folder")
    assert again.shape == first.shape
    assert (tmp_path / "folder" / "000000.csr.npz").stat().st_mtime_ns == written
    for options in ({"dtype": np.float32}, {"resume": False}):
        with pytest.raises(FileExistsError, match="a finished data set"):
            convert_svmlight(path, tmp_path / "folder", **options)


def test_a_block_that_is_gone_is_made_again(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(text_of())
    expected = files(convert_svmlight(path, tmp_path / "whole", block_bytes=5000).path)
    convert_svmlight(path, tmp_path / "folder", block_bytes=5000)
    (tmp_path / "folder" / "manifest.json").unlink()
    (tmp_path / "folder" / "000003.csr.npz").unlink()
    assert files(convert_svmlight(path, tmp_path / "folder", block_bytes=5000).path) == expected
    (tmp_path / "folder" / "manifest.json").unlink()
    (tmp_path / "folder" / "000003.csr.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"000003.csr.npz: damaged .* resume=False begins anew"):
        convert_svmlight(path, tmp_path / "folder", block_bytes=5000)
    folder = convert_svmlight(path, tmp_path / "folder", block_bytes=5000, resume=False)
    assert files(folder.path) == expected


def test_what_was_begun_with_other_files_or_arguments_is_not_gone_on_with(tmp_path, monkeypatch):
    path = tmp_path / "a.svm"
    monkeypatch.setattr(_convert_svmlight, "CHUNK", 2000)
    path.write_bytes(text_of() + b"broken\n")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"a.svm, line 401: label is 'broken'"):
            convert_svmlight(path, tmp_path / "folder", block_bytes=5000)
    before = files(tmp_path / "folder")
    assert len(before) > 5
    with pytest.raises(ValueError, match="resume=False"):
        convert_svmlight(path, tmp_path / "folder", block_bytes=6000)
    os.utime(path, (1, 1))
    with pytest.raises(ValueError, match="files that have changed since"):
        convert_svmlight(path, tmp_path / "folder", block_bytes=5000)
    assert files(tmp_path / "folder") == before
    path.write_bytes(text_of())
    folder = convert_svmlight(path, tmp_path / "folder", block_bytes=5000, resume=False)
    check(folder, *load_svmlight(path))
