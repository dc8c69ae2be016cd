"""Kernels of softmax with very many classes: stochastic steps, their parts for the tests, hashed scores."""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t

from ._softmax_rules cimport (
    const_pointer, int_pointer, make_rows, make_rule, pointer, sk_workspace, sk_rows, sk_rule, sk_table,
)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t

cdef extern from "extreme/extreme_steps.h" nogil:
    int SK_WINDOW

    Py_ssize_t sk_run(int, int, const sk_table*, const sk_rule*, const sk_rows*, const int64_t*, Py_ssize_t, Py_ssize_t,
                      sk_workspace, uint64_t*)
    double sk_implicit_one(double, double, double, double, double, double*)
    void sk_implicit_rows(Py_ssize_t, const double*, const double*, const double*, double*, double*)
    double sk_implicit_many(Py_ssize_t, double*, const double*, const double*, double*, double, double, double,
                            double, double*)
    Py_ssize_t sk_draw(const sk_rule*, Py_ssize_t, int64_t, uint64_t*, int64_t*, double*)
    uint64_t sk_class_key(int64_t)
    uint64_t sk_hash(uint64_t, uint64_t)


# Multiply-adds after which a call of a kernel ends, to hear KeyboardInterrupt: about a tenth of a second.
WORK_PER_CALL = 2**26


def workspace_sizes(options):
    """Numbers of integers and of doubles that a thread of `run_steps` works in."""
    cdef Py_ssize_t n_negatives = options.n_negatives, rows = 2 * max(options.batch_size, SK_WINDOW)
    return rows * (n_negatives + 2), rows * (3 * n_negatives + 5) + 4 * (n_negatives + 4)


cdef sk_workspace _workspace(int64_t* a, double* d, Py_ssize_t m, Py_ssize_t B) noexcept nogil:
    cdef sk_workspace workspace
    cdef Py_ssize_t rows = 2 * max(B, <Py_ssize_t>SK_WINDOW)
    workspace.k = a
    workspace.count = <Py_ssize_t*>(a + (m + 1) * rows)
    workspace.f = d
    workspace.g = d + (m + 1) * rows
    workspace.r = d + 2 * (m + 1) * rows
    workspace.s = d + 3 * (m + 1) * rows
    workspace.eta = workspace.s + rows
    workspace.rho = workspace.eta + rows
    workspace.q = workspace.rho + m + 1
    workspace.blocks = workspace.slot = NULL
    workspace.weights = NULL
    return workspace


def run_steps(const real[::1] data, const index[::1] indices, const index[::1] indptr, real[:, ::1] W, rows, state,
              work, options, double eta, Py_ssize_t begin, Py_ssize_t end):
    """Steps of length ``eta`` over the examples work.examples[begin : end], by options.n_threads without locks.

    Rows: CSR data, indices, indptr; or C-ordered dense data (n * rows.n_features,) with indices and indptr of
    size 0. Example e is row ``rows.row_of[e]`` (None: e), label ``rows.y[e]``, ``rows.weight[e]`` (None: 1) and
    ``work.u[e]`` (NaN: not seen yet; None for methods without u).

    Written: u, and the model in ``state``, a `SoftmaxState`: W (n_classes, n_features), or (1, 2 ** (64 -
    shift)) hashed, bias (n_classes,), scale (n_classes,) or None. Workspace: work.integers and work.doubles
    (n_threads, see `workspace_sizes`). Also written: work.states (n_threads,), the states of the generators, not
    0. ``options`` are `SamplingOptions`; work.beta (n_classes,) belongs to the ridge, work.noise has a
    distribution of negatives with its logarithms and alias table, or is None.

    Returns -1, or the index in the examples of the first step that was not finite.
    """
    cdef sk_table T
    cdef const int64_t[::1] order = work.examples
    cdef const int64_t[::1] y = rows.y, alias = None
    cdef const double[::1] beta = work.beta, noise = None, log_noise = None, keep = None
    cdef double[::1] u = work.u, scale = state.scale
    cdef real[::1] bias = state.bias
    cdef int64_t[:, ::1] integers = work.integers
    cdef double[:, ::1] doubles = work.doubles
    cdef uint64_t[::1] states = work.states
    cdef Py_ssize_t n_negatives = options.n_negatives, batch_size = options.batch_size, width = rows.n_features
    cdef Py_ssize_t n_classes = state.n_classes
    cdef int n_threads = options.n_threads
    if work.noise is not None:
        noise, log_noise, keep, alias = work.noise.p, work.noise.log, work.noise.keep, work.noise.alias
    cdef Py_ssize_t n = end - begin, part, wrong = -1, batches
    cdef Py_ssize_t parts = max(1, min(<Py_ssize_t>n_threads, n // batch_size))
    cdef Py_ssize_t[::1] results = np.full(parts, -1, dtype=np.intp)
    cdef const void* col = NULL
    cdef const void* start = NULL
    cdef const void* x = NULL
    cdef int is_double = real is double, is_long = index is int64_t
    if n <= 0:
        return -1
    if indptr.shape[0]:
        start = &indptr[0]
        col = &indices[0] if indices.shape[0] else start  # rows of zeros: never read
    if data.shape[0]:
        x = &data[0]
    cdef sk_rows R = make_rows(rows, x, col, start, y, u)
    T.n_classes = n_classes
    T.n_features = width
    T.shift = state.shift
    T.W = &W[0, 0] if W.shape[0] and W.shape[1] else NULL
    T.bias = NULL if bias is None else &bias[0]
    T.scale = pointer(scale)
    T.beta = const_pointer(beta)
    cdef sk_rule rule = make_rule(options.method_number, n_negatives, batch_size, eta, options.alpha, n_classes, noise,
                                  log_noise, keep, alias)
    batches = (n + batch_size - 1) // batch_size
    # threads take whole batches
    cdef int64_t[::1] bounds = np.array([min(n, batch_size * ((batches * part) // parts)) for part in range(parts + 1)])
    for part in prange(parts, nogil=True, num_threads=n_threads, schedule='static', chunksize=1):
        results[part] = sk_run(
            is_double, is_long, &T, &rule, &R, &order[0], begin + bounds[part], begin + bounds[part + 1],
            _workspace(&integers[part, 0], &doubles[part, 0], n_negatives, batch_size), &states[part])
    for part in range(parts):
        if results[part] >= 0:
            wrong = results[part]
    return wrong


def implicit_one(double z, double log_r, double eta, double sigma, double u_old):
    """(b, u) of the implicit step with one negative; see implicit.h."""
    cdef double u = 0.0
    cdef double b = sk_implicit_one(z, log_r, eta, sigma, u_old, &u)
    return b, u


def implicit_rows(const double[::1] z, const double[::1] log_r, const double[::1] eta, double[::1] sigma,
                  double[::1] u):
    """The same for at most four rows (n,) side by side: sigma becomes b, u the new u."""
    sk_implicit_rows(z.shape[0], &z[0], &log_r[0], &eta[0], &sigma[0], &u[0])


def implicit_many(double[::1] z, const double[::1] r, const double[::1] rho, double eta, double s, double rho_y,
                  double u_old):
    """(c, u) of the implicit step with negatives of scores z (m,), which b overwrites; see implicit.h."""
    cdef double u = 0.0, c
    cdef double[::1] q = np.empty(3 * (z.shape[0] + 3))
    c = sk_implicit_many(z.shape[0], &z[0], &r[0], &rho[0], &q[0], eta, s, rho_y, u_old, &u)
    return c, u


def draw(int method, Py_ssize_t n_classes, int64_t y, Py_ssize_t n_negatives, uint64_t[::1] state,
         const double[::1] noise=None, const double[::1] keep=None, const int64_t[::1] alias=None):
    """Negatives of label y as `run_steps` draws them: classes and inverse probabilities; moves state (1,)."""
    k = np.zeros(n_negatives + 1, dtype=np.int64)
    r = np.zeros(n_negatives + 1)
    cdef int64_t[::1] k_ = k
    cdef double[::1] r_ = r
    cdef sk_rule rule = make_rule(method, n_negatives, 1, 1.0, 0.0, n_classes, noise, None, keep, alias)
    n = sk_draw(&rule, n_classes, y, &state[0], &k_[0], &r_[0])
    return k[1 : n + 1], r[1 : n + 1]


def alias_table(const double[::1] p, double[::1] keep, int64_t[::1] alias):
    """Walker's alias table (Vose, 1991) of probabilities p (n,) into keep (n,) and alias (n,)."""
    cdef Py_ssize_t n = p.shape[0], i, small = 0, large = 0, s, g
    cdef int64_t[::1] low = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] high = np.empty(n, dtype=np.int64)
    for i in range(n):
        keep[i] = p[i] * n
        alias[i] = i
        if keep[i] < 1.0:
            low[small] = i
            small += 1
        else:
            high[large] = i
            large += 1
    while small and large:
        small -= 1
        s = low[small]
        g = high[large - 1]
        alias[s] = g
        keep[g] -= 1.0 - keep[s]
        if keep[g] < 1.0:
            large -= 1
            low[small] = g
            small += 1
    # the remaining entries differ from 1 by rounding only
    for i in range(small):
        keep[low[i]] = 1.0
    for i in range(large):
        keep[high[i]] = 1.0


def hashed_scores(const real[::1] data, const index[::1] indices, const index[::1] indptr, Py_ssize_t width,
                  Py_ssize_t lo, Py_ssize_t hi, const real[::1] W, int shift, const int64_t[::1] classes,
                  real[:, ::1] out, int n_threads):
    """out (hi - lo, n) = scores of rows lo .. hi for the n classes, from a hashed table W; rows as in run_steps."""
    cdef Py_ssize_t i, j, l, begin, stop
    cdef uint64_t key, h
    cdef real total
    cdef bint sparse = indptr.shape[0] > 0
    for i in prange(hi - lo, nogil=True, num_threads=n_threads, schedule='static'):
        begin = indptr[lo + i] if sparse else (lo + i) * width
        stop = indptr[lo + i + 1] if sparse else (lo + i + 1) * width
        for j in range(classes.shape[0]):
            key = sk_class_key(classes[j])
            total = 0
            for l in range(begin, stop):
                h = sk_hash(key, <uint64_t>(indices[l] if sparse else l - begin))
                total = total + (data[l] if (h >> (shift - 1)) & 1 else -data[l]) * W[h >> shift]
            out[i, j] = total
