"""Inference over labels with pair scores, for many rows: marginals, and sums over the rows for the pairs."""
import numpy as np

from cpython.ref cimport PyObject
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, malloc

from ._factor_graph cimport (
    FG_NO_MEMORY, Plan, fg_begin_call, fg_call, fg_interrupted, fg_options, fg_plan, fg_stopped, fg_watch, is_interrupted,
    options_of, sk_size,
)

cdef extern from "factor_graph/label_graph.h" nogil:
    ctypedef struct fg_labels:
        sk_size n_labels, n_pairs
        const sk_size *start
        const int32_t *other
        const int32_t *pair
        const double *plus
        const double *minus
        const double *gain
        const double *loss
        const int32_t *alone
        const int32_t *may_fall
        const int32_t *may_rise
        const fg_plan *factors
    int fg_label_marginals(const fg_labels *, const double *, const fg_options *, double *, double *, int32_t *,
                           sk_size *)


fg_interrupted = is_interrupted


cdef class LabelGraph:
    """Pairs of labels, and a plan of factors over all labels.

    ``arrays`` are those of fg_labels (label_graph.h), one entry longer than needed.
    """
    cdef fg_labels graph
    cdef object _keep

    def __cinit__(self, Plan factors, Py_ssize_t n_pairs, dict arrays):
        cdef const Py_ssize_t[::1] sizes
        cdef const int32_t[::1] ints
        self._keep = factors, arrays
        self.graph.factors, self.graph.n_labels, self.graph.n_pairs = &factors.plan, factors.plan.n_var, n_pairs
        sizes = arrays["start"]
        self.graph.start = &sizes[0]
        ints = arrays["other"]
        self.graph.other = &ints[0]
        ints = arrays["pair"]
        self.graph.pair = &ints[0]
        ints = arrays["alone"]
        self.graph.alone = &ints[0]
        ints = arrays["may_fall"]
        self.graph.may_fall = &ints[0]
        ints = arrays["may_rise"]
        self.graph.may_rise = &ints[0]

    def marginals(self, const double[:, ::1] eta, const Py_ssize_t[::1] start, const int32_t[::1] other,
                  const int32_t[::1] pair, const double[::1] plus, const double[::1] minus,
                  const double[::1] gain, const double[::1] loss, dict options, double[:, ::1] mu, int n_threads):
        """Write mu (n, K) for scores eta (n, K) and pair scores plus - minus (n_pairs,). gain and loss (K,)
        are the sums of plus and minus over each label's pairs. start, other and pair describe the graph, or
        its part with non-zero scores. All arrays have at least one entry. Returns statuses (n,) and
        passes."""
        cdef Py_ssize_t n = eta.shape[0], K = self.graph.n_labels, i
        cdef fg_labels g = self.graph
        cdef fg_options o = options_of(options)
        cdef double *buffer
        cdef int32_t *queue
        cdef sk_size took
        cdef fg_call call
        cdef fg_watch *watch
        cdef list interrupts = []
        if start.shape[0] != K + 1 or other.shape[0] < start[K] or pair.shape[0] < start[K]:
            raise ValueError("pairs of labels do not fit together")
        if eta.shape[1] != K or mu.shape[0] != n or mu.shape[1] != K or gain.shape[0] < K or loss.shape[0] < K \
                or plus.shape[0] < g.n_pairs or minus.shape[0] < g.n_pairs:
            raise ValueError("arrays do not have the shapes that the labels ask for")
        g.start, g.other, g.pair = &start[0], &other[0], &pair[0]
        g.plus, g.minus, g.gain, g.loss = &plus[0], &minus[0], &gain[0], &loss[0]
        statuses, passes = np.full(n, FG_NO_MEMORY, dtype=np.int32), np.zeros(n, dtype=np.intp)
        cdef int32_t[::1] status = statuses
        cdef Py_ssize_t[::1] taken = passes
        if not n or not K:
            statuses[:] = 0
            return statuses, passes
        fg_begin_call(&call, <void *> <PyObject *> interrupts, float("inf"))
        with nogil, parallel(num_threads=n_threads):
            watch = <fg_watch *> calloc(1, sizeof(fg_watch))
            if watch != NULL:
                watch.call, watch.is_caller = &call, threadid() == 0
            buffer = <double *> malloc(4 * K * sizeof(double))
            queue = <int32_t *> malloc(2 * K * sizeof(int32_t))
            # every thread enters the loop: it ends only after all have
            for i in prange(n, schedule="dynamic", chunksize=8):
                if buffer != NULL and queue != NULL and watch != NULL and not fg_stopped(watch, 100 * K):
                    status[i] = fg_label_marginals(&g, &eta[i, 0], &o, &mu[i, 0], buffer, queue, &taken[i])
            free(buffer)
            free(queue)
            free(watch)
        if interrupts:
            raise interrupts[0]
        if (statuses == FG_NO_MEMORY).any():
            raise MemoryError
        return statuses, passes

    def pair_sums(self, const double[:, ::1] mu, const double[::1] weight, double[::1] high, double[::1] low):
        """high, low (n_pairs,) += sums over the rows of weight times min(mu_j, mu_k), and max(0, mu_j + mu_k - 1)."""
        cdef Py_ssize_t i, j, k, e, K = self.graph.n_labels
        cdef double a, b, w
        cdef const double *row
        if mu.shape[1] != K or weight.shape[0] != mu.shape[0] or high.shape[0] < self.graph.n_pairs \
                or low.shape[0] < self.graph.n_pairs:
            raise ValueError("arrays do not have the shapes that the labels ask for")
        if not K:
            return
        with nogil:
            for i in range(mu.shape[0]):
                row, w = &mu[i, 0], weight[i]
                for j in range(K):
                    a = row[j]
                    if a == 0.0:
                        continue
                    for e in range(self.graph.start[j], self.graph.start[j + 1]):
                        k = self.graph.other[e]
                        b = row[k]
                        if k < j or b == 0.0:
                            continue
                        high[self.graph.pair[e]] += w * (a if a < b else b)
                        if a + b > 1.0:
                            low[self.graph.pair[e]] += w * (a + b - 1.0)
