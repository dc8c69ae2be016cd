"""Parameters and fitted attributes as JSON and arrays, and back: values alone, never code.

What JSON has not stands as an object of one key that says what it is: ``{"array": name}`` and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._factor_graph.factors import linear_factors, logic_factors
from .._linalg.structure import check_sparse
from .._messages import shown
from .._storage.npz import type_name
from .classes import class_named, unfitted
from .contracts import CONTRACTS

SPARSE = {kind.__name__: kind for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)}
# the rules that `factors` of LPSparseMAPClassifier may name
RULES = {
    kind.__name__: kind
    for kind in (
        linear_factors.Xor, linear_factors.AtMostOne, linear_factors.Or, linear_factors.Budget,
        linear_factors.Knapsack, linear_factors.XorOut, linear_factors.Imply, logic_factors.OrOut,
        logic_factors.AndOut,
    )
}  # fmt: skip
_PARTS = ("data", "indices", "indptr")


class Unstorable(TypeError):
    """A value that files don't take."""


class Encoder:
    """Values on their way into a file; ``arrays`` collects what JSON does not hold."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, name: str) -> Any:
        """What stands for ``value``, which an error calls ``name``."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, np.generic):
            return {"scalar": self._add(np.asarray(value), name)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if kind in (list, tuple):
            return {kind.__name__: [self.encode(item, f"{name}.{k}") for k, item in enumerate(value)]}
        if kind is dict:
            pairs = enumerate(value.items())
            return {
                "dict": [
                    [self.encode(a, f"{name}.{k}k"), self.encode(b, f"{name}.{k}")] for k, (a, b) in pairs
                ]
            }
        if SPARSE.get(kind.__name__) is kind:
            parts = {part: self._array(getattr(value, part), f"{name}.{part}") for part in _PARTS}
            return {"sparse": {"kind": kind.__name__, "shape": list(value.shape), **parts}}
        if isinstance(value, type) and value in RULES.values():
            return {"rule": value.__name__}
        if kind.__name__ in CONTRACTS and kind is class_named(kind.__name__):
            parameters = value.get_params(deep=False).items()
            encoded = {key: self.encode(item, f"{name}.{key}") for key, item in parameters}
            return {"estimator": {"class": kind.__name__, "parameters": encoded}}
        raise Unstorable(f"{name} is a {kind.__name__}")

    def _array(self, value, name):
        if type(value) is np.ndarray and value.dtype == object:
            items = value.tolist()
            if value.ndim == 1 and all(isinstance(item, str) for item in items):
                return {"strings": [str(item) for item in items]}
            raise Unstorable(f"{name} is an array of objects that are not all strings")
        if type_name(value) is None:
            raise Unstorable(f"{name} is an array of {value.dtype}")
        return {"array": self._add(np.asarray(value), name)}

    def _add(self, array, name):
        if type_name(array) is None:
            raise Unstorable(f"{name} is of {array.dtype}")
        self.arrays[name] = array
        return name


class Decoder:
    """Values on their way out of a file; every array may be asked for once."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.left = dict(arrays)
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "array": self._pop, "scalar": self._scalar, "strings": _strings, "rule": _rule,
            "list": self._items, "tuple": lambda part: tuple(self._items(part)), "dict": self._dict,
            "sparse": self._sparse, "estimator": self._estimator,
        }  # fmt: skip

    def decode(self, value: Any) -> Any:
        """What `Encoder.encode` was given."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"it holds {shown(value)}, which is never written")
        ((kind, part),) = value.items()
        if kind not in self._kinds:
            raise ValueError(f"it holds a value of the kind {shown(kind)}, which this version does not know")
        return self._kinds[kind](part)

    def _pop(self, name):
        if not isinstance(name, str) or name not in self.left:
            raise ValueError(f"its array {shown(name)} is missing or used twice")
        return self.left.pop(name)

    def _scalar(self, name):
        array = self._pop(name)
        if array.ndim:
            raise ValueError(f"its array {shown(name)} is no single number")
        return array[()]

    def _items(self, part):
        if not isinstance(part, list):
            raise ValueError(f"it must hold a list; got {shown(part)}")
        return [self.decode(item) for item in part]

    def _dict(self, part):
        if not isinstance(part, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in part):
            raise ValueError(f"it must hold pairs; got {shown(part)}")
        keys = [self.decode(key) for key, _ in part]
        if not all(isinstance(key, (str, bool, int, float, np.generic)) for key in keys):
            raise ValueError(f"it holds a dict with keys {shown(keys)}")
        return dict(zip(keys, [self.decode(item) for _, item in part]))

    def _sparse(self, part):
        if not isinstance(part, dict) or part.keys() != {"kind", "shape", *_PARTS}:
            raise ValueError("it holds an incomplete sparse matrix")
        kind, shape = SPARSE.get(part["kind"]) if isinstance(part["kind"], str) else None, part["shape"]
        whole = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**62 for n in shape)
        if kind is None or not whole or len(shape) != 2:
            raise ValueError(f"it holds a sparse matrix {shown(part)}, which is never written")
        data, indices, indptr = (self.decode(part[name]) for name in _PARTS)
        for array, kinds in ((data, "f"), (indices, "i"), (indptr, "i")):
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kinds:
                raise ValueError("a part of its sparse matrix is no vector of numbers")
        # SciPy checks lengths alone, `check_sparse` every index
        return check_sparse(kind((data, indices, indptr), shape=tuple(shape)), "the sparse matrix")

    def _estimator(self, part):
        if not isinstance(part, dict) or part.keys() != {"class", "parameters"}:
            raise ValueError("it holds an incomplete estimator")
        name, parameters = part["class"], part["parameters"]
        if not isinstance(name, str) or name not in CONTRACTS or not isinstance(parameters, dict):
            raise ValueError(f"it names the estimator {shown(name)}, which is none of sparsekit's")
        return unfitted(name, {key: self.decode(value) for key, value in parameters.items()})


def _strings(part):
    if not isinstance(part, list) or not all(isinstance(item, str) for item in part):
        raise ValueError(f"it must hold strings; got {shown(part)}")
    out = np.empty(len(part), dtype=object)
    out[:] = part
    return out


def _rule(name):
    if not isinstance(name, str) or name not in RULES:
        raise ValueError(f"it names the factor {shown(name)}, which is none")
    return RULES[name]
