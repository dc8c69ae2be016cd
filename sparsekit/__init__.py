"""sparsekit: sparse models with certified solutions, in scikit-learn's API.

The public names live in the submodules listed in ``_EXPORTS`` and are imported on first
use, so that ``import sparsekit`` costs next to nothing.
"""

from importlib import import_module

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
    "sparsemax": "_losses.sparsemax",
    "sparsemax_jvp": "_losses.sparsemax",
    "sparsemax_loss": "_losses.sparsemax",
    "sparsemax_loss_and_gradient": "_losses.sparsemax",
    "sparsemax_support_size": "_losses.sparsemax",
    "sparsemax_threshold": "_losses.sparsemax",
}
_SUBMODULES = ("datasets", "inspection", "metrics", "optimize", "torch")

__all__ = [*_EXPORTS, "__version__"]


def __getattr__(name):
    if name in _EXPORTS:
        value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'sparsekit' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_EXPORTS, *_SUBMODULES])
