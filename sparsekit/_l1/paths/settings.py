"""The solver's parameters, as estimators and paths declare them."""

import inspect
from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from ..._estimator.base import SOLVER_CONSTRAINTS
from ..solver.oba import minimize_oba

# the solver states its defaults; the estimators repeat none of them
_PARAMETERS = inspect.signature(minimize_oba).parameters
TOL, MAX_ITER, MEMORY = (_PARAMETERS[name].default for name in ("tol", "max_iter", "memory"))

# Bytes of coefficients above which paths keep them as CSC, and cross-validation none of its folds; of moments
# of folds that cross-validation keeps.
MAX_BYTES = 2**26

OBA_CONSTRAINTS: dict = {
    **SOLVER_CONSTRAINTS,
    "hessian": [StrOptions({"exact", "lbfgs"})],
    "memory": [Interval(Integral, 1, None, closed="left")],
}
