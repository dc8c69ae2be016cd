"""Working set: how many variables join it in one iteration, the same for all solvers."""

# At least this many.
MIN_NEW = 10
# This part of all columns may join whatever is in use. Fits of least squares with 10 to 200 rows a column
# take 1.3 to 2.5 times as long where all columns may join at once.
NEW_PART = 0.05
# At most this part of the rows that exceed the variables in use: more variables than rows are seldom in a
# solution. With 0.5 imdb takes 1.15 times as long at a weak penalty, fits to 250 x 5000 up to 1.7 times.
NEW_PER_ROW = 0.25
# This part of the rows may join whatever is in use. With 0.5 fits to 1000 x 5000 take up to 2.6 times as long.
NEW_AT_LEAST = 0.1
# Iterations in a row without progress after which a solver gives up. Values from 0 to 10 change no fit.
PATIENCE = 3


def most_new(n_rows, n_columns, n_used):
    """The largest number of variables that join in one iteration: as many as are in use, within limits."""
    limit = max(NEW_PER_ROW * (n_rows - n_used), NEW_AT_LEAST * n_rows)
    return max(MIN_NEW, int(min(max(NEW_PART * n_columns, n_used), limit)))
