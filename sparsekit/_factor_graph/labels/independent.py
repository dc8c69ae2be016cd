"""Independent labels: without pairs and factors each label is a problem of its own, with a ridge."""

from ..._bounded.losses.output_rows import LogisticRows, clipped_square_rows, hinge_rows
from ..._bounded.solver.ridge_outputs import minimize_outputs

# Largest number of Newton steps of a fit without pairs and factors at which NQN starts. It ends earlier at a
# gap of ten times tol. 24 fits to 7 sets, on which these were chosen, take 0.64 of the time of NQN from zero.
# 72 fits to 11 other sets take 0.51, 40 with factors 0.51. A tenth and ten times that gap take 0.66 and 0.74,
# 5 steps 0.73. With no limit of steps fits with an objective of nearly zero take up to 1.6 times the time.
PAIRLESS_STEPS = 10

ROWS = {"sparsemap": clipped_square_rows, "hinge": hinge_rows, "logistic": LogisticRows}


def are_independent(loss):
    """Whether nothing ties the labels of a `LabelLoss` together."""
    return loss.labels.are_free and not loss.n_pairs


def minimize_independent(loss, x0, **options):
    """Minimise a `LabelLoss` of independent labels from x0 (None: zero), by `minimize_outputs`.

    14 fits of 4 to 10 logistic labels take 0.84 of the time of a ridge by `L1LogisticOBA` for each label, at
    most 1.8 times as long.
    """
    return minimize_outputs(
        loss.design, loss.weight, ROWS[loss.loss](loss.Y), None if x0 is None else loss.xp.asarray(x0),
        alpha=loss.alpha, fit_intercept=loss.fit_intercept, n_threads=loss.n_threads, **options,
    )  # fmt: skip
