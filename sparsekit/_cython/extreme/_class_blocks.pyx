"""Kernels of softmax with very many classes whose negatives are blocks of neighbouring classes."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t

from ._extreme import WORK_PER_CALL
from ._softmax_rules cimport (
    const_pointer, int_pointer, make_rows, make_rule, pointer, sk_workspace, sk_rows, sk_rule, sk_table,
)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t

cdef extern from "extreme/class_blocks.h" nogil:
    int SK_BLOCK

    ctypedef struct sk_blocks:
        Py_ssize_t stride, n_blocks, n_drawn
        const double *p
        const double *keep
        const int64_t *alias

    ctypedef struct sk_metric:
        double *features
        double *rows
        double *classes
        double *totals
        double *workspace
        const int64_t *start
        const unsigned char *lane
        const void *center
        const double *own
        int n_threads

    Py_ssize_t sk_draw_blocks(const sk_blocks*, uint64_t*, int64_t*, double*, int64_t*)
    ctypedef struct sk_types:
        int is_double, is_long

    Py_ssize_t sk_block_steps(sk_types, const sk_table*, const sk_rule*, const sk_blocks*, sk_metric, const sk_rows*,
                              const int64_t*, const Py_ssize_t*, sk_workspace, uint64_t*)

BLOCK = SK_BLOCK


# copies numbers and addresses, in which nothing can be raised
cdef sk_blocks _blocks(Py_ssize_t stride, Py_ssize_t n_blocks, Py_ssize_t n_drawn, const double[::1] p,
                       const double[::1] keep, const int64_t[::1] alias) noexcept:
    cdef sk_blocks B
    B.stride = stride
    B.n_blocks = n_blocks
    B.n_drawn = n_drawn
    B.p = const_pointer(p)
    B.keep = const_pointer(keep)
    B.alias = int_pointer(alias)
    return B


cdef inline sk_workspace _workspace(int64_t* integers, double* doubles, Py_ssize_t most) noexcept nogil:
    cdef sk_workspace workspace
    cdef Py_ssize_t m = most * SK_BLOCK + 1
    workspace.k = NULL
    workspace.f = doubles
    workspace.g = doubles + m
    workspace.r = doubles + 2 * m
    workspace.rho = doubles + 3 * m
    workspace.q = NULL
    workspace.count = NULL
    workspace.s = workspace.eta = NULL
    workspace.blocks = integers
    workspace.slot = integers + 2 * most
    workspace.weights = doubles + 4 * m
    return workspace


cdef inline sk_metric _metric_of(sk_metric shared, Py_ssize_t n_features, Py_ssize_t n_classes, Py_ssize_t n_buffer,
                                 Py_ssize_t part) noexcept nogil:
    # the part of a thread
    shared.features += n_features * part
    shared.rows += n_features * part
    shared.classes += n_classes * part
    shared.totals += 4 * part
    shared.workspace += n_buffer * part
    return shared


def workspace_sizes(options):
    """Numbers of integers and of doubles that a thread of `run_steps` works in."""
    cdef Py_ssize_t n_drawn = options.plan.n_drawn, n = n_drawn * SK_BLOCK + 1
    return 2 * n_drawn + options.plan.n_blocks, 4 * n + 2 * n_drawn


def run_steps(const real[::1] data, const index[::1] indices, const index[::1] indptr, real[:, ::1] W, rows, state,
              work, options, double eta, Py_ssize_t begin, Py_ssize_t end):
    """Adaptive steps of length ``eta`` over work.examples[begin : end], by threads without locks.

    Arguments and what is returned are those of `_extreme.run_steps`, but labels are work.columns. The method is
    "is", the softmax over the label and the weighted negatives. Written: the model W (n_features, stride) and
    bias (stride,). Class k is column k. stride is a multiple of `BLOCK` with n_blocks * BLOCK <= stride.

    A step takes n_drawn blocks of options.plan. If these are not all, they are drawn by the probabilities of
    work.noise (n_blocks,) and their alias table.

    Step sizes are ``eta`` times those that follow from sums of squares, which are written: feature_sums
    (n_features,), feature_rows (n_features,), class_sums (stride,) and totals (4,). work.rows has 2 n_features
    numbers a thread.
    """
    cdef const int64_t[::1] order = work.examples, y = work.columns, alias = None
    cdef const double[::1] p = None, keep = None
    cdef double[::1] metric_buffer = work.rows
    cdef double[:, ::1] own_features, own_rows, own_classes, own_totals
    cdef Py_ssize_t n_sums = W.shape[1]
    cdef sk_metric shared
    cdef Py_ssize_t buffer_size = metric_buffer.shape[0] // options.n_threads
    cdef real[::1] bias = state.bias
    cdef int64_t[:, ::1] integers = work.integers
    cdef double[:, ::1] doubles = work.doubles
    cdef uint64_t[::1] states = work.states
    cdef Py_ssize_t width = rows.n_features, n_classes = state.n_classes
    cdef Py_ssize_t n_blocks = options.plan.n_blocks, n_drawn = options.plan.n_drawn
    cdef int n_threads = options.n_threads
    if work.noise is not None:
        p, keep, alias = work.noise.p, work.noise.keep, work.noise.alias
    cdef sk_table T
    cdef Py_ssize_t n = end - begin, part, wrong = -1
    cdef Py_ssize_t parts = max(1, min(<Py_ssize_t>n_threads, n))
    cdef Py_ssize_t[::1] results
    cdef const void* col = NULL
    cdef const void* start = NULL
    cdef const void* x = NULL
    cdef sk_types types
    types.is_double, types.is_long = real is double, index is int64_t
    if n <= 0:
        return -1
    if indptr.shape[0]:
        start = &indptr[0]
        col = &indices[0] if indices.shape[0] else start  # rows of zeros: never read
    if data.shape[0]:
        x = &data[0]
    cdef sk_rows R = make_rows(rows, x, col, start, y, None)
    T.n_classes = n_classes
    T.n_features = width
    T.shift = 0
    T.W = &W[0, 0] if W.shape[0] else NULL
    T.bias = NULL if bias is None else &bias[0]
    T.scale = NULL
    T.beta = NULL
    cdef sk_blocks B = _blocks(W.shape[1], n_blocks, n_drawn, p, keep, alias)
    cdef sk_rule rule = make_rule(options.method_number, n_drawn * SK_BLOCK, 1, eta, options.alpha, n_classes, None,
                                  None, None, None)
    if n_drawn == n_blocks:
        # all threads would write to the same weights in every step, and invalidate each other's caches
        parts = 1
    shared.n_threads = <int>parts
    shared.start = NULL
    shared.lane = NULL
    shared.center = NULL
    shared.own = NULL
    cdef const int64_t[::1] center_start
    cdef const unsigned char[::1] lane
    cdef const real[::1] center
    if state.center is not None:
        center = state.center.values
        shared.own = const_pointer(state.center.own)
        if center.shape[0]:
            shared.center = &center[0]
        if center.shape[0] and state.center.start is not None:
            center_start, lane = state.center.start, state.center.lane
            shared.start, shared.lane = &center_start[0], &lane[0]
    # Each thread has its own sums, as if all threads had added a row like its own. A lost addition to shared
    # sums would leave a step without a limit.
    sums = [state.feature_sums, state.feature_rows, state.class_sums, state.totals]
    copies = [np.tile(one, (parts, 1)) for one in sums]
    own_features, own_rows, own_classes, own_totals = copies
    shared.features, shared.rows = &own_features[0, 0], &own_rows[0, 0]
    shared.classes, shared.totals = &own_classes[0, 0], &own_totals[0, 0]
    shared.workspace = pointer(metric_buffer)
    results = np.full(parts, -1, dtype=np.intp)
    cdef Py_ssize_t[:, ::1] ranges = np.array([[begin + n * part // parts, begin + n * (part + 1) // parts]
                                               for part in range(parts)], dtype=np.intp)
    for part in prange(parts, nogil=True, num_threads=n_threads, schedule='static', chunksize=1):
        # structs as values: Cython shares one whose members a thread sets
        results[part] = sk_block_steps(
            types, &T, &rule, &B, _metric_of(shared, width, n_sums, buffer_size, part), &R, &order[0], &ranges[part, 0],
            _workspace(&integers[part, 0], &doubles[part, 0], n_drawn), &states[part])
    for part in range(parts):
        if results[part] >= 0:
            wrong = results[part]
    for one, copy in zip(sums, copies):
        one[:] = copy.mean(axis=0)
    return wrong


def draw_blocks(Py_ssize_t n_blocks, Py_ssize_t n_drawn, uint64_t[::1] state, const double[::1] p=None,
                const double[::1] keep=None, const int64_t[::1] alias=None):
    """Blocks of one step as `run_steps` draws them and one over their expected numbers; moves state (1,)."""
    b, w = np.zeros(n_drawn, dtype=np.int64), np.zeros(n_drawn)
    cdef int64_t[::1] b_ = b
    cdef int64_t[::1] slot = np.zeros(n_blocks, dtype=np.int64)
    cdef double[::1] w_ = w
    cdef sk_blocks B = _blocks(n_blocks * SK_BLOCK, n_blocks, n_drawn, p, keep, alias)
    n = sk_draw_blocks(&B, &state[0], &b_[0], &w_[0], &slot[0])
    return b[:n], w[:n]
