/* Numbers that C, CUDA and Python have to agree on. */
#ifndef SPARSEKIT_NUMBERS_H
#define SPARSEKIT_NUMBERS_H

/* of softmax with very many classes, in the order of METHODS in _extreme/solver/state.py */
enum { SK_IMPLICIT, SK_UMAX, SK_OVE, SK_NCE, SK_IS, SK_SGD };
/* a lazy scale below this is multiplied into its weights */
#define SK_RESCALE 1e-12
/* U-max raises u where it is this far below what the sampled classes show (delta of Algorithm 1) */
#define SK_UMAX_DELTA 1.0

/* of the linear constraints of factor graphs */
enum { FG_AT_MOST = -1, FG_EQUAL = 0, FG_AT_LEAST = 1 };
/* how a solve of a factor graph ended: the first five as in _solver/outcome.py */
enum {
    FG_CONVERGED = 0, FG_MAX_ITER = 1, FG_MAX_TIME = 2, FG_NO_PROGRESS = 4, FG_INFEASIBLE = 10, FG_NO_MEMORY = 100,
    FG_ORACLE_FAILED, FG_INTERRUPTED
};

#endif
