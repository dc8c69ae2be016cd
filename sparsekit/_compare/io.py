"""Data for the comparison: files of the user (svmlight, .npz, CSV, parquet), or sets of scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from .._messages import listed, shown
from ..datasets._files import OPENERS, FileFormatError
from ..datasets._svmlight import load_svmlight
from .matrix_files import read_npz
from .problem import Problem
from .tables import MAX_VALUES, DataError, encode, is_number, read_table, text_of

SVMLIGHT = (".svm", ".libsvm", ".svmlight", ".txt", ".dat", ".t", ".tr")
DELIMITED = (".csv", ".tsv")
TABLES = (*DELIMITED, ".parquet")
STANDARDIZED = "columns standardised: mean 0, standard deviation 1 (--no-standardize: as they are)"


def read_problem(
    path,
    *,
    test=None,
    test_size=0.25,
    target=None,
    positive=None,
    drop=(),
    standardize=False,
    fit_intercept=False,
    seed=0,
    family="binomial",
    l1_ratio=1.0,
):
    """Read a data set and make a problem of it.

    Parameters
    ----------
    path, test, test_size, target, positive, drop, fit_intercept, seed
        As the options of the command line.
    standardize : bool or None, default=False
        Give the columns the standard deviation 1, and the mean 0 if X is dense; None: only if X is dense.
    family, l1_ratio
        As of `Problem`. Where the target is a number to predict, rows are held out without regard to it.

    Raises
    ------
    DataError
    """
    path = Path(path)
    columns = dict(target=target, drop=drop)
    X, labels, held_out, encoder, notes = _read(path, columns)
    if test is not None:
        X_test, labels_test, _, _, more = _read(Path(test), columns, encoder)
        notes += [f"held-out rows: {note}" for note in more]
        X, X_test = _same_width(X, X_test, path, test)
        held_out = X_test, labels_test
    elif held_out is not None:
        notes.append("held-out rows are those of the file")
    elif _kind(path)[0] in SVMLIGHT:
        X = _from_first_column(X)
    has_classes = family == "binomial"
    if has_classes:
        y, label, note = _binary(labels, positive, path)
        notes += note
    else:
        y = _numbers(labels, path, X, family)
    if held_out is not None:
        X_test, given = held_out
        if has_classes:
            y_test = np.where(given == label, 1.0, -1.0)
        else:
            y_test = _numbers(given, test or path, X_test, family)
    else:
        X, y, X_test, y_test, note = split(X, y, test_size, seed, has_classes)
        notes += note
    if standardize or (standardize is None and not sparse.issparse(X)):
        X, X_test = _standardized(X, X_test, path)
        notes.append("columns divided by their standard deviation" if sparse.issparse(X) else STANDARDIZED)
    elif standardize is None:
        notes.append("columns as they are (--standardize scales them)")
    return Problem(_name(path), X, y, fit_intercept, X_test, y_test, notes, family, l1_ratio)


def _standardized(X, X_test, path):
    """X and the held-out rows, scaled by what X has as means and standard deviations."""
    from sklearn.preprocessing import StandardScaler

    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler(with_mean=not sparse.issparse(X)).fit(X)
    if not np.isfinite(scaler.var_).all():
        raise DataError(f"{path}: its numbers are too large to be standardised; --no-standardize")
    return scaler.transform(X), None if X_test is None else scaler.transform(X_test)


def shipped_problems(*, test_size=0.25, fit_intercept=False, seed=0, family="binomial", l1_ratio=1.0):
    """Sets that come with scikit-learn.

    For classes breast cancer, and digits, even against odd. For least squares diabetes as it is, and with
    products of up to three of its features, which are nearly collinear; for other families the former.
    """
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
    from sklearn.preprocessing import PolynomialFeatures

    scaled = "features standardised"
    if family == "binomial":
        X, y = load_breast_cancer(return_X_y=True)
        digits, number = load_digits(return_X_y=True)
        sets = [
            ("breast cancer", X, y == 1, [scaled]),
            ("digits", digits / 16, number % 2 == 0, ["even digits against odd, pixels in [0, 1]"]),
        ]
        sets = [(name, X, np.where(is_positive, 1.0, -1.0), notes) for name, X, is_positive, notes in sets]
    else:
        X, y = load_diabetes(return_X_y=True)
        sets = [("diabetes", X, y, [scaled])]
        if family == "gaussian":
            products = PolynomialFeatures(3, include_bias=False).fit_transform(X)
            notes = ["products of up to three of the ten features", scaled]
            sets.append(("diabetes, products", products, y, notes))
    problems = []
    for name, X, y, notes in sets:
        X, y, X_test, y_test, more = split(X, y, test_size, seed, family == "binomial")
        if scaled in notes:
            X, X_test = _standardized(X, X_test, name)
        parts = X, y, fit_intercept, X_test, y_test
        problems.append(Problem(name, *parts, notes + more, family, l1_ratio))
    return problems


def _name(path):
    path = Path(path)
    while path.suffix.lower() in (*OPENERS, *SVMLIGHT, *TABLES, ".npz"):
        path = path.with_suffix("")
    return path.name


def _kind(path):
    """(suffix of the format, whether the file is compressed)."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    is_packed = bool(suffixes) and suffixes[-1] in OPENERS
    if is_packed:
        suffixes.pop()
    return (suffixes[-1] if suffixes else ""), is_packed


def _read(path, columns, encoder=None):
    """(X, labels, held-out (X, labels) or None, encoder of words or None, notes).

    svmlight columns are still as in the file.
    """
    kind, is_packed = _kind(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if kind not in TABLES and columns["drop"]:
        raise DataError(f"{path}: --drop is for the columns of CSV and parquet files")
    held_out, notes = None, []
    try:
        if kind == ".npz":
            X, labels, held_out = read_npz(path)
        elif kind in SVMLIGHT:
            # indices as they are: _from_first_column drops an unused column 0
            X, labels = load_svmlight(path, zero_based=True)
        elif kind in DELIMITED or (kind == ".parquet" and not is_packed):
            frame, labels, notes = read_table(path, kind, **columns)
            X, encoder, more = encode(frame, path, encoder)
            notes += more
        else:
            known = " ".join((*SVMLIGHT, *DELIMITED))
            raise DataError(
                f"{path}: unknown kind of file; known are .npz .parquet {known} and these with .gz .bz2 .xz"
            )
    except FileFormatError as error:
        hint = " (read as svmlight by its name; tables are named .csv or .tsv)" if kind in SVMLIGHT else ""
        raise DataError(f"{error}{hint}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"{path}: holds {X.shape[0]} rows and {X.shape[1]} features")
    return X, labels, held_out, encoder, notes


def _from_first_column(*matrices):
    """Drop column 0 of svmlight data that counts from 1 (column 0 unused in all given parts)."""
    if all(X.shape[1] > 1 and not np.any(X.indices == 0) for X in matrices):
        matrices = tuple(sparse.csr_matrix(X[:, 1:]) for X in matrices)
    return matrices if len(matrices) > 1 else matrices[0]


def _same_width(X, X_test, path, test):
    if sparse.issparse(X) != sparse.issparse(X_test):
        raise DataError(f"{test}: is {'sparse' if sparse.issparse(X_test) else 'dense'}, unlike {path}")
    if _kind(path)[0] in SVMLIGHT and _kind(test)[0] in SVMLIGHT:
        width = max(X.shape[1], X_test.shape[1])  # svmlight files leave trailing empty columns out
        X.resize(X.shape[0], width)
        X_test.resize(X_test.shape[0], width)
        return _from_first_column(X, X_test)
    if X.shape[1] != X_test.shape[1]:
        raise DataError(f"{test}: has {X_test.shape[1]} features, {path} has {X.shape[1]}")
    return X, X_test


def _numbers(labels, path, X, family):
    """Labels of a file as float64 targets; DataError if they are no numbers, equal, or out of range."""
    if labels.dtype.kind not in "iuf":
        raise DataError(
            f"{path}: the target holds {shown(str(labels[0]))}; --lasso and --family need numbers"
        )
    y = labels.astype(np.float64)
    if not np.ptp(y) > 0:
        raise DataError(f"{path}: all {len(y)} rows have the target {y[0]:g}; nothing can be explained")
    Problem(str(path), X, y, family=family)  # checks y, whose rows are those of the file
    return y


def _binary(labels, positive, path):
    """(y in -1/+1, label that is +1, notes)."""
    classes, counts = np.unique(labels, return_counts=True)
    texts = classes.tolist() if classes.dtype.kind in "bU" else [text_of(c) for c in classes]
    if len(classes) < 2:
        raise DataError(f"{path}: all {len(labels)} rows have the label {texts[0]}; two classes are needed")
    if positive is not None:
        chosen = [
            k for k, text in enumerate(texts) if str(text) == positive or _is_equal(classes[k], positive)
        ]
        if not chosen:
            raise DataError(f"{path}: no row has the label {shown(positive)}; labels are {listed(texts)}")
        k = chosen[0]
    else:
        k = len(classes) - 1 if len(classes) == 2 else int(np.argmax(counts))
        _refuse_regression(classes, texts, texts[k], len(labels), path)
    notes = []
    if len(classes) > 2:
        notes.append(f"{len(classes)} labels: {texts[k]} against the rest (choose with --positive)")
    return np.where(labels == classes[k], 1.0, -1.0), classes[k], notes


def _refuse_regression(classes, texts, usual, n, path):
    """DataError where the user did not say that the labels are classes, and they are continuous numbers."""
    remedy = (
        f"If they are classes, name the positive one, such as --positive {usual}; --target "
        "names another column."
    )
    if classes.dtype.kind in "iuf":
        is_whole = bool((classes == np.rint(classes)).all())
        if len(classes) > MAX_VALUES or (len(classes) > 2 and not is_whole):
            raise DataError(
                f"{path}: the target has {len(classes)} different numbers in {n} rows, from {texts[0]} to "
                f"{texts[-1]}: this is regression (--lasso, --family), and classes are compared here. "
                f"{remedy}"
            )
    elif len(classes) > MAX_VALUES and len(classes) > n / 2:
        raise DataError(
            f"{path}: the target has {len(classes)} different values in {n} rows, not classes. {remedy}"
        )


def _is_equal(label, text):
    return is_number(str(label)) and is_number(text) and float(label) == float(text)


def split(X, y, test_size, seed, stratified=True):
    """(X, y, X_test, y_test, notes), stratified by y where it has classes; of a size of 0 no row."""
    from sklearn.model_selection import train_test_split

    if not test_size:
        return X, y, None, None, []
    groups = y if stratified else None
    try:
        X, X_test, y, y_test = train_test_split(X, y, test_size=test_size, stratify=groups, random_state=seed)
    except ValueError as error:
        return X, y, None, None, [f"nothing held out: {error}"]
    return X, y, X_test, y_test, [f"{X_test.shape[0]} rows held out" + (", stratified" if stratified else "")]
