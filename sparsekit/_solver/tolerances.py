"""Tolerances that solvers share."""

# Relative rounding error of an objective, a sum over rows.
F_ROUNDING = 1e-15
# Relative differences below this are rounding: of variances, of values, of gaps.
ROUNDING = 1e-12
# The same where data is in single precision.
SINGLE_ROUNDING = 1e-6
# A problem that is solved for another one ends when its own error is this part of the other's gap.
FORCING = 0.1
# Successive steps without progress that end a run.
MAX_STALLED = 6
# Duality gap at which a smooth problem has converged, in units of tol times the objective.
GAP_FACTOR = 10.0
# Iterations of the test by `ftol`: a nonsmooth f may fall by little in one iteration and by more in the next.
FTOL_WINDOW = 10
