"""`save` and `load`: fitted estimators in files, by skops and without pickle."""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._estimator.device_checks import DeviceEstimatorMixin
from ._messages import shown
from ._storage.replacing import replacing

# what a sparse `coef_` is
_MATRICES = {f"scipy.sparse._{kind}.{kind}_{form}" for kind in ("csr", "csc") for form in ("array", "matrix")}


def save(model: BaseEstimator, path: str | os.PathLike[str], *, compress: bool = False) -> None:
    """Write a fitted estimator to a file of skops (``pip install "sparsekit[save]"``), for `load`.

    Parameters
    ----------
    model : estimator
        A fitted one of this package, or one of scikit-learn around it, such as a pipeline; in main memory.
    path : str or path-like
        The file. An existing one is replaced when the new one is complete.
    compress : bool, default=False
        Whether to compress, which takes longer and pays where most of ``coef_`` is zero.

    Raises
    ------
    TypeError
        If ``model`` is no estimator or is on a GPU, or `load` would refuse a part of it, as a function.
    sklearn.exceptions.NotFittedError
        If it was not fitted.

    See Also
    --------
    load : Reads it.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> import sparsekit
    >>> X, y = load_iris(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "iris.skops")
    >>> sparsekit.save(sparsekit.L1LogisticOBA().fit(X, y), path)
    >>> sparsekit.load(path).predict(X[:1])
    array([0])
    """
    name = type(model).__name__
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"save(model, path) takes a fitted estimator as model; got {name}.")
    check_is_fitted(model)
    if isinstance(model, DeviceEstimatorMixin) and model._on_device():
        raise TypeError(f"this {name} is on a GPU: save(model.to_cpu(), path).")
    skops = _skops()
    data = skops.dumps(model, compression=zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED)
    refused = sorted(set(skops.get_untrusted_types(data=data)) - _trusted())
    if refused:
        raise TypeError(
            f"this {name} holds {', '.join(refused)}, which load refuses. Set such parameters to values "
            "(callback=None, cv=5, factors as tuples), save best_estimator_ of a search, or use skops."
        )
    with replacing(path) as part, open(part, "wb") as stream:
        stream.write(data)
        stream.flush()
        with contextlib.suppress(OSError):  # a pipe has no disk
            os.fsync(stream.fileno())


def load(path: str | os.PathLike[str]) -> Any:
    """Make the estimator that `save` wrote to a file: it predicts the same, and goes on in ``partial_fit``.

    Parameters
    ----------
    path : str or path-like
        A file of `save`.

    Returns
    -------
    estimator
        Fitted, of the class that was saved.

    Raises
    ------
    TypeError
        If it holds a type that is not of this package, scikit-learn, SciPy or NumPy.
    ValueError
        If it is damaged, no file of `save`, or of an earlier version of this package.

    See Also
    --------
    save : Writes it.

    Notes
    -----
    skops executes nothing and refuses other types before it makes one. It does not check the arrays. A
    crafted file can hold some that do not go together, with which a prediction may read out of bounds. Load
    only files that you trust.

    Examples
    --------
    >>> import os, tempfile
    >>> import sparsekit
    >>> path = os.path.join(tempfile.mkdtemp(), "model.skops")
    >>> sparsekit.save(sparsekit.LassoOBA(alpha=0.1).fit([[0.0], [1.0]], [0.0, 1.0]), path)
    >>> sparsekit.load(path)
    LassoOBA(alpha=0.1)
    """
    skops, path = _skops(), os.fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
        if "schema.json" in names:
            return skops.load(path, trusted=sorted(_trusted()))
        problem = "it has no schema.json"
        if "header.json" in names:
            problem = (
                "an earlier version of sparsekit wrote it. Load it with that version, and write it there by "
                "skops.io.dump"
            )
    except (zipfile.BadZipFile, zlib.error, AttributeError, EOFError, KeyError) as error:
        problem = f"damaged ({error})"
    raise ValueError(f"{shown(path)} is no file of sparsekit.save: {problem}.")


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError('save and load need skops: pip install "sparsekit[save]"') from error
    return skops.io


def _trusted() -> set[str]:
    """Types that `load` takes, besides those of skops's own list: the public classes of this package."""
    from . import _EXPORTS

    ours = {f"sparsekit.{module}.{name}" for name, module in _EXPORTS.items() if name[0].isupper()}
    return ours | _MATRICES
