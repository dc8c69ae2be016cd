"""Pictures and measures of models and solvers. Matplotlib is imported when something is drawn."""

from ._convergence import ConvergenceDisplay
from ._parametric import ParametricPlotDisplay
from ._path import RegularizationPathDisplay
from ._sharpness import sharpness

__all__ = ["ConvergenceDisplay", "ParametricPlotDisplay", "RegularizationPathDisplay", "sharpness"]
