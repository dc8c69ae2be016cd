"""Folders of CSR blocks: what is read equals what was written, and a file that is not as it was is named."""

import json
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from dataset_files import files
from numpy.testing import assert_array_equal

from sparsekit.datasets import CSRFolder, open_csr, write_csr


def same(A, B):
    assert A.shape == B.shape and A.dtype == B.dtype
    for name in ("indptr", "indices", "data"):
        assert_array_equal(getattr(A, name), getattr(B, name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_blocks_are_the_rows(X, tmp_path, dtype, index):
    X = X.astype(dtype)
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    folder = write_csr(tmp_path / "folder", X, block_bytes=2000)
    assert folder.shape == X.shape and folder.dtype == dtype and folder.nnz == X.nnz
    assert folder.n_blocks == len(folder.starts) - 1 >= 5
    assert folder.starts.dtype == np.int64 and folder.starts[0] == 0 and folder.starts[-1] == 300
    assert folder.y is None and folder.block_y(0) is None
    for i, block in enumerate(folder.blocks()):
        same(block, sp.csr_matrix(X[folder.starts[i] : folder.starts[i + 1]]))
        assert block.format == "csr" and block.indices.dtype == block.indptr.dtype == np.int32
        assert block.has_canonical_format
        size = sum(len(a) * a.itemsize for a in (block.indptr, block.indices, block.data))
        assert size <= 2000


def test_blocks_without_values(tmp_path):
    X = sp.csr_array((50, 3))
    folder = write_csr(tmp_path / "folder", X, block_bytes=44)
    assert_array_equal(folder.starts, [0, 10, 20, 30, 40, 50])
    assert folder.nnz == 0 and folder.block(4).shape == (10, 3) and folder.block(4).nnz == 0
    same(folder[:], sp.csr_matrix(X))


def test_a_row_that_fits_into_no_block_has_one_of_its_own(tmp_path):
    X = sp.csr_array(np.vstack([np.eye(3, 100), np.ones((1, 100)), np.eye(2, 100)]))
    folder = write_csr(tmp_path / "folder", X, block_bytes=60)
    assert_array_equal(folder.starts, [0, 3, 4, 6])
    same(folder[:], sp.csr_matrix(X))


def test_order_of_blocks(folder, X):
    order = np.random.default_rng(0).permutation(folder.n_blocks)
    found = [block.toarray() for block in folder.blocks(order=order)]
    for i, block in zip(order, found, strict=True):
        assert_array_equal(block, X[folder.starts[i] : folder.starts[i + 1]].toarray())
    with pytest.raises(IndexError, match=f"block {folder.n_blocks} of {folder.n_blocks}"):
        folder.blocks(order=[0, folder.n_blocks])


def test_slices(folder, X):
    starts = folder.starts
    for key in (
        slice(None), slice(5, 5), slice(9, 3), slice(-4, None), slice(3, 10**6), slice(0, 1),
        slice(int(starts[1]), int(starts[2])), slice(int(starts[1]) + 1, int(starts[3]) - 1),
    ):  # fmt: skip
        same(folder[key], sp.csr_matrix(X[key]))
    with pytest.raises(TypeError, match="slices"):
        folder[3]
    with pytest.raises(ValueError, match="step 2"):
        folder[::2]


def test_repr_pickle_and_number_of_samples(folder, X):
    from sklearn.utils.validation import _num_samples

    assert "300 rows and 40 columns of float64" in repr(folder) and folder.path in repr(folder)
    again = pickle.loads(pickle.dumps(folder))
    assert type(again) is CSRFolder
    same(again.block(2), folder.block(2))
    assert _num_samples(folder) == 300


# targets


@pytest.mark.parametrize(
    "y, expected",
    [
        (np.arange(300), np.int64),
        (np.arange(300, dtype=np.int32), np.int32),
        (np.arange(300, dtype=np.uint8), np.int64),
        (np.arange(300) % 2 == 0, np.int64),
        (np.linspace(0, 1, 300), np.float64),
        (np.linspace(0, 1, 300, dtype=np.float32), np.float32),
        (list(range(300)), np.int64),
    ],
    ids=["int64", "int32", "uint8", "bool", "float64", "float32", "list"],
)
def test_targets(X, tmp_path, y, expected):
    folder = write_csr(tmp_path / "folder", X, y, block_bytes=2000)
    assert folder.y.dtype == expected
    assert_array_equal(folder.y, y)
    assert_array_equal(folder.block_y(2), folder.y[folder.starts[2] : folder.starts[3]])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_indicators(X, tmp_path, make):
    Y = (np.random.default_rng(0).random((300, 6)) < 0.2).astype(float)
    Y[:20] = 0
    folder = write_csr(tmp_path / "folder", X, make(Y), block_bytes=2000)
    assert folder.y.format == "csr" and folder.y.dtype == np.int8
    assert_array_equal(folder.y.toarray(), Y)
    assert_array_equal(folder.block_y(1).toarray(), Y[folder.starts[1] : folder.starts[2]])


# chunks


def test_blocks_do_not_depend_on_the_chunks(X, folder, tmp_path):
    y = np.arange(300) % 7

    def chunks():
        for first, last in ((0, 1), (1, 1), (1, 130), (130, 299), (299, 300)):
            yield X[first:last], y[first:last]

    other = write_csr(tmp_path / "other", chunks(), block_bytes=2000)
    assert files(other.path) == files(folder.path)


def test_chunks_of_several_kinds_are_left_as_they_were(tmp_path):
    untidy = sp.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 4))
    dense = np.array([[0.0, 5.0, 0.0, 0.0]])
    whole = sp.csc_matrix(np.array([[1, 0, 0, 2]]))
    folder = write_csr(tmp_path / "folder", [untidy, dense, whole])
    assert_array_equal(folder[:].toarray(), [[2, 0, 4, 0], [0, 5, 0, 0], [1, 0, 0, 2]])
    assert_array_equal(untidy.indices, [2, 0, 2])


def test_float32_is_taken_from_the_first_chunk(tmp_path):
    chunks = [np.eye(2, dtype=np.float32), np.eye(2)]
    assert write_csr(tmp_path / "a", chunks).dtype == np.float32
    assert write_csr(tmp_path / "b", chunks, dtype=np.float64).dtype == np.float64
    assert write_csr(tmp_path / "c", [np.eye(2, dtype=np.int8)]).dtype == np.float64


@pytest.mark.parametrize(
    "X, y, message",
    [
        ([], None, "no row"),
        ([np.zeros((0, 3))], None, "no row"),
        ([np.eye(2), np.eye(3)], None, "chunk 1 has 3 columns, the first one 2"),
        ([np.array([[1.0, np.nan]])], None, "chunk 0 holds NaN or infinity"),
        ([np.array([[1e300]])], None, "too large for float32"),
        ([(np.eye(2), [0, 1]), np.eye(2)], None, "chunk 1 has no targets"),
        ([(np.eye(2), [0, 1, 2])], None, r"must have the shape \(2,\), got \(3,\)"),
        ([(np.eye(2), [0, 1]), (np.eye(2), [0.5, 1])], None, "targets of chunk 1 must be int64"),
        ([(np.eye(2), [0.5, np.inf])], None, "targets of chunk 0 hold NaN or infinity"),
        ([(np.eye(2), ["a", "b"])], None, "y must hold numbers"),
        ([(np.eye(2), np.full((2, 2), 2))], None, "indicators must be 0 or 1"),
        ([np.eye(2)], [0, 1], "y must be None where X is an iterator"),
        ([np.eye(2) * 1j], None, "real numbers"),
    ],
)
def test_what_cannot_be_written(tmp_path, X, y, message):
    with pytest.raises(ValueError, match=message):
        write_csr(tmp_path / "folder", X, y, dtype=np.float32 if "float32" in message else None)
    assert not (tmp_path / "folder" / "manifest.json").exists()
    write_csr(tmp_path / "folder", np.eye(2))  # what is left is in nobody's way


def test_what_is_no_chunk(tmp_path):
    with pytest.raises(TypeError, match="chunk 0 must be a matrix"):
        write_csr(tmp_path / "folder", ["rows"])
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int32"):
        write_csr(tmp_path / "folder", np.eye(2), dtype=np.int32)


def test_folders_that_hold_something_are_left_alone(folder, tmp_path):
    with pytest.raises(FileExistsError, match="a finished data set"):
        write_csr(folder.path, np.eye(2))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match=r"other files \('letter.txt'\)"):
        write_csr(tmp_path / "other", np.eye(2))
    assert (tmp_path / "other" / "letter.txt").read_text() == "dear"


def test_files_are_numpys(folder):
    with np.load(os.path.join(folder.path, "000001.csr.npz"), allow_pickle=False) as arrays:
        found = sp.csr_array(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=folder.block(1).shape
        )
        same(found, folder.block(1))
        assert_array_equal(arrays["y"], folder.block_y(1))


def test_more_rows_than_int32_counts(folder, tmp_path):
    """Three blocks of 2^30 rows, of which nobody reads any."""
    manifest_path = tmp_path / "folder" / "manifest.json"
    manifest = json.loads(manifest_path.read_text())
    for block in manifest["blocks"][:3]:
        block["rows"] = 2**30
    manifest["blocks"] = manifest["blocks"][:3]
    manifest_path.write_text(json.dumps(manifest))
    opened = open_csr(folder.path)
    assert opened.shape == (3 * 2**30, 40)
    assert_array_equal(opened.starts, 2**30 * np.arange(4, dtype=np.int64))


MEASURE = """
import resource, sys
import numpy as np, scipy.sparse as sp
from sparsekit.datasets import convert_svmlight, open_csr, write_csr

scale = 1 if sys.platform == "darwin" else 1024
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6
folder, text = sys.argv[1:]
X = sp.random_array((4000, 1000), density=0.1, rng=0, format="csr")
X.sum()
before = peak()
made = write_csr(folder, ((X, np.arange(4000)) for _ in range(30)), block_bytes=2**22)
size = made.nnz * 12 / 1e6
wrote = peak()
total = sum(block.sum() for block in open_csr(folder).blocks())
assert abs(total - 30 * X.sum()) < 1e-6 * total
read = peak()
made = convert_svmlight(text, folder + "_text", block_bytes=2**22)
print(size, wrote - before, read - before, made.nnz * 12 / 1e6, peak() - before)
"""


def test_memory_stays_bounded(run_python, tmp_path):
    """Over blocks of 4 MiB, one chunk of 5 MB, and 4 MiB of text read ahead."""
    pytest.importorskip("resource", reason="Windows does not say how much memory a process has had")
    line = b"1 " + b" ".join(b"%d:0.5" % j for j in range(1, 1001)) + b"\n"
    (tmp_path / "text.svm").write_bytes(8000 * line)
    out = run_python(MEASURE, str(tmp_path / "folder"), str(tmp_path / "text.svm"))
    size, wrote, read, text_size, converted = map(float, out.split())
    assert size > 140 and text_size > 95
    assert wrote < 45 and read < 45 and converted < 60, out


def test_broken_matrices_are_not_written(tmp_path):
    X = sp.csr_array(np.eye(3))
    X.indices[1] = 10**6
    with pytest.raises(ValueError, match="row 1 has the column index 1000000"):
        write_csr(tmp_path / "folder", X)
    with pytest.raises(ValueError, match=r"y .*row 1 has the column index 1000000"):
        write_csr(tmp_path / "other", np.eye(3), X)
