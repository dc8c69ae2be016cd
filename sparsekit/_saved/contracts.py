"""What a fitted estimator of each class holds: names, types, shapes and ranges of its attributes.

Sizes are numbers or names: ``p`` features, ``K`` classes, ``outputs`` (1 for two classes, else K), ``table``.
Any other name gets the size of the first array that has it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._messages import shown

FLOATS = ("f4", "f8")


@dataclass
class Field(ABC):
    """A rule for one attribute; ``check`` raises a ValueError where a value breaks it."""

    needed: bool = field(default=True, kw_only=True)

    @abstractmethod
    def check(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        """ValueError where ``value`` breaks the rule; ``sizes`` are those known, and may get more."""

    def maybe(self) -> Field:
        """The same of an attribute that may be missing."""
        return replace(self, needed=False)


@dataclass
class Floats(Field):
    """An array of floats; ``matrix``: or a sparse matrix, of a row where the array is a vector.

    ``other`` is a shape of another number of dimensions that it may have.
    """

    shape: tuple[int | str, ...]
    types: tuple[str, ...] = FLOATS
    finite: bool = True
    matrix: bool = False
    least: float = -np.inf
    other: tuple[int | str, ...] = ()

    def check(self, name, value, sizes):
        is_matrix = self.matrix and sp.issparse(value)
        shape = self.other if self.other and np.ndim(value) == len(self.other) else self.shape
        shape = (1, *shape) if is_matrix and len(shape) == 1 else shape
        _is_array(name, value, shape, self.types, sizes)
        value = value.data if is_matrix else value
        if self.finite and not np.isfinite(value).all():
            raise ValueError(f"{name} holds NaN or infinity")
        if np.any(value < self.least):
            raise ValueError(f"{name} holds a number below {self.least:g}")


@dataclass
class Integers(Field):
    """An array of integers from ``least`` to below ``end``."""

    shape: tuple[int | str, ...]
    least: int = 0
    end: int | str = 2**62

    def check(self, name, value, sizes):
        _is_array(name, value, self.shape, ("i4", "i8"), sizes)
        end = sizes[self.end] if isinstance(self.end, str) else self.end
        if value.size and not (value.min() >= self.least and value.max() < end):
            raise ValueError(f"{name} holds numbers from {value.min()} to {value.max()}")


@dataclass
class Number(Field):
    """A float of Python or NumPy; ``least``, ``most`` and NaN as it says."""

    finite: bool = False
    least: float = -np.inf
    most: float = np.inf

    def check(self, name, value, sizes):
        if not isinstance(value, (float, np.floating)):
            raise ValueError(f"{name} must be a number; got {shown(value)}")
        if (self.finite and not np.isfinite(value)) or value < self.least or value > self.most:
            raise ValueError(f"{name} is {shown(value)}")


@dataclass
class Value(Field):
    """A value that ``is_valid`` accepts; ``allowed`` says which those are."""

    is_valid: Callable[[Any], bool]
    allowed: str

    def check(self, name, value, sizes):
        if not self.is_valid(value):
            raise ValueError(f"{name} must be {self.allowed}; got {shown(value)}")


def Whole(least: int = 0) -> Field:
    """An int of Python."""
    return Value(
        lambda value: type(value) is int and least <= value < 2**62, f"a whole number from {least} on"
    )


def Word(*words: str) -> Field:
    """One of some strings."""
    return Value(lambda value: isinstance(value, str) and value in words, f"one of {words}")


def is_part(value: Any) -> bool:
    """Whether it is a float of Python from 0 to below 1."""
    return type(value) is float and 0.0 <= value < 1.0


TRUTH = Value(lambda value: type(value) is bool, "True or False")
THRESHOLD = Value(
    lambda value: value in ("expected_f1", "auto") if type(value) is str else is_part(value), "a threshold"
)


@dataclass
class Strings(Field):
    """An array of objects, all of them strings."""

    shape: tuple[int | str, ...]

    def check(self, name, value, sizes):
        _is_array(name, value, self.shape, ("O",), sizes)


@dataclass
class Classes(Field):
    """Labels, each once."""

    least: int = 1

    def check(self, name, value, sizes):
        if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUSO":
            raise ValueError(f"{name} is no vector of labels")
        if len(value) < self.least or len(np.unique(value)) < len(value):
            raise ValueError(f"{name} holds a label twice, or fewer than {self.least}")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{name} holds NaN or infinity")


@dataclass
class Curves(Field):
    """A dict of vectors of one length."""

    def check(self, name, value, sizes):
        if type(value) is not dict or not all(isinstance(key, str) for key in value):
            raise ValueError(f"{name} is no dict of arrays")
        for key, part in value.items():
            _is_array(f"{name}[{shown(key)}]", part, (f"rows of {name}",), ("f8", "i8", "i4", "U"), sizes)


@dataclass
class Losses(Field):
    """A dict from learning rates to losses."""

    def check(self, name, value, sizes):
        rule = Number()
        for item in (*value, *value.values()) if type(value) is dict else (value,):
            rule.check(name, item, sizes)


def _is_array(name, value, shape, types, sizes):
    if not (isinstance(value, np.ndarray) or sp.issparse(value)):
        raise ValueError(f"{name} must be an array; got {shown(value)}")
    # of strings the length is open
    if ("U" if value.dtype.kind == "U" else value.dtype.str[1:]) not in types:
        raise ValueError(f"{name} has the dtype {value.dtype}")
    if len(value.shape) == len(shape):
        for n, size in zip(shape, value.shape):
            if isinstance(n, str):
                sizes.setdefault(n, size)
    wanted = tuple(sizes.get(n, n) if isinstance(n, str) else n for n in shape)
    if value.shape != wanted:
        raise ValueError(f"{name} must have the shape {shown(wanted)}; got {value.shape}")


_INPUT: dict[str, Field] = {"n_features_in_": Whole(1), "feature_names_in_": Strings(("p",)).maybe()}
_LINEAR = {
    "coef_": Floats(("outputs", "p"), matrix=True),
    "intercept_": Floats(("outputs",)),
    "classes_": Classes(2),
}
_VECTOR = {"coef_": Floats(("p",), matrix=True), "intercept_": Number(finite=True)}
_CERTIFICATE: dict[str, Field] = {name: Number() for name in ("optimality_", "objective_", "dual_gap_")}
_SOLVED = {**_CERTIFICATE, "n_iter_": Integers((1,)), "history_": Curves().maybe()}
_ROUNDS = {"n_rounds_": Whole().maybe()}
# models that were saved before there were offsets have none
_OFFSET = {"needs_offset_": TRUTH.maybe()}
_TABLE = {
    "coef_": Floats(("K", "p")), "intercept_": Floats(("K",)), "classes_": Classes(), "multilabel_": TRUTH,
}  # fmt: skip


def _folds(values):
    return {
        values: Floats(("values",)),
        "scores_": Floats(("folds", "values"), ("f8",), finite=False),
        "mean_score_": Floats(("values",), ("f8",), finite=False),
        "se_": Floats(("values",), ("f8",), finite=False),
        "n_iter_": Integers(("folds",)),
    }


def _search(penalty):
    """What a search of OBA leaves, by folds or by a criterion; older models lack some."""
    sometimes = {
        **_CERTIFICATE, **_folds(f"{penalty}s_"),
        f"{penalty}_best_": Number(), f"{penalty}_1se_": Number(),
        "l1_ratio_": Number(least=0.0, finite=True),
        "l1_ratios_": Floats(("ratios",), ("f8",)),
        "l1_ratio_scores_": Floats(("ratios",), ("f8",), finite=False),
        "criterion_": Floats(("values",), ("f8",), finite=False, other=("ratios", "values")),
    }  # fmt: skip
    return {
        **{name: rule.maybe() for name, rule in sometimes.items()},
        f"{penalty}_": Number(), f"{penalty}s_": Floats(("values",)), "n_iter_": Integers(("folds",)),
    }  # fmt: skip


_FY_CV = {**_INPUT, **_TABLE, **_CERTIFICATE, **_folds("alphas_"), "alpha_": Number()}
_FY = {**_INPUT, **_TABLE, **_SOLVED, **_ROUNDS}
_HALF = ("f2", *FLOATS)
CONTRACTS: dict[str, dict[str, Field]] = {
    "L1LogisticOBA": {**_INPUT, **_LINEAR, **_SOLVED, **_ROUNDS, **_OFFSET},
    "L1LogisticOBACV": {
        **_INPUT, **_LINEAR, **_search("C"), **_ROUNDS, **_OFFSET,
        "coefs_paths_": Floats(
            ("folds", "values", "variables"), finite=False, other=("folds", "values", "outputs", "variables")
        ).maybe(),
    },
    "LassoOBA": {
        **_INPUT, **_VECTOR, **_SOLVED, **_ROUNDS, **_OFFSET, "n_iter_": Whole(),
        "solver_": Word(
            "newton", "gram", "oba", "newton, gram", "gram, oba", "newton, gram, oba", "interior, gram",
            "interior, gram, oba",
        ).maybe(),
    },
    "GLMOBA": {**_INPUT, **_VECTOR, **_SOLVED, **_OFFSET, "n_iter_": Whole()},
    "GLMOBACV": {**_INPUT, **_VECTOR, **_search("alpha"), **_OFFSET},
    "OrdinalOBA": {
        **_INPUT, **_SOLVED, **_OFFSET, "n_iter_": Whole(), "coef_": Floats(("p",), matrix=True),
        "classes_": Classes(2), "thresholds_": Floats(("K - 1",), ("f8",)), "ranks_": Integers(("K",)),
    },
    "LassoOBACV": {
        **_INPUT, **_VECTOR, **_search("alpha"), **_ROUNDS, **_OFFSET,
        "alphas_": Floats(("values",), other=("ratios", "values")),
        "mse_path_": Floats(
            ("values", "folds"), ("f8",), finite=False, other=("ratios", "values", "folds")
        ).maybe(),
    },
    "BoundedRegressor": {**_INPUT, **_VECTOR, **_SOLVED, **_OFFSET, "n_iter_": Whole()},
    "BoundedClassifier": {
        **_INPUT, **_LINEAR, **_SOLVED, **_OFFSET, "n_iter_": Integers(("outputs",)),
        **{name: Floats(("outputs",), ("f8",), finite=False) for name in ("objective_", "dual_gap_")},
    },
    "SparsemaxClassifier": _FY,
    "SoftmaxClassifier": _FY,
    "SparsemaxClassifierCV": _FY_CV,
    "SoftmaxClassifierCV": _FY_CV,
    "ExtremeSoftmaxSGD": {
        **_INPUT,
        "coef_": Floats(("K", "p"), _HALF, matrix=True).maybe(),
        "table_": Floats(("table",), _HALF).maybe(),
        "intercept_": Floats(("K",), _HALF),
        "classes_": Classes(), "multilabel_": TRUTH,
        "alpha_": Number(finite=True, least=0.0).maybe(), "prior_": Word("zeros", "centroids").maybe(),
        "learning_rate_": Number(finite=True), "learning_rate_losses_": Losses().maybe(),
        "objective_": Number().maybe(), "objective_error_": Number().maybe(), "optimality_": Number().maybe(),
        "objective_curve_": Floats(("epochs",), ("f8",), finite=False).maybe(),
        "objective_error_curve_": Floats(("epochs",), ("f8",), finite=False).maybe(),
        "n_iter_": Whole(), "t_": Whole(),
        "_mean_labels": Number(finite=True, least=1e-300), "_counts": Floats(("K",), ("f8",), least=0.0),
        "_closed": TRUTH, "_rng_state": Whole(),
        "_score_credit": Number(finite=True, least=0.0).maybe(),
        "_feature_sums": Floats(("p",), ("f8",), least=0.0).maybe(),
        "_feature_rows": Floats(("p",), ("f8",), least=0.0).maybe(),
        "_class_sums": Floats(("K",), ("f8",), least=0.0).maybe(),
        "_sum_totals": Floats((4,), ("f8",), least=0.0).maybe(),
    },
    "LPSparseMAPClassifier": {
        **_INPUT, **_TABLE, **_SOLVED,
        "pairs_": Integers(("pairs", 2), end="K"), "pair_coef_": Floats(("pairs",), ("f8",)),
        "alpha_": Number(finite=True, least=0.0), "pair_alpha_": Number(finite=True, least=0.0),
        "never_empty_": TRUTH, "threshold_share_": Number(least=0.0, most=1.0).maybe(),
    },
    "LPSparseMAPClassifierCV": {
        **_INPUT, **_TABLE, **_CERTIFICATE, **_folds("alphas_"),
        "pairs_": Integers(("pairs", 2), end="K"), "pair_coef_": Floats(("pairs",), ("f8",)),
        "alpha_": Number(finite=True, least=0.0), "pair_alpha_": Number(finite=True, least=0.0),
        "never_empty_": TRUTH, "threshold_": THRESHOLD,
        "threshold_share_": Number(least=0.0, most=1.0).maybe(),
        "threshold_scores_": Floats(("thresholds", "folds", "values"), ("f8",), finite=False),
    },
    "SequenceTagger": {
        **_INPUT, **_SOLVED, "coef_": Floats(("K", "p"), matrix=True), "classes_": Classes(),
        "_sums": Floats(("kinds", "step rows", "K"), ("f8",)).maybe(),
        "transitions_": Floats(("K", "K"), ("f8",)),
        "start_": Floats(("K",), ("f8",)), "stop_": Floats(("K",), ("f8",)),
    },
    "StabilitySelection": {
        **_INPUT, "penalties_": Floats(("values",), ("f8",), least=0.0), "parameter_": Word("C", "alpha"),
        "stability_paths_": Floats(("p", "values"), ("f8",), least=0.0),
        "stability_scores_": Floats(("p",), ("f8",), least=0.0),
        "max_selected_": Whole(), "n_selected_": Number(finite=True, least=0.0),
        "_counts": Integers(("p",)), "_n_candidates": Whole(), "_n_halves": Whole(2),
    },
}  # fmt: skip


def check(name: str, attributes: Mapping[str, Any], hash_bits: int | None = None) -> None:
    """ValueError where fitted attributes are not what class ``name`` has, or do not go together."""
    rules = CONTRACTS[name]
    for attribute in attributes.keys() - rules.keys():
        raise ValueError(f"{name} has no attribute {shown(attribute)}")
    missing = sorted(one for one, rule in rules.items() if rule.needed and one not in attributes)
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    rules["n_features_in_"].check("n_features_in_", attributes["n_features_in_"], {})
    sizes = {"p": attributes["n_features_in_"], "table": 0 if hash_bits is None else 2**hash_bits}
    if "classes_" in rules:
        rules["classes_"].check("classes_", attributes["classes_"], {})
        sizes["K"] = len(attributes["classes_"])
        sizes["K - 1"] = sizes["K"] - 1
        sizes["outputs"] = 1 if sizes["K"] == 2 else sizes["K"]
    for attribute, value in attributes.items():
        rules[attribute].check(attribute, value, sizes)
    if name == "ExtremeSoftmaxSGD" and ("table_" in attributes, "coef_" in attributes) != (
        hash_bits is not None,
        hash_bits is None,
    ):
        raise ValueError(f"of table_ and coef_ it has not the one that hash_bits={shown(hash_bits)} asks for")
    if name == "OrdinalOBA":
        if (np.diff(attributes["thresholds_"]) < 0.0).any():
            raise ValueError("thresholds_ do not rise")
        if not np.array_equal(np.sort(attributes["ranks_"]), np.arange(sizes["K"])):
            raise ValueError("ranks_ are no order of the classes")
    if name == "StabilitySelection" and attributes["_counts"].max() > attributes["_n_halves"]:
        raise ValueError("_counts holds more than _n_halves")
