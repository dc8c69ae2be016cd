/* What an LP-SparseMAP problem is in memory.
 *
 * A slot is one variable's position in one factor. Factors of one kind are adjacent: pairs first (all first variables,
 * then all second ones), then linear constraints, OrOut, and factors with a MAP oracle. All coordinates are those of
 * the marginals. With w = 1 / deg and x = M p, a factor minimises sum_k w_k / 2 (x_k - v_k)^2 - <c, N p>: line 8 of
 * Algorithm 1, where mu~ = x / delta. */
#ifndef SPARSEKIT_FACTOR_GRAPH_H
#define SPARSEKIT_FACTOR_GRAPH_H

#include <float.h>
#include <stdlib.h>

#include "factor_graph/factor_watch.h"
#include "shared/kernels.h"
#include "numbers.h"
#include "pair.h"

enum { FG_DENSE, FG_SEQUENCE, FG_TREE, FG_PROJECTIVE, FG_MATCHING, FG_CUSTOM };
/* a factor of which only a MAP oracle is known */
typedef struct {
    int kind, flag;         /* flag: single_root */
    sk_size slot, d;        /* its variables */
    sk_size add, n_add;     /* its additional scores */
    sk_size rows, columns;  /* of its variables: positions and tags, words and words, a table's sides */
    sk_size n_on, n_bonus;  /* entries that a structure has among them; FG_CUSTOM: all, with values */
    const sk_size *sizes, *offsets; /* FG_DENSE: of the variables, and where their indicators begin */
    sk_size buffer_size;           /* doubles that its oracle works in */
    void *object;           /* FG_CUSTOM: the Python object */
} fg_spec;

typedef struct {
    sk_size n_var, n_slot, n_add, n_pair, n_linear, n_orout, n_struct;
    int is_separate;                    /* no variable is in two factors */
    const int32_t *var;                 /* (n_slot) */
    const sk_size *var_start;           /* (n_var + 1): slots of a variable are var_slot[start .. next) */
    const int32_t *var_slot;
    const double *deg, *w;              /* (n_slot): degree of the slot's variable, and its inverse */
    const double *a, *ad;               /* (n_slot): coefficients of linear factors and of OrOut, times deg */
    const int32_t *pair_add;            /* (n_pair) */
    const sk_size *linear;              /* (n_linear + 1): slots */
    const int32_t *relation;            /* (n_linear) */
    const double *bound;                /* (n_linear) */
    const sk_size *orout;               /* (n_orout + 1): slots */
    const int32_t *negated;             /* (n_slot), for pairs and OrOut */
    sk_size n_flip;                     /* slots of negated variables of pairs */
    const int32_t *flip;
    const fg_spec *spec;                /* (n_struct) */
} fg_plan;

typedef struct fg_multipliers fg_multipliers; /* factor_multipliers.h */
typedef struct fg_flow fg_flow;               /* factor_chain.h */

/* Structures in use by a factor with an oracle, and the Cholesky factor L of K = M' W M + shift 1 1' on them. Its rows
 * are `size` apart; the first m belong to the structures. */
typedef struct {
    sk_size m, size;
    int32_t *on, *bonus;
    double *value;                      /* FG_CUSTOM: (size, d + n_add) */
    double *p, *L, *ones, *target;
    double *load, *unit, *turn;         /* L^-1 times scores, and L^-1 1; (2 size): work */
    double shift;                       /* 0 until there is a structure */
    int solved;                         /* whether the last call ended because no structure is better */
    sk_size calls;                      /* of the oracle since the solve began */
    sk_size extra;                      /* number of structures without weight, the last ones: factor_face.h */
    struct fg_span *span;               /* the Jacobian's range if the structures span less, or NULL */
    fg_multipliers *multipliers;        /* of a matching or a tree with many structures, else NULL */
    fg_flow *flow;                      /* of a sequence with many structures, else NULL */
    int by_constraints;                 /* whether the last answer is theirs */
    int refused;                        /* whether they failed in this solve */
    double spent, most;                 /* work on structures for an answer, and its limit; 0: none */
} fg_active;

typedef struct {
    double *block;                      /* all arrays up to `active` lie in it */
    double *eta, *add, *mu, *old, *h;   /* (n_var), add (n_add) */
    double *eta0, *add0, *h0;           /* LP-MAP: scores as given, mu of the last step */
    double *z, *l, *v, *x, *s;          /* (n_slot) */
    double *f, *e;                      /* (n_slot): local Jacobians f + e coef (w e)' of closed-form factors */
    double *c, *q, *n1, *n2;            /* (n_pair): scores, 1 / (d1 + d2), d x / d c */
    double *coef;                       /* (n_pair + n_linear + n_orout) */
    double *tau;                        /* (n_linear + n_orout): thresholds, for the next solve */
    double *cg;                         /* (5 n_var) */
    double *work;                       /* of the active sets and oracles */
    fg_active *active;                  /* (n_struct) */
    unsigned char *off, *off_add;       /* (n_var), (n_add): forbidden by -inf; their score is a large finite loss */
    /* results of the last solve */
    double gamma, primal, dual, residual;
    double inv;                         /* scale of the additional scores in the last answers */
    sk_size n_iter, n_newton, calls;    /* calls: of one factor's oracle at most */
    sk_size n_flows;                    /* passes in which a sequence was a flow */
    int status, warm, whole;            /* whole: Jacobians are those of whole faces: factor_face.h */
    fg_watch *watch;                    /* of the thread that works on it, or NULL */
} fg_state;

typedef struct {
    sk_size max_iter, max_flows, inner_iter; /* max_flows: of passes in which a sequence is a flow */
    double step_size, relaxation, tol_primal, tol_dual;
    int adaptive, exact, quadratic;     /* quadratic: 1 LP-SparseMAP, 0 LP-MAP (AD3) */
} fg_options;

/* Whether a status says that a limit was reached: the current point is then the answer. */
SK_INLINE int fg_is_limit(int status) { return status == FG_MAX_ITER || status == FG_MAX_TIME; }

/* out = mean over its copies of every variable; variables in no factor stay as they are */
SK_MULTI(void, fg_mean,
         (const fg_plan *g, const double *x, double *out),
         (g, x, out)) {
    for (sk_size j = 0; j < g->n_var; j++) {
        sk_size lo = g->var_start[j], hi = g->var_start[j + 1];
        double t = 0.0;
        if (lo == hi) continue;
        if (hi - lo == 2) t = x[g->var_slot[lo]] + x[g->var_slot[lo + 1]];
        else {
            const int32_t *slot = g->var_slot;
            SK_SIMD_WITH(reduction(+ : t)) for (sk_size k = lo; k < hi; k++) t += x[slot[k]];
        }
        out[j] = t / (double)(hi - lo);
    }
}

/* sum of w a b over the slots: the inner product in which local Jacobians are symmetric */
SK_MULTI(double, fg_dot,
         (const fg_plan *g, const double *a, const double *b),
         (g, a, b)) {
    double t = 0.0;
    const double *w = g->w;
    SK_SIMD_WITH(reduction(+ : t)) for (sk_size s = 0; s < g->n_slot; s++) t += w[s] * a[s] * b[s];
    return t;
}

/* u = in, a number a variable, at all copies */
SK_MULTI(void, fg_copies,
         (const fg_plan *g, const double *restrict in, double *restrict u),
         (g, in, u)) {
    const int32_t *restrict var = g->var;
    SK_SIMD for (sk_size s = 0; s < g->n_slot; s++) u[s] = in[var[s]];
}

/* r = mu - x over the slots */
SK_MULTI(void, fg_disagreement,
         (const fg_plan *g, const double *restrict mu, const double *restrict x, double *restrict r),
         (g, mu, x, r)) {
    const int32_t *restrict var = g->var;
    SK_SIMD for (sk_size s = 0; s < g->n_slot; s++) r[s] = mu[var[s]] - x[s];
}

/* norm of mu - x over the slots */
SK_MULTI(double, fg_residual,
         (const fg_plan *g, const double *mu, const double *x),
         (g, mu, x)) {
    double t = 0.0;
    const double *w = g->w;
    const int32_t *var = g->var;
    SK_SIMD_WITH(reduction(+ : t)) for (sk_size s = 0; s < g->n_slot; s++) {
        double r = mu[var[s]] - x[s];
        t += w[s] * r * r;
    }
    return sqrt(t);
}

#endif
