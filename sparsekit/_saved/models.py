"""`save` and `load`: fitted estimators in files, without pickle."""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._estimator.device_checks import DeviceEstimatorMixin
from .._factor_graph.estimators.label_sets import logic
from .._messages import check_whole, shown
from .._storage.npz import MAX_BYTES, Reader, write
from .classes import class_named, unfitted
from .contracts import CONTRACTS, check
from .values import Decoder, Encoder, Unstorable

SCHEMA, VERSION = "sparsekit.model", 1
_REMEDIES = {
    "callback": "set_params(callback=None) first",
    "cv": "set_params(cv=5), or another number, first; the model was chosen already",
    "scoring": "set_params(scoring=...) to a name, or None, first; the model was chosen already",
    "random_state": "set_params(random_state=...) to a number, or None, first",
    "factors": "give the rules as tuples (Imply, [4, 7]) of sparsekit's factors, not as a function",
    "classes_": "fit to labels that are numbers or strings",
    "estimator": "set_params(estimator=None) first; what was selected stays",
}


def save(model: BaseEstimator, path: str | os.PathLike[str], *, compress: bool = False) -> None:
    """Write a fitted estimator to a file, from which `load` makes it anew.

    The file is an ``.npz`` archive of the fitted arrays and of a header in JSON, without pickle. It is
    written to a temporary name and renamed, so that it is complete or absent.

    Parameters
    ----------
    model : estimator
        A fitted one of this package, in main memory; also after ``sparsify`` or ``quantize``.
    path : str or path-like
        The file. An existing one is replaced.
    compress : bool, default=False
        Whether to compress, which takes longer and pays where most of ``coef_`` is zero.

    Raises
    ------
    TypeError
        If ``model`` is no estimator of this package or is on a GPU. If a parameter is a callback, splitter,
        scorer, function or an estimator of another package. The error says what to set.
    sklearn.exceptions.NotFittedError
        If it was not fitted.
    ValueError
        If attributes were changed so that they do not go together.

    See Also
    --------
    load : Reads it.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> import sparsekit
    >>> X, y = load_iris(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "iris.npz")
    >>> sparsekit.save(sparsekit.L1LogisticOBA().fit(X, y), path)
    >>> sparsekit.load(path).predict(X[:1])
    array([0])
    """
    name = type(model).__name__
    if name not in CONTRACTS or type(model) is not class_named(name):
        raise TypeError(
            f"save(model, path) takes a fitted model of sparsekit as model, got {name}. From a pipeline or a "
            "search take it (pipeline[-1], search.best_estimator_), or use skops.io.dump."
        )
    check_is_fitted(model)
    parameters = model.get_params(deep=False)
    fitted = {key: value for key, value in vars(model).items() if key not in parameters}
    if isinstance(model, DeviceEstimatorMixin) and model._on_device():
        raise TypeError(f"this {name} is on a GPU: save(model.to_cpu(), path).")
    unknown = sorted(fitted.keys() - CONTRACTS[name].keys())
    if unknown:
        raise TypeError(
            f"this {name} has {shown(unknown[0])}, which no fit sets and save does not keep. Delete it first "
            "(metadata requests and callbacks of scikit-learn are set anew after load)."
        )
    encoder = Encoder()
    header: dict[str, Any] = {"schema": SCHEMA, "version": VERSION, "sparsekit": _release(), "class": name}
    for part, values in (("parameters", parameters), ("attributes", fitted)):
        header[part] = {}
        for key, value in values.items():
            try:
                header[part][key] = encoder.encode(value, key)
            except Unstorable as error:
                remedy = _REMEDIES.get(key, "set it to numbers, strings, lists, dicts or arrays of numbers")
                raise TypeError(f"{name} cannot be saved: {error}; {remedy}.") from None
    try:
        check(name, fitted, parameters.get("hash_bits"))
    except ValueError as error:
        raise ValueError(
            f"this {name} cannot be saved: {error}. Was an attribute changed after fit?"
        ) from error
    write(path, header, encoder.arrays, compress=compress)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> BaseEstimator:
    """Make the estimator that `save` wrote to a file.

    Nothing in a file is executed, and no class is imported but those of this package. What a fitted model
    holds is checked: names, types and shapes of all arrays, against each other, the indices of sparse
    matrices, finite coefficients, parameters. The model predicts as the saved one did, to the last bit, and
    ``partial_fit`` and warm starts go on from it.

    Parameters
    ----------
    path : str or path-like
        A file of `save`.
    max_bytes : int, default=2**34
        Bytes that the file may unpack to.

    Returns
    -------
    estimator
        Fitted, of the class that was saved.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is no file of `save`, has a later version of the format or exceeds ``max_bytes``. If damage or
        changes left no fitted model.

    See Also
    --------
    save : Writes it.

    Notes
    -----
    A checksum guards against accidents, not against an attacker: who can write the file can choose the
    coefficients. Fetch models from where you would fetch data that you trust.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_diabetes
    >>> import sparsekit
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> model = sparsekit.LassoOBA(alpha=0.5).fit(X, y)
    >>> sparsekit.save(model, path)
    >>> bool((sparsekit.load(path).coef_ == model.coef_).all())
    True
    """
    max_bytes = check_whole(max_bytes, "max_bytes", 1)
    try:
        with Reader(path, max_bytes) as file:
            _check_header(file.header)
            name = file.header["class"]
            decoder = Decoder(file.arrays())
            parameters = _decoded(decoder, file.header, "parameters")
            attributes = _decoded(decoder, file.header, "attributes")
            if decoder.left:
                raise ValueError(f"nothing refers to its array {shown(min(decoder.left))}")
        return _make(name, parameters, attributes)
    except (ValueError, RecursionError) as error:
        why = error if isinstance(error, ValueError) else "its header is nested too deeply"
        raise ValueError(f"{shown(os.fspath(path))} is no model that load takes: {why}.") from error


def _check_header(header):
    if header.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {shown(header.get('schema'))} and not {shown(SCHEMA)}")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {shown(version)}")
    if version > VERSION:
        raise ValueError(
            f"its format has version {shown(version)}, this sparsekit {_release()} reads up to {VERSION}: "
            f"update sparsekit; the file was written by {shown(header.get('sparsekit'))}"
        )
    if not isinstance(header.get("class"), str) or header["class"] not in CONTRACTS:
        raise ValueError(f"its class {shown(header.get('class'))} is none of sparsekit's estimators")


def _decoded(decoder, header, part):
    if not isinstance(header.get(part), dict):
        raise ValueError(f"it has no {part}")
    return {key: decoder.decode(value) for key, value in header[part].items()}


def _make(name, parameters, attributes):
    model = unfitted(name, parameters)
    check(name, attributes, getattr(model, "hash_bits", None))
    for key, value in attributes.items():
        setattr(model, key, value)
    if name.startswith("LPSparseMAPClassifier"):
        _check_rules(model)
    check_is_fitted(model)
    return model


def _check_rules(model):
    """ValueError where rules are none, or not over its labels."""
    try:
        logic(model.factors, len(model.classes_))
    except Exception as error:  # of constructors that take what the file says
        raise ValueError(f"its factors are none: {error}") from error


def _release():
    from .. import __version__

    return __version__
