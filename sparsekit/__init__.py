"""sparsekit: sparse models with certified solutions, in scikit-learn's API.

The public names live in the submodules listed in ``_EXPORTS`` and are imported on first
use, so that ``import sparsekit`` costs next to nothing.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors see; `__getattr__` below does it at run time
    from . import datasets as datasets
    from . import inspection as inspection
    from . import metrics as metrics
    from . import optimize as optimize
    from . import torch as torch
    from ._bounded.estimators.classifier import BoundedClassifier as BoundedClassifier
    from ._bounded.estimators.regressor import BoundedRegressor as BoundedRegressor
    from ._bounded.solver.minimize_nqn import minimize_nqn as minimize_nqn
    from ._compare.show_versions import show_versions as show_versions
    from ._extreme.estimators.classifier import ExtremeSoftmaxSGD as ExtremeSoftmaxSGD
    from ._factor_graph.estimators.classifier import LPSparseMAPClassifier as LPSparseMAPClassifier
    from ._factor_graph.estimators.classifier_cv import LPSparseMAPClassifierCV as LPSparseMAPClassifierCV
    from ._factor_graph.factors.factors import Factor as Factor
    from ._factor_graph.factors.linear_factors import AtMostOne as AtMostOne
    from ._factor_graph.factors.linear_factors import Budget as Budget
    from ._factor_graph.factors.linear_factors import Imply as Imply
    from ._factor_graph.factors.linear_factors import Knapsack as Knapsack
    from ._factor_graph.factors.linear_factors import Or as Or
    from ._factor_graph.factors.linear_factors import Xor as Xor
    from ._factor_graph.factors.linear_factors import XorOut as XorOut
    from ._factor_graph.factors.logic_factors import AndOut as AndOut
    from ._factor_graph.factors.logic_factors import OrOut as OrOut
    from ._factor_graph.factors.logic_factors import Pair as Pair
    from ._factor_graph.factors.structured_factors import Dense as Dense
    from ._factor_graph.factors.structured_factors import DepTree as DepTree
    from ._factor_graph.factors.structured_factors import Matching as Matching
    from ._factor_graph.factors.structured_factors import Sequence as Sequence
    from ._factor_graph.graphs.graph import FactorGraph as FactorGraph
    from ._factor_graph.graphs.lp_sparsemap import lp_sparsemap as lp_sparsemap
    from ._fenchel_young.estimators.classifier import SoftmaxClassifier as SoftmaxClassifier
    from ._fenchel_young.estimators.classifier import SparsemaxClassifier as SparsemaxClassifier
    from ._fenchel_young.estimators.classifier_cv import SoftmaxClassifierCV as SoftmaxClassifierCV
    from ._fenchel_young.estimators.classifier_cv import SparsemaxClassifierCV as SparsemaxClassifierCV
    from ._fenchel_young.estimators.path import fenchel_young_path as fenchel_young_path
    from ._fenchel_young.losses.sparsemax import sparsemax as sparsemax
    from ._fenchel_young.losses.sparsemax import sparsemax_jvp as sparsemax_jvp
    from ._fenchel_young.losses.sparsemax import sparsemax_loss as sparsemax_loss
    from ._fenchel_young.losses.sparsemax import sparsemax_loss_and_gradient as sparsemax_loss_and_gradient
    from ._fenchel_young.losses.sparsemax import sparsemax_support_size as sparsemax_support_size
    from ._fenchel_young.losses.sparsemax import sparsemax_threshold as sparsemax_threshold
    from ._l1.estimators.glm import GLMOBA as GLMOBA
    from ._l1.estimators.glm_cv import GLMOBACV as GLMOBACV
    from ._l1.estimators.lasso import LassoOBA as LassoOBA
    from ._l1.estimators.lasso_cv import LassoOBACV as LassoOBACV
    from ._l1.estimators.logistic import L1LogisticOBA as L1LogisticOBA
    from ._l1.estimators.logistic_cv import L1LogisticOBACV as L1LogisticOBACV
    from ._l1.estimators.ordinal import OrdinalOBA as OrdinalOBA
    from ._l1.estimators.shared_fits import shared_fits as shared_fits
    from ._l1.paths.glm_path import glm_path as glm_path
    from ._l1.paths.path import l1_logistic_path as l1_logistic_path
    from ._l1.paths.path import lasso_path as lasso_path
    from ._saved import load as load
    from ._saved import save as save
    from ._stability.estimators.selection import StabilitySelection as StabilitySelection
    from ._tagger.estimators.tagger import SequenceTagger as SequenceTagger
    from .optimize import minimize_oba as minimize_oba

__version__ = "0.1.0.dev0"


def _load_installed_package() -> None:
    """Load the installed package instead of this folder, where this is source code without kernels.

    Python that was started in a checkout finds this folder before what ``pip install .`` installed.
    Where nothing is installed this does nothing, and ``sparsekit._cython`` raises the ImportError.
    """
    kernel = f"{__name__}._cython.shared._sparse"
    here = os.path.dirname(__file__)
    # all finders: an editable install has one of its own, which finds the kernels elsewhere
    if any(finder.find_spec(kernel, [os.path.join(here, "_cython", "shared")]) for finder in sys.meta_path):
        return
    for entry in sys.path:
        spec = PathFinder.find_spec(__name__, [entry])
        if spec is None or spec.loader is None or spec.submodule_search_locations is None:
            continue  # no such package in this folder
        folders = [os.path.join(folder, "_cython", "shared") for folder in spec.submodule_search_locations]
        if PathFinder.find_spec(kernel, folders):
            sys.modules[__name__] = package = module_from_spec(spec)
            spec.loader.exec_module(package)
            return


_load_installed_package()

_EXPORTS = {
    "AndOut": "_factor_graph.factors.logic_factors",
    "AtMostOne": "_factor_graph.factors.linear_factors",
    "BoundedClassifier": "_bounded.estimators.classifier",
    "BoundedRegressor": "_bounded.estimators.regressor",
    "Budget": "_factor_graph.factors.linear_factors",
    "Dense": "_factor_graph.factors.structured_factors",
    "DepTree": "_factor_graph.factors.structured_factors",
    "ExtremeSoftmaxSGD": "_extreme.estimators.classifier",
    "Factor": "_factor_graph.factors.factors",
    "FactorGraph": "_factor_graph.graphs.graph",
    "Imply": "_factor_graph.factors.linear_factors",
    "Knapsack": "_factor_graph.factors.linear_factors",
    "L1LogisticOBA": "_l1.estimators.logistic",
    "L1LogisticOBACV": "_l1.estimators.logistic_cv",
    "LPSparseMAPClassifier": "_factor_graph.estimators.classifier",
    "LPSparseMAPClassifierCV": "_factor_graph.estimators.classifier_cv",
    "GLMOBA": "_l1.estimators.glm",
    "GLMOBACV": "_l1.estimators.glm_cv",
    "LassoOBA": "_l1.estimators.lasso",
    "LassoOBACV": "_l1.estimators.lasso_cv",
    "Matching": "_factor_graph.factors.structured_factors",
    "Or": "_factor_graph.factors.linear_factors",
    "OrOut": "_factor_graph.factors.logic_factors",
    "OrdinalOBA": "_l1.estimators.ordinal",
    "Pair": "_factor_graph.factors.logic_factors",
    "Sequence": "_factor_graph.factors.structured_factors",
    "SequenceTagger": "_tagger.estimators.tagger",
    "SoftmaxClassifier": "_fenchel_young.estimators.classifier",
    "SoftmaxClassifierCV": "_fenchel_young.estimators.classifier_cv",
    "SparsemaxClassifier": "_fenchel_young.estimators.classifier",
    "SparsemaxClassifierCV": "_fenchel_young.estimators.classifier_cv",
    "StabilitySelection": "_stability.estimators.selection",
    "Xor": "_factor_graph.factors.linear_factors",
    "XorOut": "_factor_graph.factors.linear_factors",
    "fenchel_young_path": "_fenchel_young.estimators.path",
    "glm_path": "_l1.paths.glm_path",
    "l1_logistic_path": "_l1.paths.path",
    "lasso_path": "_l1.paths.path",
    "load": "_saved",
    "lp_sparsemap": "_factor_graph.graphs.lp_sparsemap",
    "minimize_nqn": "_bounded.solver.minimize_nqn",
    "minimize_oba": "optimize",
    "save": "_saved",
    "shared_fits": "_l1.estimators.shared_fits",
    "show_versions": "_compare.show_versions",
    "sparsemax": "_fenchel_young.losses.sparsemax",
    "sparsemax_jvp": "_fenchel_young.losses.sparsemax",
    "sparsemax_loss": "_fenchel_young.losses.sparsemax",
    "sparsemax_loss_and_gradient": "_fenchel_young.losses.sparsemax",
    "sparsemax_support_size": "_fenchel_young.losses.sparsemax",
    "sparsemax_threshold": "_fenchel_young.losses.sparsemax",
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
        # with both of these Python's traceback names what was perhaps meant
        raise AttributeError(
            f"module 'sparsekit' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS, *_SUBMODULES])
