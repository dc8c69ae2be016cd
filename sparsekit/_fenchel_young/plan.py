"""Which algorithm minimises a Fenchel-Young loss: the size thresholds of the wing.

- Blocks of rows beyond memory: L-BFGS (`solver/block_loss.py`), since Newton's method makes more passes.
- Sparsemax whose Newton systems are large: sweeps of dual ascent (`solver/ascent.py`), as long as they pay.
- All else, and where sweeps no longer pay: Newton's method (`solver/minimize_model.py`).

Costs decide how each Newton direction is found (`losses/newton_system.py`): by a factor of the variables' or
of the rows' system, or by conjugate gradients.
"""

from .._linalg.cost import PRODUCTS

# Largest number of variables, or of the rows' dimensions, for which Newton steps are cheap. With 200, fits of
# 250 to 600 rows, 100 to 200 features and 4 to 8 classes take 1.2 times as long in the mean, up to 3 times.
MAX_NEWTON_SIDE = 1500
# The same with fewer rows than features, where sweeps are fastest. With 600, fits of 150 rows, 3000 features
# and 4 classes take 8 to 17 times as long.
MAX_WIDE_SIDE = 200
# Largest number of rows per feature for sweeps: above it they stall.
MAX_ROWS_PER_FEATURE = 5.0
# Sweeps that take as long as Newton's method, for each Hessian product of a step: about 30 steps, and a sweep
# costs 2.5 products.
NEWTON_SWEEPS = 12
# Part of the estimated time of Newton's method that sweeps may always take. Without it 55 of 132 fits of 60
# to 1500 rows end sweeps earlier, and make 1.24 times as many passes over the data. Eight of them need 22 to
# 74 Newton steps instead of none.
FREE_PART = 0.1


def ascent_comes_first(loss, alpha):
    """Whether sweeps of dual ascent come before Newton's method for a `FenchelYoungLoss`."""
    if loss.transform != "sparsemax" or not alpha > 0.0 or loss.design.is_on_device:
        return False
    n, q = loss.design.shape[0], loss.shape[0]
    side = min(q * loss.n_classes, n * (loss.n_classes - 1))
    return n <= MAX_ROWS_PER_FEATURE * q and side > (MAX_WIDE_SIDE if q > n else MAX_NEWTON_SIDE)


def newton_sweeps(loss):
    """Estimated time of Newton's method, in sweeps."""
    return NEWTON_SWEEPS * min(PRODUCTS, loss.factor_products())


def ascent_goes_on(n_sweeps, expected, newton):
    """Whether ascent goes on after so many sweeps, with so many expected; ``newton`` is `newton_sweeps`."""
    return n_sweeps <= FREE_PART * newton or n_sweeps + expected <= newton
