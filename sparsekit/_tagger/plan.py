"""Which loss a model has, in fits and in batches, and which algorithm minimises it in a fit."""

from functools import partial

from .losses.hinge import HingeLoss, WorstLoss
from .losses.loss import ChainLoss
from .solver.hinge import minimize_hinge
from .solver.lbfgs import minimize
from .solver.scaled import minimize_scaled
from .solver.sparse_loss import SparseMAPLoss

FIT_LOSSES = {"crf": ChainLoss, "sparsemap": SparseMAPLoss, "hinge": HingeLoss}
# Pairs of L-BFGS for the CRF, of which an evaluation costs less than a pass over ten pairs. With ten 24 fits
# take 1.28 times the time, but features whose scales differ by 1e12 fewer steps. SparseMAP takes 1.18 times
# the time with four.
CRF_MEMORY = 4
# Losses of `partial_fit`.
BATCH_LOSSES = {"crf": ChainLoss, "sparsemap": SparseMAPLoss, "hinge": WorstLoss}


def choose_minimizer(name, loss, l1_ratio):
    """The minimiser of ``loss``, an object of ``FIT_LOSSES[name]``: smoothing, OBA or L-BFGS."""
    if name == "hinge":
        return partial(minimize_hinge, loss)
    if l1_ratio > 0:
        return partial(minimize_scaled, loss, l1_ratio)
    if name == "sparsemap":
        return partial(minimize, loss, kinks=True)
    return partial(minimize, loss, memory=CRF_MEMORY)
