"""Independent labels: without pairs and factors each label is a problem of its own, with a ridge."""

from ..._bounded.losses.output_rows import LogisticRows, clipped_square_rows, hinge_rows
from ..._bounded.solver.ridge_outputs import minimize_outputs

ROWS = {"sparsemap": clipped_square_rows, "hinge": hinge_rows, "logistic": LogisticRows}


def are_independent(loss):
    """Whether nothing ties the labels of a `LabelLoss` together."""
    return loss.labels.are_free and not loss.n_pairs


def minimize_independent(loss, x0, **options):
    """Minimise a `LabelLoss` of independent labels from x0 (None: zero), by `minimize_outputs`."""
    return minimize_outputs(
        loss.design, loss.weight, ROWS[loss.loss](loss.Y), None if x0 is None else loss.xp.asarray(x0),
        alpha=loss.alpha, fit_intercept=loss.fit_intercept, n_threads=loss.n_threads, **options,
    )  # fmt: skip
