"""State of softmax with very many classes: weights, lazy scales; settings of the steps."""

from dataclasses import dataclass

import numpy as np

from ..._arrays import enlarged, full, lengthened
from ..._cython.extreme._class_blocks import BLOCK
from ..._linalg import matrix
from ..plan import Choices
from .blocks import BlockPlan, stride_of
from .centroids import BlockCenter

# their numbers in the kernels
METHODS = {"implicit": 0, "umax": 1, "ove": 2, "nce": 3, "is": 4, "sgd": 5}


@dataclass
class SamplingOptions:
    """How to step. ``learning_rate`` is that of the first epoch, ``decay`` its factor an epoch."""

    method: str = "implicit"
    learning_rate: float = 1.0
    decay: float = Choices.decay
    max_iter: int = 50
    batch_size: int = 1
    n_negatives: int = Choices.n_negatives
    alpha: float = 0.0
    plan: BlockPlan | None = None  # blocks of negatives of adaptive steps
    adaptive: bool = False  # lengths of steps from sums of squares
    n_threads: int = 1
    shuffle: bool = True  # a new order of the rows in each epoch

    @property
    def method_number(self):
        """The number of the method in the kernels."""
        return METHODS[self.method]

    @property
    def classes_of_step(self):
        """Number of classes whose weights a step reads."""
        return self.n_negatives + 1 if self.plan is None else self.plan.n_drawn * BLOCK


@dataclass
class SoftmaxState:
    """The model and what its lazy parts need; arrays as in `kernels.run_steps`.

    Of adaptive steps W is (n_features, stride) and bias (stride,), see `BlockPlan`. They have no scale, but
    sums of squared gradients: feature_sums (n_features,) and class_sums (stride,).
    feature_rows are the numbers of rows with a feature; totals are as `sk_metric` has them.
    """

    W: np.ndarray
    bias: np.ndarray | None
    n_classes: int
    shift: int = 0
    scale: np.ndarray | None = None
    feature_sums: np.ndarray | None = None
    feature_rows: np.ndarray | None = None
    class_sums: np.ndarray | None = None
    totals: np.ndarray | None = None
    center: BlockCenter | None = None  # what the ridge shrinks to; None: zeros
    steps: int = 0
    rows_seen: int = 0


def init_state(n_classes, n_features, dtype, options, *, fit_intercept=True, table_bits=0, like=None):
    """A model of zeros, like ``like``; hashed into ``2 ** table_bits`` numbers if that is not 0."""
    shape = (1, 2**table_bits) if table_bits else (n_classes, n_features)
    width = n_classes
    if options.plan is not None:
        width = options.plan.stride
        shape = (n_features, width)
    state = SoftmaxState(
        np.zeros(shape, dtype=dtype, like=like),
        np.zeros(width, dtype=dtype, like=like) if fit_intercept else None,
        n_classes,
        64 - table_bits if table_bits else 0,
    )
    return prepare(state, options)


def prepare(state, options):
    """Allocate what the options need and the state lacks."""
    W = state.W
    if options.adaptive:
        if state.feature_sums is None:
            n_features, stride = W.shape
            state.feature_sums, state.feature_rows = np.zeros(n_features), np.zeros(n_features)
            state.class_sums, state.totals = np.zeros(stride), np.zeros(4)
    elif options.alpha > 0 and state.scale is None:
        state.scale = full(state.n_classes, 1.0, like=W)
    return state


# rows whose entries determine the features' scale
_ROWS_OF_SCALE = 2000


def set_scale(state, rows):
    """Note one over the scale that adaptive steps count features in, once, from the first rows."""
    if state.totals is None or state.totals[3]:
        return
    chosen = np.arange(len(rows.y)) if rows.row_of is None else np.unique(rows.row_of)
    chosen = chosen[:: -(-len(chosen) // _ROWS_OF_SCALE)]
    if len(rows.indptr):
        data = np.concatenate([rows.data[rows.indptr[i] : rows.indptr[i + 1]] for i in chosen])
    else:
        data = rows.data.reshape(-1, rows.n_features)[chosen].reshape(-1)
    data = data[data != 0].astype(np.float64)
    largest = np.abs(data).max(initial=0.0)
    # in parts of the largest one no square overflows; below the least normal number nothing can be divided by
    # it
    tiny = np.finfo(np.float64).tiny
    state.totals[3] = 1.0 / (largest * np.sqrt(np.square(data / largest).mean())) if largest > tiny else 1.0


def grow(state, n_classes):
    """Append new classes, with weights of zero; amortised, a class costs its own weights only."""
    old = state.n_classes
    if n_classes <= old:
        return state
    state.n_classes = n_classes
    if state.class_sums is not None:
        return _grow_columns(state)
    for name in ("bias", "scale"):
        value = getattr(state, name)
        if value is not None:
            fill = 1 if name == "scale" else 0
            new = full(n_classes - old, fill, value.dtype, like=value)
            setattr(state, name, np.concatenate([value, new]))
    if not state.shift:
        state.W = lengthened(state.W, n_classes)
    return state


def _grow_columns(state):
    """`grow` where classes are columns, of which there are some to spare."""
    stride = len(state.class_sums)
    if state.n_classes <= stride:
        return state
    wide = stride_of(max(state.n_classes, 2 * stride), state.W.itemsize)
    for name in ("W", "bias", "class_sums"):
        value = getattr(state, name)
        if value is not None:
            setattr(state, name, enlarged(value, (*value.shape[:-1], wide)))
    return state


def settle(state):
    """Multiply the lazy scales into the rows of W that have one."""
    if state.scale is None:
        return
    scale = state.scale.astype(state.W.dtype)
    # in parts: a copy of the lazy ones might be as large as W
    lazy = np.flatnonzero(scale != 1.0)
    step = max(1, matrix.buffer_size(state.W) // max(state.W.shape[1], 1))
    for begin in range(0, len(lazy), step):
        some = lazy[begin : begin + step]
        state.W[some] *= scale[some, None]
    if state.bias is not None:
        state.bias *= scale
    state.scale[...] = 1.0


def settled(state, options):
    """(W, bias) with the lazy scales multiplied in, classes in order."""
    settle(state)
    return (state.W, state.bias) if options.plan is None else options.plan.to_classes(state.W, state.bias)


def finish(state, options):
    """After the last step: what `settled` returns then costs no second copy of the weights."""
    if options.plan is not None:
        state.class_sums[: state.n_classes] = state.class_sums[options.plan.place]
        options.plan = options.plan.put_in_order(state.W, state.bias)
