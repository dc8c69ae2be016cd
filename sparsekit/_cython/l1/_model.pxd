from ..shared._operators cimport QuadOperator


cdef struct model_t:
    # a model over m variables, the current point x, and workspace
    int m
    const double* x0
    const double* g0
    const double* l1
    double* x
    double* grad  # of q without its penalty, at x
    double* pg  # of q with its penalty, on the side to which the variable may move
    double* d  # direction
    double* r
    double* p
    double* hp
    double* trial
    double* step  # from x0 to trial
    int* free
    signed char* kind  # 0: at zero, 1: free, 2: may leave zero, 3: fixed, this step ends at zero
    int side  # of the largest matrix that is factorised
    double* matrix
    int n_fixed
    # limits, as `solve_model` has them
    int max_cycles, cg_max, most_holds, n_sweeps
    double forcing, cg_tol
    bint on_support
    bint one_sided  # whether variables with a penalty must not be negative
    bint hard  # whether CG failed to converge once: from then on a matrix is factorised
    # what a call did
    int n_cycles, n_first
    long n_cg, n_direct


cdef class Workspace:
    cdef model_t M
    cdef double* numbers


cdef double minimize(QuadOperator op, model_t* M) except? -1.0 nogil
