"""What the kernels' C headers declare: a graph's plan and state, and what works on them."""
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t


cdef extern from "factor_graph/factor_backward.h" nogil:
    ctypedef Py_ssize_t sk_size
    ctypedef struct fg_spec:
        int kind, flag
        sk_size slot, d, add, n_add, rows, columns, n_on, n_bonus, buffer_size
        const sk_size *sizes
        const sk_size *offsets
        void *object
    ctypedef struct fg_plan:
        sk_size n_var, n_slot, n_add, n_pair, n_linear, n_orout, n_struct
        int is_separate
        const int32_t *var
        const sk_size *var_start
        const int32_t *var_slot
        const double *deg
        const double *w
        const double *a
        const double *ad
        const int32_t *pair_add
        const sk_size *linear
        const int32_t *relation
        const double *bound
        const sk_size *orout
        const int32_t *negated
        sk_size n_flip
        const int32_t *flip
        const fg_spec *spec
    ctypedef struct fg_active:
        sk_size m, size, extra
        int by_constraints, refused
        int32_t *on
        int32_t *bonus
        double *value
        double *p
    ctypedef struct fg_state:
        double *eta
        double *add
        double *mu
        double *x
        double *l
        fg_active *active
        unsigned char *off
        unsigned char *off_add
        double gamma, primal, dual, residual
        sk_size n_iter, n_newton
        int status, warm
    ctypedef struct fg_options:
        sk_size max_iter, max_flows, inner_iter
        double step_size, relaxation, tol_primal, tol_dual
        int adaptive, exact, quadratic
    ctypedef struct fg_call:
        pass
    ctypedef struct fg_watch:
        fg_call *call
        int is_caller
    int FG_CUSTOM, FG_NO_MEMORY
    double fg_seconds()
    int (*fg_interrupted)(void *)
    void fg_begin_call(fg_call *, void *, double)
    int (*fg_custom)(void *, sk_size, sk_size, const double *, const double *, double *)
    sk_size fg_oracle_buffer_size(const fg_spec *)
    bint fg_allocate(const fg_plan *, fg_state *)
    void fg_free(const fg_plan *, fg_state *)
    void fg_work(const fg_plan **, fg_state **, const fg_options *, sk_size, fg_call *, bint)
    int fg_differentiate(const fg_plan *, fg_state *, const double *, const double *, double *, double *, fg_call *,
                         bint)
    void fg_additionals(const fg_plan *, fg_state *, double *)
    int fg_stopped(fg_watch *, sk_size)


cdef class Plan:
    cdef fg_plan plan
    cdef fg_spec *spec
    cdef object _keep
    cdef readonly list oracles


cdef inline int is_interrupted(void *held) noexcept with gil:
    """Whether a signal's handler has raised, mostly KeyboardInterrupt: stored until the end of the call."""
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        (<list> <object> <PyObject *> held).append(error)
        return 1
    return 0


cdef inline fg_options options_of(dict options):
    """The options of a solve, by the names of the struct's fields."""
    cdef fg_options o
    o.max_iter, o.inner_iter = options["max_iter"], options["inner_iter"]
    o.max_flows = options.get("max_flows", o.max_iter)
    o.step_size, o.relaxation = options["step_size"], options["relaxation"]
    o.tol_primal, o.tol_dual = options["tol_primal"], options["tol_dual"]
    o.adaptive, o.exact, o.quadratic = options["adaptive"], options["exact"], options["quadratic"]
    return o
