/* Answers of factors with an oracle, and their Jacobians. Structures (factor_active.h) come first. If there are many,
 * known polytopes change to multipliers of their constraints, or to a flow. */
#ifndef SPARSEKIT_FACTOR_STRUCTURED_H
#define SPARSEKIT_FACTOR_STRUCTURED_H

#include "factor_graph/factor_cuts.h"
#include "factor_graph/factor_flow.h"
#include "factor_graph/factor_matching.h"
#include "factor_graph/factor_stars.h"

/* Number of structures from which multipliers take over. Evidence: matchings and trees of 20 to 100 rows, scores of
 * 1e-3 to 1e4. Half the number of rows, and 8, take 1.4 times as long. 0 takes up to 10 times as long for strong scores, and 4 up to 3
 * times for trees: these need few structures. */
#define FG_FEWEST 16
/* Whether the multipliers' answer to scores v was found, in x. */
static int fg_by_constraints(const fg_spec *f, fg_active *t, const double *v, double *x, fg_watch *watch) {
    if (f->kind == FG_MATCHING) return fg_potentials_solve(f, t->potentials, v, !t->by_constraints, x, watch);
    if (!fg_cuts_solve(t->cuts, v, watch)) return 0;
    memcpy(x, t->cuts->x, (size_t)f->d * sizeof(double));
    return 1;
}

static void fg_free_constraints(fg_active *t) {
    fg_free_potentials(t->potentials);
    fg_free_cuts(t->cuts);
    fg_free_flow(t->flow);
    t->potentials = NULL;
    t->cuts = NULL;
    t->flow = NULL;
}

static void fg_release_structured(fg_active *t) {
    fg_release(t);
    fg_free_constraints(t);
}

/* x becomes the answer to scores v (d) and c (n_add), after at most `rounds` calls of the oracle */
static int fg_structured_solve(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                               sk_size rounds, double *x, double *work, fg_watch *watch) {
    if (t->calls == 0) t->refused = 0;
    if (f->kind == FG_PROJECTIVE && t->m == 0 && !fg_use_stars(f, t, v, w, work)) return FG_NO_MEMORY;
    if (f->kind == FG_SEQUENCE) return fg_sequence_solve(f, t, v, w, c, rounds, x, work, watch);
    if ((f->kind == FG_MATCHING || f->kind == FG_TREE) && !t->refused) {
        if (!t->by_constraints && t->m < FG_FEWEST) {
            int status = fg_active_solve(f, t, v, w, c, rounds < FG_FEWEST ? rounds : FG_FEWEST, x, work, watch);
            if (status || t->solved || rounds <= FG_FEWEST || fg_late(watch)) return status;
            rounds -= FG_FEWEST;
        }
        if (f->kind == FG_MATCHING && t->potentials == NULL) t->potentials = fg_make_potentials(f, w);
        if (f->kind == FG_TREE && t->cuts == NULL) t->cuts = fg_make_cuts(f, w);
        if (t->potentials == NULL && t->cuts == NULL) return FG_NO_MEMORY;
        if (fg_by_constraints(f, t, v, x, watch)) {
            t->m = 0;
            t->by_constraints = t->solved = 1;
            return 0;
        }
        if (watch != NULL && fg_is_stopped(watch->call)) return FG_INTERRUPTED;
        /* it did not converge (scores of very different sizes): use structures for the rest of this solve */
        t->refused = 1;
        t->by_constraints = 0;
        fg_free_constraints(t);
    }
    return fg_active_solve(f, t, v, w, c, rounds, x, work, watch);
}

/* y = J u */
static void fg_structured_jvp(const fg_spec *f, fg_active *t, const double *u, const double *w, double *y,
                              double *work) {
    if (t->by_flow && t->span == NULL && fg_flow_span(f, t, w, 0)) /* no memory: a zero direction */
        memset(y, 0, (size_t)f->d * sizeof(double));
    else if (!t->by_constraints) fg_active_jvp(f, t, u, w, NULL, y, work);
    else if (f->kind == FG_MATCHING) fg_potentials_jvp(f, t->potentials, u, y);
    else fg_cuts_jvp(t->cuts, u, y);
}

/* The Jacobian of an answer by multipliers becomes that of the smallest face: factor_face.h. */
static int fg_constraints_complete(const fg_spec *f, fg_active *t, fg_watch *watch) {
    if (f->kind == FG_TREE) return fg_cuts_complete(t->cuts, watch);
    fg_potentials_complete(t->potentials);
    return 0;
}

#endif
