"""Working set: how many variables join it in one iteration, the same for all solvers."""

# At least this many.
MIN_NEW = 10
# At most this part of the number of rows: more make the Hessian singular, and are mostly not in the solution.
# Without the limit fits with fewer rows than columns take 1.3 times the multiplications. With 0.1 fits of
# least squares take 1.3 times as many iterations.
NEW_PER_ROW = 0.25
# Iterations in a row without progress after which a solver gives up. Values from 0 to 10 change no fit.
PATIENCE = 3


def most_new(n_rows):
    """The largest number of variables that join in one iteration."""
    return max(MIN_NEW, int(NEW_PER_ROW * n_rows))
