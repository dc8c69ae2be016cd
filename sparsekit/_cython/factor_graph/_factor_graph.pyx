"""LP-SparseMAP inference in factor graphs: plans (the graph), states (scores and solution)."""
import numpy as np

cimport cython
from cpython.ref cimport PyObject
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy


cdef int _ask_python(void *held, sk_size d, sk_size n_add, const double *u, const double *c,
                     double *parts) noexcept with gil:
    """Call the user's oracle. C code cannot raise: the oracle object stores the exception for
    `States.solve`."""
    oracle = <object> held
    cdef double[::1] out
    try:
        scores = np.asarray(<double[:d]> <double *> u).copy() if d else np.zeros(0)
        extra = np.asarray(<double[:n_add]> <double *> c).copy() if n_add else np.zeros(0)
        out = np.ascontiguousarray(oracle.ask(scores, extra), dtype=np.float64)
        if out.shape[0] != d + n_add:
            raise ValueError(f"a structure must have {d} + {n_add} parts, got {out.shape[0]}")
        memcpy(parts, &out[0], (d + n_add) * sizeof(double))
    except BaseException as error:
        oracle.errors.append(error)
        return 1
    return 0

fg_custom = _ask_python


fg_interrupted = is_interrupted


cdef class Plan:
    """A graph without its scores.

    ``arrays`` maps the names of fg_plan's arrays (factor_graph.h) to C-contiguous NumPy arrays of their
    types. ``structured`` lists the factors with an oracle as dicts of fg_spec's fields.
    """

    def __cinit__(self, Py_ssize_t n_var, Py_ssize_t n_add, dict arrays, list structured):
        cdef int32_t[::1] ints
        cdef Py_ssize_t[::1] sizes
        cdef double[::1] reals
        cdef Py_ssize_t i
        cdef fg_spec *f
        self._keep = (arrays, structured)
        self.plan.n_var, self.plan.n_add = n_var, n_add
        # an empty array has no first entry to point to: allocate one entry more
        ints = arrays["var"]
        self.plan.var = &ints[0]
        ints = arrays["var_slot"]
        self.plan.var_slot = &ints[0]
        ints = arrays["pair_add"]
        self.plan.pair_add, self.plan.n_pair = &ints[0], ints.shape[0] - 1
        ints = arrays["relation"]
        self.plan.relation, self.plan.n_linear = &ints[0], ints.shape[0] - 1
        ints = arrays["negated"]
        self.plan.negated, self.plan.n_slot = &ints[0], ints.shape[0] - 1
        ints = arrays["flip"]
        self.plan.flip, self.plan.n_flip = &ints[0], ints.shape[0] - 1
        sizes = arrays["var_start"]
        self.plan.var_start = &sizes[0]
        sizes = arrays["linear"]
        self.plan.linear = &sizes[0]
        sizes = arrays["orout"]
        self.plan.orout, self.plan.n_orout = &sizes[0], sizes.shape[0] - 1
        reals = arrays["deg"]
        self.plan.deg = &reals[0]
        self.plan.is_separate = not n_var or np.max(arrays["deg"]) <= 1.0
        reals = arrays["w"]
        self.plan.w = &reals[0]
        reals = arrays["a"]
        self.plan.a = &reals[0]
        reals = arrays["ad"]
        self.plan.ad = &reals[0]
        reals = arrays["bound"]
        self.plan.bound = &reals[0]
        self.plan.n_struct = len(structured)
        self.spec = <fg_spec *> calloc(self.plan.n_struct + 1, sizeof(fg_spec))
        if self.spec == NULL:
            raise MemoryError
        self.plan.spec = self.spec
        self.oracles = []
        for i in range(self.plan.n_struct):
            f = self.spec + i
            given = structured[i]
            f.kind, f.flag = given["kind"], given["flag"]
            f.slot, f.d, f.add, f.n_add = given["slot"], given["d"], given["add"], given["n_add"]
            f.rows, f.columns = given["rows"], given["columns"]
            f.n_on, f.n_bonus = given["n_on"], given["n_bonus"]
            if given["sizes"] is not None:
                sizes = given["sizes"]
                f.sizes = &sizes[0]
                sizes = given["offsets"]
                f.offsets = &sizes[0]
            if given["oracle"] is not None:
                f.object = <void *> <PyObject *> given["oracle"]
                self.oracles.append(given["oracle"])
            f.buffer_size = fg_oracle_buffer_size(f)

    def __dealloc__(self):
        free(self.spec)


# without no_gc_clear the garbage collector may remove the plan, which says how much there is to free
@cython.no_gc_clear
cdef class States:
    """State of ``n`` graphs of one plan: scores, answers, duals, active sets."""
    cdef fg_state *state
    cdef readonly Plan plan
    cdef readonly Py_ssize_t n

    def __cinit__(self, Plan plan, Py_ssize_t n):
        cdef Py_ssize_t i
        self.plan, self.n = plan, n
        self.state = <fg_state *> calloc(n + 1, sizeof(fg_state))
        if self.state == NULL:
            raise MemoryError
        for i in range(n):
            if not fg_allocate(&plan.plan, self.state + i):
                raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.state != NULL:
            for i in range(self.n):
                fg_free(&self.plan.plan, self.state + i)
            free(self.state)

    def set_scores(self, const double[:, ::1] eta, const double[:, ::1] add, const unsigned char[:, ::1] off,
                   const unsigned char[:, ::1] off_add):
        """Scores of the variables (n, n_var) and the additional ones (n, n_add), and which of them forbid."""
        cdef fg_plan *g = &self.plan.plan
        cdef Py_ssize_t i
        if not (eta.shape[0] == self.n == add.shape[0] and eta.shape[1] == g.n_var and add.shape[1] == g.n_add):
            raise ValueError("scores do not have the shape of the states")
        if not (off.shape[0] == self.n == off_add.shape[0] and off.shape[1] == g.n_var
                and off_add.shape[1] == g.n_add):
            raise ValueError("flags do not have the shape of the states")
        for i in range(self.n):
            if g.n_var:
                memcpy(self.state[i].off, &off[i, 0], g.n_var)
                memcpy(self.state[i].eta, &eta[i, 0], g.n_var * sizeof(double))
            if g.n_add:
                memcpy(self.state[i].off_add, &off_add[i, 0], g.n_add)
                memcpy(self.state[i].add, &add[i, 0], g.n_add * sizeof(double))

    def marginals(self):
        """mu (n, n_var)."""
        out = np.empty((self.n, self.plan.plan.n_var))
        cdef double[:, ::1] to = out
        cdef Py_ssize_t i
        if to.shape[1]:
            for i in range(self.n):
                memcpy(&to[i, 0], self.state[i].mu, to.shape[1] * sizeof(double))
        return out

    def additionals(self):
        """N p of all factors, (n, n_add)."""
        out = np.zeros((self.n, self.plan.plan.n_add))
        cdef double[:, ::1] to = out
        cdef Py_ssize_t i
        if to.shape[1]:
            for i in range(self.n):
                fg_additionals(&self.plan.plan, self.state + i, &to[i, 0])
        return out

    def copies(self, Py_ssize_t i):
        """Local solutions x of graph i, (n_slot,)."""
        return np.array([self.state[i].x[s] for s in range(self.plan.plan.n_slot)])

    def duals(self, Py_ssize_t i):
        """Multipliers l of graph i, (n_slot,)."""
        return np.array([self.state[i].l[s] for s in range(self.plan.plan.n_slot)])

    def structures(self, Py_ssize_t i, Py_ssize_t k):
        """Structures in use by factor k with an oracle in graph i: weights (m,), parts (m, d) and (m, n_add)."""
        cdef fg_active *t = self.state[i].active + k
        cdef const fg_spec *f = self.plan.spec + k
        cdef Py_ssize_t j, e, n = f.d + f.n_add, m = t.m - t.extra
        weights = np.array([t.p[j] for j in range(m)])
        parts = np.zeros((m, n))
        for j in range(m):
            if f.kind == FG_CUSTOM:
                for e in range(n):
                    parts[j, e] = t.value[j * n + e]
                continue
            for e in range(f.n_on):
                parts[j, t.on[j * f.n_on + e]] = 1.0
            for e in range(f.n_bonus):
                parts[j, f.d + t.bonus[j * f.n_bonus + e]] = 1.0
        return weights, parts[:, :f.d], parts[:, f.d:]

    def report(self):
        """Arrays (n,): status, n_iter, n_newton, primal, dual, step_size, n_fallbacks."""
        rows = [(t.status, t.n_iter, t.n_newton, t.primal, t.dual, t.gamma) for t in self.state[:self.n]]
        names = ("status", "n_iter", "n_newton", "primal", "dual", "step_size")
        kinds = (np.int64, np.int64, np.int64, np.float64, np.float64, np.float64)
        found = {name: np.array([row[i] for row in rows], dtype=kind) for i, (name, kind) in enumerate(zip(names, kinds))}
        found["n_fallbacks"] = np.array([self._count_fallbacks(i) for i in range(self.n)], dtype=np.int64)
        return found

    cdef Py_ssize_t _count_fallbacks(self, Py_ssize_t i):
        """Factors whose flow or multipliers did not converge, so that structures took over."""
        cdef Py_ssize_t k, count = 0
        for k in range(self.plan.plan.n_struct):
            count += self.state[i].active[k].refused
        return count

    def set_start(self, Py_ssize_t i, const double[::1] mu, const double[::1] l):
        """Marginals (n_var,) and multipliers (n_slot,) from which a warm solve of graph i begins."""
        cdef fg_plan *g = &self.plan.plan
        if mu.shape[0] != g.n_var or l.shape[0] != g.n_slot:
            raise ValueError("the start does not have the shape of the states")
        if g.n_var:
            memcpy(self.state[i].mu, &mu[0], g.n_var * sizeof(double))
        if g.n_slot:
            memcpy(self.state[i].l, &l[0], g.n_slot * sizeof(double))

    def set_solution(self, Py_ssize_t i, const double[::1] mu, double primal, Py_ssize_t n_iter):
        """Marginals (n_var,) of graph i that another solver found after n_iter passes and steps, no structures."""
        cdef fg_plan *g = &self.plan.plan
        cdef fg_state *t = self.state + i
        cdef Py_ssize_t s
        if mu.shape[0] != g.n_var:
            raise ValueError("the marginals do not have the shape of the states")
        for s in range(g.n_var):
            t.mu[s] = mu[s]
        for s in range(g.n_slot):
            t.x[s] = mu[g.var[s]]
        for s in range(g.n_struct):
            t.active[s].m = t.active[s].extra = 0
            t.active[s].by_constraints = 0
        t.status, t.primal, t.dual, t.n_iter = 0, primal, 0.0, n_iter

    def count(self, Py_ssize_t i, Py_ssize_t before):
        """Adds passes that were made before the last solve of graph i."""
        self.state[i].n_iter += before

    def vjp(self, double[:, ::1] to_eta, double[:, ::1] to_add, int n_threads):
        """to_eta (n, n_var) holds directions d and becomes the gradients of <d, mu>; so does to_add (n, n_add)."""
        self._differentiate(None, None, to_eta, to_add, n_threads)

    def jvp(self, const double[:, ::1] d_eta, const double[:, ::1] d_add, int n_threads):
        """How mu (n, n_var) moves with the scores."""
        out = np.empty((self.n, self.plan.plan.n_var))
        self._differentiate(d_eta, d_add, out, np.empty((self.n, self.plan.plan.n_add)), n_threads)
        return out

    cdef _differentiate(self, const double[:, ::1] d_eta, const double[:, ::1] d_add, double[:, ::1] to_eta,
                        double[:, ::1] to_add, int n_threads):
        """fg_differentiate of all graphs; raises what ended it: an oracle's exception, a signal's, or no memory."""
        cdef fg_plan *g = &self.plan.plan
        cdef bint is_vjp = d_eta is None
        cdef Py_ssize_t i
        cdef double none = 0.0
        cdef int failed = 0
        cdef fg_call call
        cdef list interrupts = []
        cdef bint fits = to_eta.shape[0] == self.n == to_add.shape[0] and to_eta.shape[1] == g.n_var \
            and to_add.shape[1] == g.n_add
        if not is_vjp:
            fits &= d_eta.shape[0] == self.n == d_add.shape[0] and d_eta.shape[1] == g.n_var \
                and d_add.shape[1] == g.n_add
        if not fits:
            raise ValueError("directions do not have the shape of the states")
        if not g.n_var:
            return
        fg_begin_call(&call, <void *> <PyObject *> interrupts, float("inf"))
        for i in prange(self.n, nogil=True, schedule="dynamic", num_threads=n_threads):
            failed += fg_differentiate(
                g, self.state + i, NULL if is_vjp else &d_eta[i, 0], &d_add[i, 0] if g.n_add and not is_vjp else &none,
                &to_eta[i, 0], &to_add[i, 0] if g.n_add else &none, &call, threadid() == 0) != 0
        if not failed:
            return
        for oracle in self.plan.oracles:
            if oracle.errors:
                raise oracle.errors[0]
        if interrupts:
            raise interrupts[0]
        raise MemoryError


def solve(list batches, dict options, bint warm, int n_threads):
    """Solve all graphs of a list of `States`; options are fg_options' fields.

    Raises what an oracle raised, or the handler of a signal (Ctrl-C): the graphs that are left then end as well.
    """
    return _solve(batches, options, warm, n_threads, -1)


def solve_one(States states, Py_ssize_t i, dict options):
    """Solve graph i of states from the start that it has; otherwise as `solve`."""
    if not 0 <= i < states.n:
        raise IndexError("there is no such graph")
    return _solve([states], options, True, 1, i)


cdef _solve(list batches, dict options, bint warm, int n_threads, Py_ssize_t only):
    """All graphs, or the one of the number ``only`` where that is not negative."""
    cdef fg_options o = options_of(options)
    cdef fg_call call
    cdef list interrupts = []
    cdef Py_ssize_t total = 0, i, k = 0
    cdef States batch
    cdef const fg_plan **plans
    cdef fg_state **states
    for batch in batches:
        total += batch.n if only < 0 else 1
        for oracle in batch.plan.oracles:
            oracle.errors.clear()
    plans = <const fg_plan **> calloc(total + 1, sizeof(void *))
    states = <fg_state **> calloc(total + 1, sizeof(void *))
    try:
        if plans == NULL or states == NULL:
            raise MemoryError
        for batch in batches:
            for i in range(batch.n) if only < 0 else range(only, only + 1):
                plans[k], states[k] = &batch.plan.plan, batch.state + i
                batch.state[i].warm = warm
                k += 1
        fg_begin_call(&call, <void *> <PyObject *> interrupts, fg_seconds() + <double> options["max_time"])
        with nogil, parallel(num_threads=n_threads):
            fg_work(plans, states, &o, total, &call, threadid() == 0)
        for i in range(total):
            if states[i].status == FG_NO_MEMORY:
                raise MemoryError
    finally:
        free(plans)
        free(states)
    for batch in batches:
        for oracle in batch.plan.oracles:
            if oracle.errors:
                raise oracle.errors[0]
    if interrupts:
        raise interrupts[0]
