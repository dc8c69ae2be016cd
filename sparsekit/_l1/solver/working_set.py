"""Working set: how many variables join it in one iteration, the same for all solvers."""

# At least this many. Where as many are in use, limits by rows are at least twice as much: else weighted rows
# and repeated ones, as in scikit-learn's check, get other working sets.
MIN_NEW = 10
# This part of all columns may join whatever is in use. Fits of least squares with 10 to 200 rows a column
# take 1.3 to 2.5 times as long where all columns may join at once.
NEW_PART = 0.05
# This part of the rows may join whatever is in use. With 0.5 fits to 1000 x 5000 take up to 2.6 times as
# long.
NEW_PER_ROW = 0.1
# Or this part of the room for more. With 0.5 imdb takes 1.15 times as long at a weak penalty, fits to
# 250 x 5000 up to 1.7 times; with 0 it takes 1.8 times as long.
NEW_PER_ROOM = 0.25
# Iterations in a row without progress after which a solver gives up. Values from 0 to 10 change no fit.
PATIENCE = 3


def most_new(n_rows, n_columns, n_used, room=0.0):
    """The largest number of variables that join in one iteration: as many as are in use, within limits.

    ``room`` is what `room_for_more` returns. Solvers that keep a Hessian from penalty to penalty leave it at
    0: they pay for each column at each penalty. With it paths over 1000 x 5000 take up to 3 times as long.
    """
    limit = max(NEW_PER_ROOM * room, NEW_PER_ROW * n_rows, 2 * MIN_NEW)
    return max(MIN_NEW, int(min(max(NEW_PART * n_columns, n_used), limit)))


def room_for_more(n_rows, n_used, has_ridge):
    """About how many more variables a solution may have; ``has_ridge``: whether there is an L2 penalty.

    More variables than rows make a model singular, but not with a ridge: with the last term 21 of 40 elastic
    nets with fewer rows than columns take 0.8 of the time, down to 0.4.
    """
    return max(n_rows - n_used, n_used if has_ridge else 0)
