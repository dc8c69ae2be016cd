"""Pictures and measures of models and solvers. Matplotlib is imported when something is drawn."""

from ._attention import AttentionDisplay
from ._coefficients import CoefficientDisplay
from ._convergence import ConvergenceDisplay
from ._cv_score import CVScoreDisplay
from ._factor_graph import FactorGraphDisplay
from ._parametric import ParametricPlotDisplay
from ._path import RegularizationPathDisplay
from ._profile import PerformanceProfileDisplay
from ._sharpness import sharpness
from ._stability import StabilityPathDisplay
from ._support import SupportDisplay

__all__ = [
    "AttentionDisplay",
    "CVScoreDisplay",
    "CoefficientDisplay",
    "ConvergenceDisplay",
    "FactorGraphDisplay",
    "ParametricPlotDisplay",
    "PerformanceProfileDisplay",
    "RegularizationPathDisplay",
    "StabilityPathDisplay",
    "SupportDisplay",
    "sharpness",
]
