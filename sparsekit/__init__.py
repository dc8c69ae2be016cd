"""sparsekit: sparse models with certified solutions, in scikit-learn's API.

The public names live in the submodules listed in ``_EXPORTS`` and are imported on first
use, so that ``import sparsekit`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors see; `__getattr__` below does it at run time
    from . import datasets as datasets
    from . import inspection as inspection
    from . import metrics as metrics
    from . import optimize as optimize
    from . import torch as torch
    from ._bounded_classifier import BoundedClassifier as BoundedClassifier
    from ._bounded_regressor import BoundedRegressor as BoundedRegressor
    from ._extreme import ExtremeSoftmaxSGD as ExtremeSoftmaxSGD
    from ._factor_graph import FactorGraph as FactorGraph
    from ._factors import AndOut as AndOut
    from ._factors import AtMostOne as AtMostOne
    from ._factors import Budget as Budget
    from ._factors import Factor as Factor
    from ._factors import Imply as Imply
    from ._factors import Knapsack as Knapsack
    from ._factors import Or as Or
    from ._factors import OrOut as OrOut
    from ._factors import Pair as Pair
    from ._factors import Xor as Xor
    from ._factors import XorOut as XorOut
    from ._fenchel_young import SoftmaxClassifier as SoftmaxClassifier
    from ._fenchel_young import SparsemaxClassifier as SparsemaxClassifier
    from ._fenchel_young_cv import SoftmaxClassifierCV as SoftmaxClassifierCV
    from ._fenchel_young_cv import SparsemaxClassifierCV as SparsemaxClassifierCV
    from ._fenchel_young_cv import fenchel_young_path as fenchel_young_path
    from ._lasso import LassoOBA as LassoOBA
    from ._logistic import L1LogisticOBA as L1LogisticOBA
    from ._logistic_cv import L1LogisticOBACV as L1LogisticOBACV
    from ._losses.sparsemax import sparsemax as sparsemax
    from ._losses.sparsemax import sparsemax_jvp as sparsemax_jvp
    from ._losses.sparsemax import sparsemax_loss as sparsemax_loss
    from ._losses.sparsemax import sparsemax_loss_and_gradient as sparsemax_loss_and_gradient
    from ._losses.sparsemax import sparsemax_support_size as sparsemax_support_size
    from ._losses.sparsemax import sparsemax_threshold as sparsemax_threshold
    from ._lp_sparsemap import lp_sparsemap as lp_sparsemap
    from ._lp_sparsemap_classifier import LPSparseMAPClassifier as LPSparseMAPClassifier
    from ._nqn import minimize_nqn as minimize_nqn
    from ._path import l1_logistic_path as l1_logistic_path
    from ._show_versions import show_versions as show_versions
    from ._structured_factors import Dense as Dense
    from ._structured_factors import DepTree as DepTree
    from ._structured_factors import Matching as Matching
    from ._structured_factors import Sequence as Sequence
    from .optimize import minimize_oba as minimize_oba

__version__ = "0.1.0.dev0"

_EXPORTS = {
    "AndOut": "_factors",
    "AtMostOne": "_factors",
    "BoundedClassifier": "_bounded_classifier",
    "BoundedRegressor": "_bounded_regressor",
    "Budget": "_factors",
    "Dense": "_structured_factors",
    "DepTree": "_structured_factors",
    "ExtremeSoftmaxSGD": "_extreme",
    "Factor": "_factors",
    "FactorGraph": "_factor_graph",
    "Imply": "_factors",
    "Knapsack": "_factors",
    "L1LogisticOBA": "_logistic",
    "L1LogisticOBACV": "_logistic_cv",
    "LPSparseMAPClassifier": "_lp_sparsemap_classifier",
    "LassoOBA": "_lasso",
    "Matching": "_structured_factors",
    "Or": "_factors",
    "OrOut": "_factors",
    "Pair": "_factors",
    "Sequence": "_structured_factors",
    "SoftmaxClassifier": "_fenchel_young",
    "SoftmaxClassifierCV": "_fenchel_young_cv",
    "SparsemaxClassifier": "_fenchel_young",
    "SparsemaxClassifierCV": "_fenchel_young_cv",
    "Xor": "_factors",
    "XorOut": "_factors",
    "fenchel_young_path": "_fenchel_young_cv",
    "l1_logistic_path": "_path",
    "lp_sparsemap": "_lp_sparsemap",
    "minimize_nqn": "_nqn",
    "minimize_oba": "optimize",
    "show_versions": "_show_versions",
    "sparsemax": "_losses.sparsemax",
    "sparsemax_jvp": "_losses.sparsemax",
    "sparsemax_loss": "_losses.sparsemax",
    "sparsemax_loss_and_gradient": "_losses.sparsemax",
    "sparsemax_support_size": "_losses.sparsemax",
    "sparsemax_threshold": "_losses.sparsemax",
}
_SUBMODULES = ("datasets", "inspection", "metrics", "optimize", "torch")

__all__ = [*_EXPORTS, "__version__"]


if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name):
        if name in _EXPORTS:
            value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
            globals()[name] = value
            return value
        if name in _SUBMODULES:
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module 'sparsekit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS, *_SUBMODULES])
