"""Working set: how many variables join it in one iteration, the same for all solvers."""

# At least this many.
MIN_NEW = 10
# This part of all columns may join whatever is in use. Fits of least squares with 10 to 200 rows a column
# take 1.3 to 2.5 times as long where all columns may join at once.
NEW_PART = 0.05
# At most this part of the number of rows, in models that change from step to step: of more, many are not in
# the solution. Cross-validation of logistic losses takes 1.3 times as long with 0.25.
NEW_PER_ROW = 0.1
# Iterations in a row without progress after which a solver gives up. Values from 0 to 10 change no fit.
PATIENCE = 3


def most_new(n_rows, n_columns, n_used, per_row):
    """The largest number of variables that join in one iteration: as many as are in use, within limits."""
    return max(MIN_NEW, int(min(max(NEW_PART * n_columns, n_used), per_row * n_rows)))
