"""Files made to take long, to fill the memory or to break a reader end with an error that names them."""

import numpy as np
import pytest
from dataset_files import packed, says

from sparsekit._compare import io as compare_io
from sparsekit._compare import matrix_files
from sparsekit._compare.tables import DataError
from sparsekit.datasets import _files, load_svmlight, load_xc

NINES = b"9" * 10_000


@pytest.mark.parametrize(
    "header", [b"1 1000000000000 3", b"1 3 1000000000000", b"9999999999999 3 3", b"1 " + NINES + b" 3"]
)
def test_xc_headers_of_great_width(tmp_path, header):
    path = packed(tmp_path, "wide.txt", header + b"\n0 1:1\n")
    with pytest.raises(ValueError, match=says(path, 1, "the header must be three counts up to 2147483647")):
        load_xc(path)


@pytest.mark.parametrize("line", [b"0 " + NINES + b":1", NINES + b" 1:1", b"0 1:" + NINES])
def test_xc_indices_without_end(tmp_path, line):
    path = packed(tmp_path, "huge.txt", b"1 3 3\n" + line + b"\n")
    with pytest.raises(ValueError, match=says(path, 2, "9999")):
        load_xc(path)


@pytest.mark.parametrize("index", [b"1000000000", b"99999999999999999999", NINES], ids=len)
def test_svmlight_of_great_width(tmp_path, index):
    path = packed(tmp_path, "wide.svm", b"1 1:1\n-1 2:1 " + index + b":1\n")
    with pytest.raises(
        ValueError, match=says(path, 2, "largest allowed is 500000000; give n_features|is not of the form")
    ):
        load_svmlight(path)
    with pytest.raises(DataError, match=r"wide\.svm, line 2: "):
        compare_io.read_problem(path)


def test_svmlight_is_as_wide_as_the_user_says(tmp_path):
    path = packed(tmp_path, "wide.svm", b"1 1:1\n-1 2:1 1000000000:1\n")
    assert load_svmlight(path, n_features=10**9)[0].shape == (2, 10**9)


LOADERS = {"bomb.svm": load_svmlight, "bomb.txt": load_xc}


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("name", list(LOADERS))
def test_what_unpacks_to_too_much(tmp_path, name, suffix, monkeypatch):
    """One line of 4 MB, of which a megabyte is read."""
    path = packed(tmp_path, name + suffix, b"1 " * 2**21)
    read, readinto = [], _files._Limited.readinto

    def counting(self, buffer):
        read.append(len(buffer))
        return readinto(self, buffer)

    monkeypatch.setattr(_files._Limited, "readinto", counting)
    with pytest.raises(ValueError, match=says(path, None, "more than max_bytes=1000000 bytes")):
        LOADERS[name](path, max_bytes=1_000_000)
    assert 0 < sum(read) < 3_000_000
    for wrong in (0, -1, 1.5, "many"):
        with pytest.raises((TypeError, ValueError), match="max_bytes must be"):
            LOADERS[name](path, max_bytes=wrong)


def test_the_limit_is_of_compressed_files_alone(tmp_path):
    text = b"1 1:1\n-1 2:1\n"
    X, _ = load_svmlight(packed(tmp_path, "plain.svm", text), max_bytes=1)
    assert X.shape == (2, 2)
    X, _ = load_svmlight(packed(tmp_path, "small.svm.gz", text), max_bytes=len(text))
    assert X.shape == (2, 2)
    with pytest.raises(ValueError, match="max_bytes=12"):
        load_svmlight(packed(tmp_path, "small.svm.gz", text), max_bytes=len(text) - 1)


@pytest.mark.parametrize("name", ["table.csv.gz", "arrays.npz"])
def test_compare_reads_no_more_than_its_limit(tmp_path, name, monkeypatch):
    for module in (_files, matrix_files):
        monkeypatch.setattr(module, "MAX_BYTES", 1000)
    path = tmp_path / name
    if name == "arrays.npz":
        np.savez_compressed(path, X=np.zeros((50, 40)), y=np.zeros(50))
    else:
        packed(tmp_path, name, b"1,1\n" * 1000)
    with pytest.raises(DataError, match=rf"{name}: unpacks to .*1000"):
        compare_io.read_problem(path)


@pytest.mark.parametrize("width", [1e12, 2.0**80, np.inf, np.nan])
def test_archives_of_great_width(tmp_path, width):
    path = tmp_path / "wide.npz"
    arrays = dict(X_data=[1.0, 1.0], X_indices=[0, 1], X_indptr=[0, 1, 2], X_shape=[2.0, width], y=[0, 1])
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=r"wide\.npz: X (has 1000000000000 columns|is not a valid CSR)"):
        compare_io.read_problem(path)


def test_archives_whose_pointers_have_steps_that_overflow(tmp_path):
    """SciPy's check passes them, and its sort of the indices then asks for 32 GB and writes far outside."""
    path, indptr = tmp_path / "steps.npz", np.array([0, 2 * 10**9, -(10**9), 8], dtype=np.int32)
    arrays = dict(X_data=np.ones(8), X_indices=np.arange(8) % 3, X_indptr=indptr, X_shape=[3, 3], y=[0, 1, 0])
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=r"steps\.npz: X is not a valid CSR matrix.* row 0 begins at"):
        compare_io.read_problem(path)
