"""Matrices of the user's svmlight and .npz files, compressed or not."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import re
import zipfile
import zlib

import numpy as np
from scipy import sparse

from .._linalg.structure import check_sparse
from .._messages import shown
from ..datasets._files import MAX_BYTES, WIDEST, past_mark, unpacked, whole_number
from .tables import DataError


def _open_packed(opener, path, mode):
    """A compressed file for reading bytes, of which no more than `MAX_BYTES` are read."""
    return unpacked(opener, path, MAX_BYTES)


OPENERS = {
    suffix: functools.partial(_open_packed, opener)
    for suffix, opener in ((".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open))
}


def read_svmlight(path, opener):
    from sklearn.datasets import load_svmlight_file

    try:
        with opener(path, "rb") as stream:
            past_mark(stream)
            # zero_based=True takes indices as they are; _from_first_column drops an unused column 0
            X, y = load_svmlight_file(stream, zero_based=True)
    except (ValueError, OverflowError, IndexError) as error:
        raise DataError(_faulty_line(path, opener) or f"{path}: {error}") from error
    if X.shape[1] > WIDEST:
        raise DataError(_faulty_line(path, opener) or f"{path}: has {X.shape[1]} features")
    if not np.isfinite(X.data).all() or not np.isfinite(y).all():
        raise DataError(_faulty_line(path, opener) or f"{path}: holds NaN or inf")
    return sparse.csr_matrix(X), y


def _faulty_line(path, opener):
    """First line of an svmlight file that is wrong, and how; None if all are right."""
    with opener(path, "rb") as stream:
        past_mark(stream)
        for number, raw in enumerate(stream, start=1):
            fault = svmlight_fault(raw.decode("utf-8", errors="replace"))
            if fault:
                is_table = number == 1 and b":" not in raw and len(re.split(rb"[,;\t]", raw)) > 1
                hint = "; is it a table? Then name it .csv or .tsv" if is_table else ""
                return f"{path}:{number}: {fault}{hint}"
    return None


def svmlight_fault(line):
    """What is wrong with one line of an svmlight file, or None.

    A line is ``label index:value index:value ... # comment`` with increasing indices, all finite.
    """
    fields = line.split("#", 1)[0].split()
    if not fields:
        return None
    label, *features = fields
    if ":" in label:
        return f"the line starts with {shown(label)}, where its label should stand"
    if "," in label:
        return f"label {shown(label)} names several classes; one label a row is needed"
    if not _is_finite(label):
        return f"label {shown(label)} is not a finite number"
    last = -1
    for position, item in enumerate(features):
        index, colon, value = item.partition(":")
        if index == "qid" and colon and position == 0:
            continue
        if not colon:
            return f"{shown(item)} is not of the form index:value"
        if not index.isascii() or not index.isdigit():
            return f"index {shown(index)} in {shown(item)} is not a whole number from 0 on"
        column = whole_number(index)
        if column >= WIDEST:
            return f"index {shown(index)} is too large: no more than {WIDEST} features can be compared"
        if column <= last:
            return f"index {index} follows {last}; indices must increase along a line"
        if not _is_finite(value):
            return f"value {shown(value)} of feature {index} is not a finite number"
        last = column
    return None


def _is_finite(text):
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


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
