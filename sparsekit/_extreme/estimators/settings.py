"""What the parameters of ExtremeSoftmaxSGD mean for its data: checks, noise, blocks, options, a start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..._arrays import host_only, is_sparse, namespace
from ..._cython.extreme._class_blocks import BLOCK
from ..._estimator.training_data import with_host_targets
from ..._linalg.threads import count_threads
from ..._messages import numbers, shown
from ..plan import adapts, choices_of, rows_at_once, takes_centroids
from ..solver.blocks import plan_blocks
from ..solver.noise import Noise
from ..solver.shortlist import forget
from ..solver.state import SamplingOptions, SoftmaxState, grow, init_state, prepare
from .targets import check_extreme_targets

# A fit ends when the decay has brought the rate to this part of the first one.
LAST_RATE = 0.01
# The C that is the default ridge to zeros, one over its strength and the number of rows.
DEFAULT_C = 10.0
# The same of a ridge to centroids, from which rows set aside choose. By the log-loss of new rows 1 is best on
# fb15k, delicious, skip-grams and graphs, 3 to 10 on bibtex and ptb, and 30 on sector and hashed words.
CENTROIDS_C = (1.0, 3.0, 10.0, 30.0)
# Length of adaptive steps without decay: a third and three times of it are seldom better.
ADAPTIVE_RATE = 0.3
# The first length where it decays.
DECAYING_RATE = 0.6


def epochs_until_spent(options):
    """Epochs after which adaptive steps have no more to do."""
    if not options.adaptive or options.decay == 1.0:
        return np.inf
    return int(np.ceil(np.log(LAST_RATE) / np.log(options.decay)))


def ridge_of(model, adaptive, n_rows, prior=None):
    """Strength of the ridge to ``prior`` for so many rows."""
    if model.alpha is None:
        C = DEFAULT_C if prior is None else CENTROIDS_C[0]
        return 1.0 / (C * max(1.0, n_rows)) if adaptive else 0.0
    return float(model.alpha)


def prior_of(model, source, n_classes):
    """What the ridge of a fit to a `RowsOfFit` shrinks to: "centroids", or None for zeros."""
    rows = source.rows
    if rows is None:
        refuse_prior(model, "blocks of rows")
        return None
    if source.on_device:
        refuse_prior(model, "a GPU")
    if model.prior != "auto":
        return model.prior
    choices = choices_of(model, n_classes, source.on_device)
    return "centroids" if takes_centroids(choices, model.alpha, rows, n_classes) else None


def make_generator(random_state):
    """NumPy's generator for scikit-learn's random_state."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def check_data(model, X, y, sample_weight, classes, reset=True, grow=True):
    """Checked data, X in C order or CSR, and targets: classes where X is, all else in main memory."""
    data = with_host_targets(model, X, y, sample_weight, reset)
    targets = check_extreme_targets(data.y, data.weight, classes, grow)
    targets.classes = data.xp.asarray(targets.classes)
    check_settings(model, targets, classes)
    return data, targets


def check_settings(model, targets, classes):
    """ValueError where parameters do not go with each other or with the targets."""
    if classes is not None and hasattr(model, "multilabel_") and targets.multilabel != model.multilabel_:
        raise ValueError(
            f"y is {'an indicator' if targets.multilabel else 'one label a row'}, but the model was "
            f"fitted to {'an indicator' if model.multilabel_ else 'one label a row'}."
        )
    if model.method in ("auto", "implicit") and model.batch_size > 1:
        raise ValueError(
            f"batch_size={shown(model.batch_size)} is not for method {shown(model.method)}, whose steps take "
            "one row; take batch_size=1, or method 'umax', 'sgd', 'ove', 'nce' or 'is'."
        )
    if model.hash_bits is not None and model.alpha:
        raise ValueError("alpha > 0 does not go with hash_bits: classes share the entries of the table.")
    if model.prior == "centroids" and (model.alpha == 0 or model.method != "auto" or not adapts(model)):
        raise ValueError(
            f"prior={shown(model.prior)} is what the ridge of method 'auto' shrinks to: take alpha > 0 or "
            "None, and no hash_bits."
        )


def refuse_prior(model, what):
    """ValueError where ``what`` does not read all rows at once, as the centroids of a prior need."""
    if model.prior == "centroids":
        raise ValueError(
            f"prior={shown(model.prior)} needs all rows in main memory and does not go with {what}; take "
            "prior=None."
        )


def noise_of(model, counts, on_device=False):
    """The distribution of negatives, or None for the uniform one."""
    noise, choices = model.noise, choices_of(model, len(counts), on_device)
    if noise is None and choices.adaptive:
        # classes that no row has are met as well
        return Noise(0.5 * counts / counts.sum() + 0.5 / len(counts))
    if noise is None:
        noise = "frequency" if choices.method in ("nce", "is") else "uniform"
    if isinstance(noise, str):
        return None if noise == "uniform" else Noise(counts / counts.sum())
    host_only(noise=noise)
    p = numbers(noise, "noise")
    if p.shape != counts.shape:
        raise ValueError(f"noise has shape {p.shape}, but there are {len(counts)} classes.")
    if not (p > 0).all() or abs(p.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"noise must be positive and sum to 1; its smallest entry is {p.min():g}, its sum {p.sum():g}."
        )
    return Noise(p / p.sum())


def options_of(model, on_device, n_classes, counts, noise, prior=None):
    """`SamplingOptions` for rows in main memory or on a GPU, and a ridge to ``prior``."""
    choices = choices_of(model, n_classes, on_device, prior)
    return SamplingOptions(
        method=choices.method, learning_rate=np.nan, decay=choices.decay,
        max_iter=min(model.max_iter, epochs_until_spent(choices)),
        batch_size=model.batch_size, n_negatives=choices.n_negatives,
        alpha=ridge_of(model, choices.adaptive, counts.sum(), prior),
        n_threads=threads_of(model, on_device, counts, noise), shuffle=model.shuffle,
        adaptive=choices.adaptive,
    )  # fmt: skip


def options_of_pass(model, on_device, n_classes, counts, noise):
    """The same for a pass of partial_fit, without decay.

    A ridge to zeros would undo a fit with centroids, whose center a pass does not know: there it has none.
    """
    options = options_of(model, on_device, n_classes, counts, noise)
    options.max_iter, options.decay = 1, 1.0
    if model.alpha is None and getattr(model, "prior_", "zeros") == "centroids":
        options.alpha = 0.0
    return options


def threads_of(model, on_device, counts, noise):
    """Threads of a fit, or on a GPU the rows that step at once."""
    if not on_device:
        return count_threads(model.n_jobs)
    if model.n_jobs is not None and model.n_jobs > 0:
        return model.n_jobs
    n_negatives = choices_of(model, len(counts), True).n_negatives
    return rows_at_once(counts, n_negatives, noise, model.batch_size)


def plan_of(counts, noise, dtype, options, rng, in_order=False):
    """The blocks of adaptive steps, or None. With ``in_order`` classes stay in theirs, for a pass."""
    if not options.adaptive:
        return None
    return plan_blocks(counts, options.n_negatives, noise, np.dtype(dtype).itemsize, rng, in_order)


def new_state(model, n_classes, X, options, counts=None):
    state = init_state(
        n_classes, X.shape[1], X.dtype, options,
        fit_intercept=model.fit_intercept, table_bits=model.hash_bits or 0, like=_values(X),
    )  # fmt: skip
    if options.method == "nce" and model.fit_intercept and counts is not None:
        # NCE has no normaliser: scores are to be logarithms of probabilities from the start
        start = np.log(np.maximum(counts, 0.5) / counts.sum())
        state.bias[:n_classes] = np.asarray(start, like=state.bias)
    return state


# attributes of a model that adaptive steps go on from, and those of the state
SUMS = {
    "_feature_sums": "feature_sums", "_feature_rows": "feature_rows", "_class_sums": "class_sums",
    "_sum_totals": "totals",
}  # fmt: skip


def sums_of(state):
    """The attributes `SUMS` of a state whose classes are in order; none where its steps are not adaptive."""
    if state.class_sums is None:
        return {}
    # a view's memory would be that of the spare columns too
    return {
        name: getattr(state, part)[: state.n_classes].copy() if part == "class_sums" else getattr(state, part)
        for name, part in SUMS.items()
    }


def _restore_sums(model, state):
    """Go on from the sums of ``model``'s last steps, where it has some."""
    if not all(hasattr(model, name) for name in SUMS):
        return
    state.class_sums[: len(model._class_sums)] = model._class_sums
    state.feature_sums, state.feature_rows = model._feature_sums.copy(), model._feature_rows.copy()
    state.totals = model._sum_totals.copy()


def _resume_columns(model, n_classes, dtype, options):
    """`resume` where classes are columns."""
    model._check_weights()
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    K, p = coef.shape
    table, stride = coef.T, options.plan.stride
    buffer = table.base
    whole = (
        isinstance(buffer, np.ndarray)
        and buffer.ndim == 2
        and len(buffer) == p
        and buffer.shape[1] % BLOCK == 0
        and buffer.flags.c_contiguous
        and buffer.flags.writeable
        and buffer.dtype == dtype
        and buffer.ctypes.data == table.ctypes.data
        and table.strides == (buffer.strides[0], buffer.itemsize)
    )
    if not whole:
        buffer = np.zeros((p, stride), dtype=dtype)
        buffer[:, :K] = table
    bias = None
    if model.fit_intercept:
        bias = np.zeros(buffer.shape[1], dtype=dtype)
        bias[:K] = model.intercept_
    state = prepare(SoftmaxState(buffer, bias, K, rows_seen=model.t_), options)
    _restore_sums(model, state)
    state = grow(state, n_classes)
    state.W[:, K:n_classes] = 0
    options.plan = replace(options.plan, stride=len(state.class_sums))
    return state


def resume(model, n_classes, dtype, options):
    """The state that the last call left, in the dtype of its weights, for n_classes."""
    forget(getattr(model, "coef_", None))
    if options.adaptive:
        return _resume_columns(model, n_classes, dtype, options)
    model._check_weights()
    W = getattr(model, "table_", None)
    W = model.coef_ if W is None else W[None, :]
    W = W.toarray() if sp.issparse(W) else W
    xp = namespace(W=W)
    is_writeable = getattr(W.flags, "writeable", True)  # CuPy's arrays always are
    if W.dtype != dtype or not is_writeable or not W.flags.c_contiguous:
        W = xp.array(W, dtype=dtype, order="C")
    bias = xp.array(model.intercept_, dtype=dtype) if model.fit_intercept else None
    shift = 64 - model.hash_bits if model.hash_bits else 0
    state = SoftmaxState(W, bias, len(model.intercept_), shift)
    state.rows_seen = model.t_
    return prepare(grow(state, n_classes), options)


def weight_dtype(model):
    """What steps compute in: the weights' type, float32 for those in half precision."""
    dtype = (model.coef_ if model.hash_bits is None else model.table_).dtype
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _values(X):
    """An array in the memory of X."""
    return X.data if is_sparse(X) else X
