"""The run of ExtremeSoftmaxSGD's epochs, and the attributes that it leaves."""

from __future__ import annotations

import numpy as np

from ..._arrays import as_like
from ..._messages import shown
from ..._solver import outcome
from ..plan import MAX_SCORES
from ..solver.epochs import minimize_sampled_softmax
from ..solver.shortlist import forget as forget_shortlist
from ..solver.state import finish, settled
from . import settings
from .monitor import EpochMonitor
from .tracking import WINDOW, forget


def run_epochs(run, state, data, tracker=None, *, passes=False, refine=None):
    """Run the epochs of a `Run` and set the attributes.

    With ``passes`` the epoch is a call of partial_fit. ``refine(state, options, seconds, n_epochs)`` goes on
    from what the epochs left, and gives the objective, or None where it did not.
    """
    model, options, targets = run.model, run.options, run.source.targets
    context = None
    if hasattr(model, "_init_callback_context"):
        context = model._init_callback_context(max_subtasks=options.max_iter + 1)
        context.call_on_fit_task_begin(estimator=model, **data)
    monitor = EpochMonitor(model, context, data, lambda _: attributes_of(state, options, targets), tracker)
    if refine is not None and model.tol:
        # what comes after them gets there sooner
        monitor.enough = WINDOW
    monitor.begin(None)
    while True:
        result = minimize_sampled_softmax(
            run.source, state, options, run.rng, run.work, first_epoch=run.n_done + 1, callback=monitor,
            max_time=model.max_time, seconds=run.seconds,
        )  # fmt: skip
        searched = hasattr(model, "learning_rate_losses_")
        if result.status != outcome.DIVERGED or not searched or run.start is None:
            break
        # what a tenth of the rows survives may be too much for all
        model.learning_rate_losses_[options.learning_rate] = np.inf
        options.learning_rate = model.learning_rate_ = options.learning_rate / 10
        if model.verbose:
            print(f"{type(model).__name__} diverged; learning_rate={options.learning_rate:g} instead")
        vars(state).update(vars(run.start()))
        if tracker is not None:
            tracker.begin()
    monitor.end()
    in_time = result.status in (outcome.CONVERGED, outcome.STOPPED) and not monitor.was_stopped
    exact = refine(state, options, monitor.seconds, result.nit) if refine is not None and in_time else None
    if tracker is not None:
        tracker.exact = exact
    seen = targets.codes if options.plan is None else np.arange(len(state.W))
    if result.status == outcome.DIVERGED or not _is_finite(state.W, seen):
        raise FloatingPointError(
            f"method={shown(model.method)} diverged in epoch {result.nit} at learning_rate="
            f"{options.learning_rate:g}. Lower it (try {options.learning_rate / 10:g}), take "
            "method='implicit', which is finite at any rate, or learning_rate='auto'; rows of X of "
            "norm 1 (sklearn.preprocessing.normalize) help all methods."
        )
    if tracker is None:
        forget(model)
    else:
        tracker.end(model, result)
    finish(state, options)
    attributes = attributes_of(state, options, targets)
    stale = "coef_" if "table_" in attributes else "table_"
    if hasattr(model, stale):  # of a fit with another hash_bits
        delattr(model, stale)
    for name in settings.SUMS:
        if hasattr(model, name):
            delattr(model, name)
    for name, value in (attributes | settings.sums_of(state)).items():
        setattr(model, name, value)
    forget_shortlist(getattr(model, "coef_", None))  # which may be the array that steps wrote to
    model._rng_state = int(run.rng.integers(2**31))
    model.n_iter_, model.alpha_ = result.nit, options.alpha
    if not passes or not hasattr(model, "prior_"):
        model.prior_ = "zeros" if state.center is None else "centroids"
    model.t_ = state.rows_seen
    if context is not None:
        context.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict, **data)
    if tracker is not None:
        tracker.warn_if_it_falls(type(model).__name__, result, stacklevel=5)


def attributes_of(state, options, targets):
    W, bias = settled(state, options)
    weights = {"table_": W.reshape(-1)} if state.shift else {"coef_": W}
    mean_labels = 1.0
    if targets.multilabel:
        mean_labels = len(targets.codes) / max(1, int(np.count_nonzero(np.diff(targets.first))))
    return {
        **weights,
        "intercept_": np.zeros(state.n_classes, dtype=W.dtype, like=W) if bias is None else bias,
        "classes_": targets.classes,
        "multilabel_": targets.multilabel,
        "_mean_labels": mean_labels,
    }


def _is_finite(W, codes):
    """Whether the weights are finite: all of a small table, of a large one some of the rows ``codes``."""
    n_rows, width = W.shape
    if W.size > MAX_SCORES and n_rows > 1:  # a hashed table is one row
        codes = np.unique(codes)
        W = W[as_like(codes[:: -(-len(codes) * width // MAX_SCORES)], W)]
    return bool(np.isfinite(W).all())
