"""State of softmax with very many classes: weights, lazy scales, averages; settings of the steps."""

from dataclasses import dataclass

import numpy as np

from ..._arrays import full, is_device
from .blocks import BlockPlan, stride_of

# the numbers that the kernels know them by
METHODS = {"implicit": 0, "umax": 1, "ove": 2, "nce": 3, "is": 4, "sgd": 5}


@dataclass
class SamplingOptions:
    """How to step. ``learning_rate`` is that of the first epoch, ``decay`` its factor an epoch."""

    method: str = "implicit"
    learning_rate: float = 1.0
    decay: float = 0.9
    max_iter: int = 50
    batch_size: int = 1
    n_negatives: int = 1
    raman: bool = False
    alpha: float = 0.0
    delta: float = 1.0
    u_bound: float = np.inf
    weight_bound: float = np.inf
    average: int | None = None  # rows before the average begins; None: no average
    plan: BlockPlan | None = None  # negatives are blocks of classes; None: each is drawn by itself
    adaptive: bool = False  # lengths of steps from sums of squares; with a plan
    n_threads: int = 1
    shuffle: bool = True  # a new order of the rows in each epoch

    @property
    def method_number(self):
        """The method, as the kernels know it."""
        return METHODS[self.method]

    @property
    def average_from(self):
        """Steps before the average begins."""
        return average_begin(self)


@dataclass
class SoftmaxState:
    """The model and what its lazy parts need; arrays as in `kernels.run_steps`.

    With blocks of negatives W is (n_features, stride), and bias and scale (stride,); see `BlockPlan`.
    Adaptive steps have sums of squared gradients: feature_sums (n_features,) and class_sums (stride,),
    feature_rows, the numbers of rows with a feature, and totals, as `sk_metric` has them.
    """

    W: np.ndarray
    bias: np.ndarray | None
    n_classes: int
    shift: int = 0
    scale: np.ndarray | None = None
    square: np.ndarray | None = None
    total: np.ndarray | None = None
    total_bias: np.ndarray | None = None
    tau: np.ndarray | None = None
    last: np.ndarray | None = None
    feature_sums: np.ndarray | None = None
    feature_rows: np.ndarray | None = None
    class_sums: np.ndarray | None = None
    totals: np.ndarray | None = None
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
    bounded, W = np.isfinite(options.weight_bound), state.W
    if options.adaptive:
        if state.feature_sums is None:
            n_features, stride = W.shape
            state.feature_sums, state.feature_rows = np.zeros(n_features), np.zeros(n_features)
            state.class_sums, state.totals = np.zeros(stride), np.zeros(4)
    elif (options.alpha > 0 or bounded) and state.scale is None:
        state.scale = full(state.n_classes if options.plan is None else options.plan.stride, 1.0, like=W)
    if bounded and state.square is None:
        state.square = np.einsum("ij,ij->i", W, W, dtype=np.float64)
        if state.bias is not None:
            state.square += state.bias.astype(np.float64) ** 2
    if options.average is not None and state.total is None:
        state.total = np.zeros_like(state.W)
        state.total_bias = None if state.bias is None else np.zeros_like(state.bias)
        if state.scale is not None:
            state.tau = np.zeros(state.n_classes, like=W)
            state.last = np.zeros(state.n_classes, dtype=np.int64, like=W)
    return state


# rows whose entries tell the features' scale
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
    """Make room for new classes, with weights of zero; amortised, a class costs its own weights only."""
    old = state.n_classes
    if n_classes <= old:
        return state
    state.n_classes = n_classes
    if state.class_sums is not None:
        return _grow_columns(state)
    for name in ("bias", "scale", "square", "total_bias", "tau", "last"):
        value = getattr(state, name)
        if value is not None:
            fill = 1 if name == "scale" else 0
            new = full(n_classes - old, fill, value.dtype, like=value)
            setattr(state, name, np.concatenate([value, new]))
    if not state.shift:
        state.W = _longer(state.W, n_classes)
        state.total = None if state.total is None else _longer(state.total, n_classes)
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
            new = np.zeros((*value.shape[:-1], wide), dtype=value.dtype)
            new[..., :stride] = value
            setattr(state, name, new)
    return state


def _longer(table, n_rows):
    """``table`` with rows of zeros behind: a view of an array with room for more."""
    old, width = table.shape
    if is_device(table):
        return np.concatenate([table, np.zeros((n_rows - old, width), dtype=table.dtype, like=table)])
    room = table.base
    has_room = (
        isinstance(room, np.ndarray)
        and room.ndim == 2
        and room.shape[1] == width
        and room.dtype == table.dtype
        and len(room) >= n_rows
        and room.ctypes.data == table.ctypes.data
    )
    if not has_room:
        # memory of zeros that nobody wrote to is not used yet
        room = np.zeros((max(n_rows, 2 * old), width), dtype=table.dtype)
        room[:old] = table
    return room[:n_rows]


def settle(state, options):
    """Multiply the lazy scales into the rows of W that have one."""
    if state.scale is None:
        return
    if options.plan is not None:
        scale = state.scale.astype(state.W.dtype)
        state.W *= scale
        if state.bias is not None:
            state.bias *= scale
        state.scale[:] = 1.0
        return
    begin = average_begin(options)
    if is_device(state.W):
        return _settle_at_once(state, begin)
    for k in np.flatnonzero(state.scale != 1.0):
        scale = state.W.dtype.type(state.scale[k])
        if state.tau is not None:
            # the sum so far moves to total, and counting begins again
            tau = state.tau[k] + state.scale[k] * max(0, state.steps - max(state.last[k], begin))
            state.total[k] -= state.W.dtype.type(tau) * state.W[k]
            if state.bias is not None:
                state.total_bias[k] -= state.W.dtype.type(tau) * state.bias[k]
            state.tau[k], state.last[k] = 0.0, max(state.steps, begin)
        state.W[k] *= scale
        if state.bias is not None:
            state.bias[k] *= scale
        state.scale[k] = 1.0


def _settle_at_once(state, begin):
    """`settle` for all classes side by side, as a GPU takes them."""
    dtype, lazy = state.W.dtype, state.scale != 1.0
    if state.tau is not None:
        tau = state.tau + state.scale * np.maximum(0, state.steps - np.maximum(state.last, begin))
        tau = np.where(lazy, tau, 0.0).astype(dtype)
        state.total -= tau[:, None] * state.W
        if state.bias is not None:
            state.total_bias -= tau * state.bias
        state.tau[lazy], state.last[lazy] = 0.0, max(state.steps, begin)
    scale = state.scale.astype(dtype)
    state.W *= scale[:, None]
    if state.bias is not None:
        state.bias *= scale
    state.scale[...] = 1.0


def averaged(state, options):
    """(W, bias): the average of the iterates since it began, or the last where there is none."""
    settle(state, options)
    if options.plan is not None:
        return options.plan.to_classes(state.W, state.bias)
    begin = average_begin(options)
    n = state.steps - begin if options.average is not None else 0
    if n <= 0:
        return state.W, state.bias
    if state.tau is None:
        return _mean(state.W, state.total, n, n), (
            None if state.bias is None else _mean(state.bias, state.total_bias, n, n)
        )
    tau = state.tau + np.maximum(0, state.steps - np.maximum(state.last, begin))
    return _mean(state.W, state.total, tau[:, None], n), (
        None if state.bias is None else _mean(state.bias, state.total_bias, tau, n)
    )


def finish(state, options):
    """After the last step: what `averaged` returns then costs no second copy of the weights."""
    if options.plan is not None:
        settle(state, options)
        if state.class_sums is not None:
            state.class_sums[: state.n_classes] = state.class_sums[options.plan.place]
        options.plan = options.plan.put_in_order(state.W, state.bias, options.n_threads)


def _mean(last, total, tau, n):
    return ((tau / n) * last - total / n).astype(last.dtype)


def average_begin(options):
    return 0 if options.average is None else options.average // options.batch_size
