"""Matrices of the user's .npz files."""

from __future__ import annotations

import zipfile
import zlib

import numpy as np
from scipy import sparse

from .._linalg.structure import check_sparse
from ..datasets._files import MAX_BYTES, WIDEST
from .tables import DataError


def read_npz(path):
    try:
        with np.load(path, allow_pickle=False) as z:
            _check_size(z.zip, path)
            arrays = {key: z[key] for key in z.files}
    except (ValueError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: is not a readable .npz file: {error}") from error
    wanted = "an array X (or X_data, X_indices, X_indptr, X_shape) and an array y"
    found = ", ".join(sorted(arrays)) or "nothing"
    for suffix in ("", "_train"):
        X, y = _npz_matrix(arrays, f"X{suffix}", path), arrays.get(f"y{suffix}")
        if X is None or y is None:
            continue
        held_out = None
        X_test, y_test = _npz_matrix(arrays, "X_test", path), arrays.get("y_test")
        if suffix and X_test is not None and y_test is not None:
            held_out = X_test, _checked_labels(y_test, X_test, "y_test", path)
        return X, _checked_labels(y, X, f"y{suffix}", path), held_out
    raise DataError(f"{path}: {wanted} are needed; the file holds {found}")


def _check_size(archive, path):
    """DataError where the parts of an archive unpack to more than `MAX_BYTES`; longer ones are cut off."""
    total = sum(part.file_size for part in archive.infolist())
    if total > MAX_BYTES:
        raise DataError(f"{path}: unpacks to {total} bytes; no more than {MAX_BYTES} can be read")


def _npz_matrix(arrays, base, path):
    """The dense or sparse matrix stored under a name, as float64, or None if it is not there."""
    if base in arrays:
        X = arrays[base]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise DataError(f"{path}: {base} must be a numeric matrix, is {X.dtype} of shape {X.shape}")
        X = X.astype(np.float64)
        values = X
    elif f"{base}_indptr" in arrays:
        absent = [k for k in ("data", "indices", "shape") if f"{base}_{k}" not in arrays]
        if absent:
            raise DataError(f"{path}: {base}_indptr is there but {base}_{absent[0]} is not")
        indices, indptr = arrays[f"{base}_indices"], arrays[f"{base}_indptr"]
        values = arrays[f"{base}_data"].astype(np.float64)
        if values.size == 0 and indices.size:
            values = np.ones(indices.size)  # a matrix of ones may leave its values out
        try:
            shape = tuple(int(v) for v in arrays[f"{base}_shape"])
            # SciPy's own check takes differences of pointers, which may overflow
            X = check_sparse(sparse.csr_matrix((values, indices, indptr), shape=shape), base)
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{path}: {base} is not a valid CSR matrix: {error}") from error
        X.sum_duplicates()
    else:
        return None
    if X.shape[1] > WIDEST:
        raise DataError(f"{path}: {base} has {X.shape[1]} columns; no more than {WIDEST} can be compared")
    if not np.isfinite(values).all():
        raise DataError(f"{path}: {base} holds NaN or inf")
    return X


def _checked_labels(y, X, key, path):
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != X.shape[0]:
        raise DataError(f"{path}: {key} has shape {y.shape}, but X has {X.shape[0]} rows")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(f"{path}: {key} holds NaN or inf")
    return y
