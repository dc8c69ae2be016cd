"""Where a CSR or CSC matrix stops being one: the kernels against plain Python, and what is said of it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sparsekit._cython.shared._compressed import index_fault, pointer_fault
from sparsekit._linalg.structure import check_sparse

TYPES = pytest.mark.parametrize("index", [np.int32, np.int64])


def first(is_wrong):
    """The first index where a list is true, or -1."""
    return next((k for k, wrong in enumerate(is_wrong) if wrong), -1)


@TYPES
@given(size=st.integers(0, 5000), n=st.integers(0, 2**40), data=st.data())
def test_index_fault(index, size, n, data):
    # few drawn numbers, so that blocks and what is left of them are long
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    top = min(n, np.iinfo(index).max)
    values = rng.integers(0, max(top, 1), size, dtype=index)
    for k in data.draw(st.lists(st.integers(0, max(size - 1, 0)), max_size=3)):
        if size:
            info = np.iinfo(index)
            values[k] = data.draw(st.sampled_from([info.min, -5, -1, 0, top, top - 1, info.max]))
    assert index_fault(values, n) == first((v < 0 or v >= n) for v in values.tolist())


@TYPES
@given(size=st.integers(0, 5000), most=st.integers(0, 10000), data=st.data())
def test_pointer_fault(index, size, most, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = np.concatenate([[0], np.sort(rng.integers(0, most + 1, size))]).astype(index)
    info = np.iinfo(index)
    for k in data.draw(st.lists(st.integers(0, size), max_size=3)):
        values[k] = data.draw(st.sampled_from([info.min, -1, 0, most, most + 1, info.max]))
    v = values.tolist()
    expected = first(v[k] != 0 if k == 0 else (v[k] < v[k - 1] or v[k] > most) for k in range(len(v)))
    assert pointer_fault(values, most) == expected


@TYPES
def test_steps_that_overflow_are_seen(index):
    """Differences of the type's own arithmetic are all positive here."""
    info = np.iinfo(index)
    assert pointer_fault(np.array([0, info.max, info.min + 2, 0], dtype=index), info.max) == 2
    assert pointer_fault(np.empty(0, dtype=index), 0) == 0


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.bsr_array, sp.coo_array, sp.lil_array,
                                  sp.dok_array, sp.dia_array])  # fmt: skip
def test_good_matrices_pass(kind):
    A = np.diag(np.arange(1.0, 5.0)) + np.eye(4, k=1)
    X = kind(A)
    found = check_sparse(X)
    np.testing.assert_array_equal(found.toarray(), A)
    assert found is X or X.format in ("lil", "dok", "dia")
    for other in (A, [[1.0]], None, "text"):
        assert check_sparse(other) is other


def test_arrays_that_hold_more_than_the_matrix_are_cut():
    X = sp.csr_array(np.array([[0.0, 1.0], [2.0, 3.0]]))
    X.indices, X.data = np.append(X.indices, 10**6).astype(np.int32), np.append(X.data, np.nan)
    found = check_sparse(X)
    assert len(X.data) == 4 and found.indices.tolist() == [1, 0, 1] and found.data.tolist() == [1, 2, 3]
    strided = sp.csr_array((np.arange(6.0)[::2], np.array([1, 9, 0, 9, 1, 9])[::2], [0, 1, 3]), shape=(2, 2))
    assert not strided.data.flags.c_contiguous and check_sparse(strided).data.flags.c_contiguous
    np.testing.assert_array_equal(check_sparse(strided).toarray(), [[0, 0], [2, 4]])


def test_a_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "indices.npy", np.array([0, 1], dtype=np.int32))
    indices = np.load(tmp_path / "indices.npy", mmap_mode="r")
    X = sp.csr_array((np.ones(2), indices, np.array([0, 1, 2], dtype=np.int32)), shape=(2, 2))
    assert check_sparse(X) is X
    X.indices = indices
    assert check_sparse(X) is X


def broken(kind=sp.csr_array, **arrays):
    X = kind(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    for name, values in arrays.items():
        setattr(X, name, np.asarray(values))
    return X


I32 = np.int32


@pytest.mark.parametrize(
    "X, said",
    [
        (broken(indices=I32([1, 0, 3])), r"X is no valid CSR .*row 1 has the column index 3 \(indices"),
        (broken(indices=I32([1, -5, 2])), r"row 1 has the column index -5 .*columns are 0 \.\. 2"),
        (broken(sp.csc_matrix, indices=I32([1, 0, 7])), r"CSC .*column 2 has the row index 7 .* 0 \.\. 1"),
        (broken(indptr=I32([0, 3, 1])), r"row 1 begins at indptr\[1\] = 3 and ends at indptr\[2\] = 1"),
        (broken(indptr=I32([0, 1, 4])), r"row 1 begins .* = 1 and ends .* = 4 of 3 indices"),
        (broken(indptr=I32([1, 1, 3])), r"indptr\[0\] is 1 and must be 0"),
        (broken(indptr=I32([0, 3])), "indptr has 2 entries, and 3 are needed for 2 rows"),
        (broken(data=[1.0, 2.0]), r"data has the shape \(2,\) and indices \(3,\)"),
        (broken(indices=[1.0, 0.0, 2.0]), r"indices is no vector of int32 or int64 \(float64\)"),
        (broken(sp.coo_array, row=I32([0, 1, 2])), r"COO .*row\[2\] is 2, and the shape is \(2, 3\)"),
        (broken(sp.coo_array, col=I32([0, -1, 2])), r"col\[1\] is -1"),
        (broken(sp.coo_array, data=[1.0]), "row has 3 entries and data 1"),
        (broken(sp.bsr_array, indices=I32([0, 9, 1])), "BSR .*block row . has the column index 9"),
        (broken(sp.dia_array, offsets=I32([0])), "DIA matrix: it has 1 offsets for"),
    ],
)  # fmt: skip
def test_what_is_said(X, said):
    with pytest.raises(ValueError, match=said + r".*coo_array\(\(values, \(rows, columns\)\)"):
        check_sparse(X)


def test_lists_of_columns():
    X = sp.lil_array(np.eye(3))
    X.rows[1].append(9)
    with pytest.raises(ValueError, match=r"LIL .*different lengths"):
        check_sparse(X)
    X.data[1].append(1.0)
    with pytest.raises(ValueError, match="the column index 9"):
        check_sparse(X, "matrix")


def unaligned(values):
    """The same numbers at an odd address."""
    out = np.zeros(values.nbytes + 1, dtype=np.int8)[1:].view(values.dtype).reshape(values.shape)
    out[...] = values
    assert not out.flags.aligned
    return out


def test_arrays_that_are_not_aligned_are_copied():
    """Loads of a kernel from there are undefined in C; some processors and vectorised loops fault."""
    A = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    for name in ("data", "indices", "indptr"):
        X = sp.csr_array(A)
        setattr(X, name, unaligned(getattr(X, name)))
        found = check_sparse(X)
        assert all(a.flags.aligned for a in (found.data, found.indices, found.indptr))
        np.testing.assert_array_equal(found.toarray(), A)
