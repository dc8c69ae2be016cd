"""Which algorithm solves a problem: every size threshold of the solvers, with its evidence.

Evidence is the processor time of fits of benchmarks/l1_grid.py, one thread of an AMD EPYC with AVX-512. The
values were not chosen on those problems.
"""

from __future__ import annotations

from .._linalg.newton import MAX_SIDE, SMALL_SIDE

# Columns up to which a Gram matrix costs little: whatever the fill, and in double precision. With single
# precision 864 fits to 5 to 127 columns of correlations up to 1 - 1e-8 take 3.6 times as many iterations. 16
# more end uncertified.
SMALL_GRAM = 128
# Rows up to which the interior-point method solves fits whatever the size of X; beyond, its matrices of the
# rows may have as many numbers as X.
INTERIOR_ROWS = 1000
# Coefficients in use, as a part of the rows, from which a single fit goes on by the interior-point method,
# and the least number of rows. 30 fits to 240 to 1500 rows take 0.74 of the time with it, and one of them
# 0.08; 192 fits to 100 to 190 rows take 0.95. Fits to 15 to 64 rows take up to 4 times as long. Parts of 0.15
# to 0.7 take the same time within a tenth. With positive=True no number in use is enough: 77 such fits take
# 0.8 of the time without it.
MANY_ACTIVE, MANY_ACTIVE_ROWS = 0.3, 100
# Iterations after which a fit goes on by the interior-point method whatever is in use. Without
# it 50 fits to 15 to 250 rows take 1.06 times the time, and 2 of 500 random ones end unsolved.
MANY_ROUNDS = 30
# Numbers of a large Gram matrix for each entry of X up to which paths use one. 24 searches and paths over 110
# to 200 dense rows of 800 to 1188 columns take 0.8 of the time with 12 that they take with 4, at most 1.7
# times as long. 20 over sparse X beyond 12 take 0.46 of the time by a session, at most 1.2 times as long.
GRAM_PER_ENTRY = 12
# Columns for each penalty of a path but the first up to which a Gram matrix of all of them is made. Compiled
# code then goes from penalty to penalty. 24 searches and paths over 60 to 1000 rows of 400 to 600 columns
# take 2.4 times as long by a session, up to 4.8. With 20 columns a penalty the session takes 0.8 of the time,
# with 30 a quarter.
COLUMNS_PER_PENALTY = 12
# Rows for each column from which folds have a Gram matrix of all columns for any number of penalties, as they
# have of up to `SMALL_SIDE` columns: it is made once. Searches of 10 penalties over 3000 x 800 take 2.5 times
# as long by a session, over 60 x 800 0.7 of the time.
ROWS_PER_COLUMN = 6
# Ridges of dense columns keep their Hessian from step to step up to this many columns, where OBA makes a Gram
# matrix for every model. 37 fits of four families to 20 to 500 columns take 0.7 of the time of OBA, at most
# 1.2 times as long. 64 fits to columns of correlations up to 1 - 1e-8 take 0.65 of it, at most twice as long.
# Fits to 1000 columns, where OBA makes products, take 1.8 times as long.
RIDGE_COLUMNS = 600
# Numbers of the problem in as many variables as rows for each stored number of X, dense or sparse, up to
# which a ridge without an L1 penalty gets it. 83 fits to dense X take 2.8 times as long without it, 36 to
# sparse X 1.35 times. With ten for each of a sparse X conjugate gradients on the features are as fast, with
# two classes and a strong ridge five times.
FEW_ROWS_DENSE = 0.2
FEW_ROWS_SPARSE = 5.0
# Steps of conjugate gradients that cost as much as a Gram matrix in single precision, as a part of its side.
# Where a ridge of dense columns needs more, a factor of its system preconditions them. Never by steps takes
# 1.15 times the time, up to 8 times; always by steps as long, up to 24 times.
RIDGE_STEPS_PER_SIDE = 0.06
# Steps after which their number is estimated. Without an estimate fits take 1.09 times as long, up to 2.5.
RIDGE_FIRST_STEPS = 3
# Part of the columns from which the working set becomes all columns, where all fit.
ALL_COLUMNS_PART = 0.25
# Part of the columns of one Hessian up to which columns in use over blocks of rows leave enough to others;
# beyond it the Hessian is multiplied instead. With 1.0 few join at a time: 85 and 51 rounds for three classes
# and about 1500 coefficients, where 0.9 takes 61 and 37.
BLOCKS_PART_IN_USE = 0.9
# Largest part of the entries, and of the columns, that a copy without screened columns may have.
SCREENED_PART = 0.8


def all_columns_fit(n_rows, n_columns, n_entries):
    """Whether a Gram matrix of all columns is within the limits; ``n_entries`` of a sparse X, else None."""
    return n_columns <= n_rows and hessian_fits(n_columns, n_entries)


def path_takes_gram(n_rows, n_columns, n_entries, n_penalties, has_folds, has_l1, is_positive=False):
    """Whether a path goes by a Gram matrix of all columns, compiled from penalty to penalty.

    A session reads sparse columns, whose products cost little. It is compared to the part of the matrix that
    may be in use: as many columns as rows, or half of them where coefficients are >= 0. With all columns 16
    searches and paths over 20 to 250 sparse rows of 800 to 1188 columns take 1.5 times as long, and 12 with
    positive=True 1.2 times. Ridges over fewer rows than columns have a system of the rows, where columns are
    not few: paths over 400 sparse rows of 600 columns take 0.5 of the time.
    """
    is_small = n_columns <= SMALL_SIDE
    if not (has_l1 or is_small or n_rows >= n_columns):
        return False
    side, entries = n_columns, n_rows * n_columns
    if n_entries is not None:
        side, entries = min(n_rows, n_columns) // (1 + is_positive), n_entries
    is_cheap = side <= 2 * SMALL_SIDE or side**2 <= GRAM_PER_ENTRY * entries
    if is_cheap and n_columns <= min(COLUMNS_PER_PENALTY * (n_penalties - 1), MAX_SIDE):
        return True
    is_tall = n_rows >= ROWS_PER_COLUMN * n_columns and all_columns_fit(n_rows, n_columns, n_entries)
    return has_folds and (is_small or is_tall)


def interior_fits(n_rows, l1, n_entries):
    """Whether the interior-point method may solve least squares with penalties l1 (p,)."""
    if not (n_rows <= MAX_SIDE and (l1 > 0.0).all()):
        return False
    return n_rows <= INTERIOR_ROWS or n_rows**2 <= n_entries


def has_many_active(n_rows, n_used):
    """Whether a single fit with so many coefficients in use goes on by the interior-point method."""
    return n_rows >= MANY_ACTIVE_ROWS and MANY_ACTIVE * n_rows < n_used <= n_rows


def is_crowded(n_rows, n_used, n_rounds, has_ridge):
    """Whether a fit goes on by the interior-point method since more coefficients are in use than rows.

    The models of OBA are singular then. With an L2 penalty they are not, and half of `MANY_ROUNDS` come
    first: with a strong one OBA ends before. Without this 7 of 170 sparse Lassos took 20 seconds or more,
    with it 1 to 3. 96 sparse elastic nets take 0.44 to 0.94 of the time by kind, down to 0.04. 67 Lassos to
    15 to 199 rows take 0.78 of the time that they take with 200 rows as the least. Those to 15 to 60 rows
    take up to 2.7 times as long by the interior-point method.
    """
    if not n_used > n_rows >= MANY_ACTIVE_ROWS:
        return False
    return not has_ridge or 2 * n_rounds >= MANY_ROUNDS


def interior_takes_over(n_rows, n_used, n_rounds, has_ridge, is_stuck):
    """Whether a session goes on by the interior-point method: after many rounds, or where OBA would be slow.

    That is where `is_crowded`, or where the working set can't grow and more columns than half of the rows are
    in use. From 0.4 of the rows 250 x 5000 numbers of density 0.05 take 9 times as long as by OBA. With an L2
    penalty OBA goes on until too many are in use.
    """
    is_full = is_stuck and not has_ridge and 2 * n_used > n_rows
    return n_rounds >= MANY_ROUNDS or is_full or is_crowded(n_rows, n_used, n_rounds, has_ridge)


def ridge_keeps_hessian(n_rows, n_columns, is_sparse):
    """Whether a ridge without an L1 penalty is fitted by a session that keeps its Hessian."""
    return not is_sparse and n_columns <= min(n_rows, RIDGE_COLUMNS)


def few_rows_fit(n_rows, n_variables, n_entries, is_sparse):
    """Whether a ridge without an L1 penalty becomes a problem in ``n_variables``, about as many as rows.

    Its factor and its Hessians cost their cubes.
    """
    most = FEW_ROWS_SPARSE if is_sparse else FEW_ROWS_DENSE
    return n_rows > 0 and n_variables <= MAX_SIDE and n_rows * n_variables <= most * n_entries


def hessian_fits(n_working, n_entries):
    """Whether a session keeps the Hessian of so many columns; ``n_entries`` of sparse ones, else None.

    That of sparse columns has no more numbers than they have entries. With twice as many 40 paths and fits to
    sparse X take as long (0.98 to 1.04 by kind), with four times as many folds of rcv1_binary 1.5 times.
    """
    if n_working > MAX_SIDE:
        return False
    return n_entries is None or n_working <= SMALL_GRAM or n_working**2 <= n_entries
