"""Which algorithm solves a problem of bounded coefficients: the thresholds of size and cost.

- Newton's method on envelopes (`refine`) ends the fits that the others leave open. For few entries of X it
  runs alone. Where its matrix is too large, NQN takes its place.
- NQN (`Descent.approach`) comes before it; on smooth losses while it costs less than some Newton steps.
- Ascent on the dual comes before NQN or between the two, where other methods cost more sweeps than it has.
- Several outputs: the same ascent, then proximal points (`proximal_points`), whose systems `SystemCosts`
  chooses.
"""

from dataclasses import dataclass

import numpy as np

from .._linalg.cost import HOST
from .._linalg.dense_design import DenseDesign
from .._linalg.newton import MAX_SIDE
from .losses.losses import PiecewiseLoss

# How `OutputSystems` solves: by conjugate gradients, or by a matrix over columns or rows.
BY_PRODUCTS = "products"
BY_COLUMNS = "columns"
BY_ROWS = "rows"

# Up to this many entries of X Newton's method runs alone, until rounding stops it. Reordered or weighted rows
# then give the same answer.
MAX_NEWTON_ONLY_ENTRIES = 20000
# Least number of NQN's iterations on a smooth loss. 240 fits of five losses to twelve made sets take 1.03
# times as long with 16.
MIN_NQN_ITERATIONS = 10
# Steps of Newton's method on a smooth loss that NQN's iterations may cost as much as. The 240 fits take the
# same time within 3 % with 3 and with 6. One of them takes 10 times as long with 1.5, and 4.5 times with 3.
NQN_NEWTON_STEPS = 4
# Factor of these iterations where most rows are on a linear part of the loss. There Newton's method takes
# hundreds of steps: Huber fits to wide X and targets of 1e4 take up to 13 times as long with 1.
NQN_LINEAR_FACTOR = 10
# Number of Newton systems in the estimated cost of NQN and Newton's method. Where more sweeps seem to be left
# than that costs, these go on: 124 fits made for this choice take 1.08 times as long as the better way of
# each. With 1 a fit to 800 x 800 normal numbers takes 16 times as long, with 3 the 124 fits 1.13 times.
ASCENT_NEWTON_STEPS = 1.5
# NQN's part of that cost, in entries that sweeps read. With 5e7 a fit to 200 x 200 normal numbers takes
# 16 times as long, with 2e8 the 124 fits 1.1 times.
NQN_COST = 1e8
# Cost of a sweep beside its entries and rows, in entries: its part of a certificate. Without it four fits to
# 300 x 80 to 600 x 50 sparse numbers take 5 to 6 times as long as by Newton's method, with it 1.2 to 1.9.
SWEEP_COST = 1e4
# Cost of NQN and Newton's method, in sweeps, below which no sweep is made. With 0 fits to 10000 x 30 normal
# numbers take 1.6 times as long; with 600 fits to 3000 x 100 and 2000 x 150 ones take 1.06 times as long.
MIN_NEWTON_COST = 350
# Part of the other methods' cost after which the number of sweeps left is estimated; the gap falls slowly at
# first. With 0.05 two of the 124 fits take 16 times as long, with 0.2 low ranks take 3 times as long.
ASCENT_TRIAL = 0.1
# Part of an output's first objective up to which proximal steps go on from the last point of the sweeps. 37
# hinge fits, of which six helped to choose it, take 0.76 of the time that they take from the point before, at
# most 1.4 times. With 0.5 wide columns of large means take up to 3 times as many steps.
GOOD_PART = 0.1
# Largest number of columns of X, the intercept included, for a matrix over columns.
MAX_COLUMNS = 512
# Estimated number of products of the first step.
FIRST_PRODUCTS = 10
# Nanoseconds of gathering an entry of a matrix.
GATHER_COST = 1.5


@dataclass(frozen=True)
class IterationTime:
    """Nanoseconds of an iteration on a smooth loss; the five numbers are fitted to 22 fits on one core.

    On a GPU all times of `nqn_iterations` are those of a core as well: none has been measured there.
    """

    entry: float = 0.8
    sparse_entry: float = 2.5
    row: float = 40.0
    column: float = 180.0
    least: float = 2e5

    def of(self, matrix):
        """The time with this X."""
        (n, p), entry = matrix.shape, self.sparse_entry if matrix.is_sparse else self.entry
        return entry * matrix.nnz + self.row * n + self.column * p + self.least


def newton_runs_alone(matrix):
    """Whether X has so few entries, zeros included, that no other method comes before Newton's."""
    return matrix.shape[0] * matrix.shape[1] <= MAX_NEWTON_ONLY_ENTRIES


def nqn_iterations(problem):
    """How many iterations NQN gets on a smooth loss: as many as some of Newton's steps cost.

    Where the matrix of these would be too large that is more than NQN needs. Least squares without bounds
    take one step.
    """
    matrix = problem.matrix
    side, other = sorted(matrix.shape)
    gram = HOST.dense * side**2 * other
    if matrix.is_sparse:
        gram = 0.5 * HOST.pair * matrix.nnz**2 / other
    step = gram + HOST.factor * side**3  # about three factors, for the bounds that it meets
    steps = 1 if problem.is_ridge and problem.loss.is_quadratic else NQN_NEWTON_STEPS
    return max(MIN_NQN_ITERATIONS, int(steps * step / IterationTime().of(matrix)))


def estimate_ridge_cost(matrix, has_kinks, is_quadratic=False):
    """`estimate_other_cost` of ridges on X; of smooth losses 0 where X has more rows than columns.

    Least squares take one step of Newton's method, whose multiply-adds take `HOST.factor` nanoseconds; an
    entry of a sweep takes what one of NQN's does. 85 fits to 17 matrices of p >= n take 0.64 of the time that
    they take with the cost of other losses and as long for NQN, at most 1.2 times as long; 56 others 0.66, at
    most 1.1, 112 to p from n to 10 n 0.90, at most 2.1. Sparse 3000 x 3000 ones of weak ridges take 0.13.
    """
    n, p = matrix.shape
    if matrix.is_on_device or not (p >= n or has_kinks):
        return 0.0
    part = 1.0
    if is_quadratic:
        part = HOST.factor / (IterationTime.sparse_entry if matrix.is_sparse else IterationTime.entry)
    return _newton_cost(matrix, p, NQN_COST, part)


def estimate_other_cost(problem, w=None):
    """What other methods cost, in sweeps; 0 where no sweep is made. w (p,) is NQN's point, None before it.

    Without bounds and L1 part sweeps come before NQN. 180 fits of six losses to ten made sets, none of them
    used to choose anything here, take 0.49 of the time that NQN and Newton's method take, 18 of them to wide
    X 0.06. One takes 6.5 times as long (10 to 70 ms), the others at most 2.1 times. The cost of least squares
    came later.

    With them sweeps come after NQN: narrow boxes take few iterations, and the number of free coefficients is
    known then. 93 of 198 fits of five losses to nine made sets, none of them used to choose this, have
    sweeps. The 93 take 0.60 of the time without sweeps, cut off at 5 seconds, at most 1.4 times as long. The
    rule was simpler afterwards: 169 of such fits take 1.00 of that time, one 2.4 times as long.

    Least squares in a box have none. They take few Newton steps, and sweeps take up to 3 times as long (36
    fits to text and wide X).
    """
    loss = problem.loss
    if not (isinstance(loss, PiecewiseLoss) and problem.l2 > 0.0 and problem.is_ridge == (w is None)):
        return 0.0
    if problem.is_ridge:
        return estimate_ridge_cost(problem.matrix, loss.has_kinks, loss.is_quadratic)
    if problem.matrix.is_on_device or loss.is_quadratic:
        return 0.0
    return _newton_cost(problem.matrix, count_free(problem, w))


def _newton_cost(matrix, n_free, fixed=0.0, part=1.0):
    """The cost of Newton's method with ``n_free`` coefficients, in sweeps; 0 below `MIN_NEWTON_COST`.

    ``fixed`` is a cost in entries. ``part`` is a factor of what reaches `MIN_NEWTON_COST`.
    """
    n, m = matrix.shape[0], min(matrix.shape[0], n_free, MAX_SIDE)
    entries = ASCENT_NEWTON_STEPS * m**2 * (matrix.nnz / n + m / 3.0) + fixed
    cost = entries / (matrix.nnz + n + SWEEP_COST)
    return part * cost if cost >= MIN_NEWTON_COST else 0.0


def count_free(problem, w):
    """The number of coefficients off their bounds, and off zero where there is an L1 part."""
    is_free = (w > problem.lower) & (w < problem.upper)
    return np.count_nonzero(is_free & (w != 0.0) if problem.l1 else is_free)


def estimate_outputs_cost(matrix, alpha, has_kinks):
    """`estimate_other_cost` of several outputs, all of them ridges: smooth losses have no sweeps."""
    if newton_runs_alone(matrix) or not (alpha > 0.0 and has_kinks):
        return 0.0
    return estimate_ridge_cost(matrix, has_kinks)


def ascent_gives_way(n_sweeps, at, before, gap, allowed, other_cost):
    """Whether more sweeps are left than the other methods cost, at the rate since sweep ``at``.

    The gap was ``before`` then, and ``allowed`` is that at which a fit ends.
    """
    if np.isnan(gap):
        return True
    if n_sweeps < ASCENT_TRIAL * other_cost:
        return False
    left = (n_sweeps - at) * np.log(gap / allowed)  # times the logarithm below
    return left > other_cost * np.log(before / gap)


class SystemCosts:
    """Estimated nanoseconds of one X's Newton systems for several outputs (`OutputSystems`).

    ``size`` is the number of columns, that of an intercept included.
    """

    def __init__(self, design, size, alpha):
        n, is_dense, is_host = design.shape[0], isinstance(design, DenseDesign), not design.is_on_device
        self.n, self.size, self.nnz = n, size, design.nnz
        self.entry = HOST.stream if is_dense else HOST.entry
        self.has_row_matrix = is_host and n <= MAX_SIDE and alpha > 0.0
        self.has_column_matrix = is_host and size <= MAX_COLUMNS
        self.row_cost = HOST.dense * size**2  # of the matrix over columns
        if self.has_column_matrix and not is_dense and design.has_few_entries(None):
            self.row_cost = 0.5 * HOST.pair * (design.nnz / n) ** 2

    def choose(self, count, n_products, is_made):
        """The algorithm for outputs with ``count`` (k,) curved rows; ``is_made``: the matrix of the rows."""
        costs = {BY_PRODUCTS: n_products * self._cost_of_product(len(count))}
        if self.has_column_matrix:
            factor = HOST.factor * self.size**3 / 3.0
            costs[BY_COLUMNS] = float((self.row_cost * count + factor).sum())
        if self.has_row_matrix:
            costs[BY_ROWS] = float((HOST.factor * count**3 / 3.0 + GATHER_COST * count**2).sum())
            if not is_made:
                costs[BY_ROWS] += self.n * self._cost_of_product(1) / 4.0
        return min(costs, key=costs.get)

    def _cost_of_product(self, k):
        return 2.0 * k * self.nnz * self.entry
