"""Pictures and measures of models and solvers. Matplotlib is imported when something is drawn."""

from ._attention import AttentionDisplay
from ._convergence import ConvergenceDisplay
from ._parametric import ParametricPlotDisplay
from ._path import RegularizationPathDisplay
from ._sharpness import sharpness
from ._stability import StabilityPathDisplay

__all__ = [
    "AttentionDisplay",
    "ConvergenceDisplay",
    "ParametricPlotDisplay",
    "RegularizationPathDisplay",
    "StabilityPathDisplay",
    "sharpness",
]
