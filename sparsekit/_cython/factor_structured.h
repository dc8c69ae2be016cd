/* Answers of factors with an oracle, and their Jacobians: by structures (factor_active.h), or, of kinds whose polytope
 * is known by constraints that are fewer, by multipliers of these, or as a flow, once there are many structures. */
#ifndef SPARSEKIT_FACTOR_STRUCTURED_H
#define SPARSEKIT_FACTOR_STRUCTURED_H

#include "factor_cuts.h"
#include "factor_flow.h"
#include "factor_stars.h"

/* Structures in use beyond which multipliers take over: with less the active set is as fast. Of trees that are entered
 * just once in many sets of words, which takes strong scores, it stays as fast for longer. */
static sk_size fg_few(const fg_spec *f, int refused) {
    const sk_size least = f->rows < f->columns ? f->rows : f->columns;
    return 8 + (refused ? 3 * least : least / 2);
}

/* Whether the multipliers' answer to scores v was found, in x. */
static int fg_by_constraints(const fg_spec *f, fg_active *t, const double *v, double *x, fg_watch *watch) {
    const sk_size most = t->by_constraints || t->refused ? PTRDIFF_MAX : 4 + f->rows / 10;
    if (f->kind == FG_MATCHING) return fg_potentials_solve(f, t->potentials, v, !t->by_constraints, x, watch);
    if (!fg_cuts_solve(t->cuts, v, most, watch)) return 0;
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

/* x becomes the answer to scores v (d) and c (n_add), after at most `rounds` calls of the oracle */
static int fg_structured_solve(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                               sk_size rounds, double *x, double *work, fg_watch *watch) {
    const int may = f->kind == FG_MATCHING || f->kind == FG_TREE;
    if (t->calls == 0) t->refused = 0;
    if (f->kind == FG_PROJECTIVE && t->m == 0 && !fg_use_stars(f, t, v, w, work)) return FG_NO_MEMORY;
    if (f->kind == FG_SEQUENCE) return fg_sequence_solve(f, t, v, w, c, rounds, x, work, watch);
    while (may && t->refused < 2) {
        const sk_size few = fg_few(f, t->refused);
        if (!t->by_constraints && t->m < few) {
            int status = fg_active_solve(f, t, v, w, c, rounds < few ? rounds : few, x, work, watch);
            if (status || t->solved || rounds <= few || fg_late(watch)) return status;
            rounds -= few;
        }
        if (f->kind == FG_MATCHING && t->potentials == NULL) t->potentials = fg_make_potentials(f, w);
        if (f->kind == FG_TREE && t->cuts == NULL) t->cuts = fg_make_cuts(f, w);
        if (t->potentials == NULL && t->cuts == NULL) return FG_NO_MEMORY;
        if (fg_by_constraints(f, t, v, x, watch)) {
            t->m = 0;
            t->by_constraints = t->solved = 1;
            return 0;
        }
        if (watch != NULL && watch->call->stop) return FG_INTERRUPTED;
        /* too many sets of words, or it did not come to an end (scores of very different sizes): structures */
        t->refused = f->kind == FG_TREE && !t->by_constraints ? t->refused + 1 : 2;
        t->by_constraints = 0;
        if (t->refused == 2) fg_free_constraints(t);
    }
    return fg_active_solve(f, t, v, w, c, rounds, x, work, watch);
}

/* y = J u */
static void fg_structured_jvp(const fg_spec *f, fg_active *t, const double *u, const double *w, double *y,
                              double *work) {
    if (t->by_flow && t->span == NULL && fg_flow_span(f, t, w, 0)) /* no memory: a poor direction, no wrong answer */
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
