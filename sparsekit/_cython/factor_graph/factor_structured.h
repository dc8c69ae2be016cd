/* Answers of factors with an oracle, and their Jacobians. Structures (factor_active.h) come first. If there are many,
 * known polytopes change to multipliers of their constraints, or to a flow. */
#ifndef SPARSEKIT_FACTOR_STRUCTURED_H
#define SPARSEKIT_FACTOR_STRUCTURED_H

#include "factor_graph/factor_blocks.h"
#include "factor_graph/factor_flow.h"
#include "factor_graph/factor_stars.h"

/* Number of structures from which multipliers take over. Evidence: matchings and trees of 20 to 100 rows, scores of
 * 1e-3 to 1e4. Half the number of rows, and 8, take 1.4 times as long. 0 takes up to 10 times as long for strong
 * scores, and 4 up to 3 times for trees: these need few structures. */
#define FG_FEWEST 16

static void fg_free_constraints(fg_active *t) {
    fg_free_multipliers(t->multipliers);
    fg_free_flow(t->flow);
    t->multipliers = NULL;
    t->flow = NULL;
}

static void fg_release_structured(fg_active *t) {
    fg_release(t);
    fg_free_constraints(t);
}

/* Whether a factor's constraints are known, and have not failed in this solve. */
static int fg_has_constraints(const fg_spec *f, const fg_active *t) {
    if (t->refused) return 0;
    return f->kind == FG_MATCHING || f->kind == FG_TREE || (f->kind == FG_SEQUENCE && f->columns > 1);
}

/* The structures' answer to scores v and c; *enough: whether it is the answer of this call, as it is if it is optimal.
 * Structures are given up after FG_FEWEST calls of the oracle, those of sequences after some work. */
static int fg_by_structures(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                            sk_size rounds, double *x, double *work, fg_watch *watch, int *enough) {
    const int is_sequence = f->kind == FG_SEQUENCE;
    int status;
    t->most = is_sequence ? fg_flow_work(f) : 0.0;
    t->spent = 0.0;
    status = fg_active_solve(f, t, v, w, c, is_sequence || rounds < FG_FEWEST ? rounds : FG_FEWEST, x, work, watch);
    *enough = t->solved || fg_late(watch) || (is_sequence ? t->spent <= t->most : rounds <= FG_FEWEST);
    t->most = 0.0;
    return status;
}

/* Whether the multipliers or the flow answer scores v and c, in x; -1: no memory. */
static int fg_by_constraints(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                             double *x, fg_watch *watch) {
    if (f->kind == FG_SEQUENCE) {
        if (t->flow == NULL && (t->flow = fg_make_flow(f)) == NULL) return -1;
        return fg_flow_answer(f, t, v, w, c, 1, x, watch);
    }
    if (t->multipliers == NULL && (t->multipliers = fg_make_multipliers(f, w)) == NULL) return -1;
    return fg_solve_multipliers(f, t->multipliers, v, !t->by_constraints, x, watch);
}

/* x becomes the answer to scores v (d) and c (n_add), after at most `rounds` calls of the oracle */
static int fg_structured_solve(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                               sk_size rounds, double *x, double *work, fg_watch *watch) {
    const int is_first = t->calls == 0, is_sequence = f->kind == FG_SEQUENCE;
    int found = 0;
    if (is_first) t->refused = 0;
    fg_span_release(t->span);
    t->span = NULL;
    if (f->kind == FG_PROJECTIVE && t->m == 0 && !fg_use_stars(f, t, v, w, work)) return FG_NO_MEMORY;
    if (!fg_has_constraints(f, t)) return fg_active_solve(f, t, v, w, c, rounds, x, work, watch);
    if (is_sequence && t->by_constraints) {
        found = fg_flow_answer(f, t, v, w, c, 0, x, watch);
        t->by_constraints = found || !is_first; /* new scores may need few structures */
    }
    if (!t->by_constraints && (is_sequence || t->m < FG_FEWEST)) {
        int enough, status = fg_by_structures(f, t, v, w, c, rounds, x, work, watch, &enough);
        if (status || enough) return status;
        if (!is_sequence) rounds -= FG_FEWEST;
    }
    if (!found) found = fg_by_constraints(f, t, v, w, c, x, watch);
    if (found < 0) return FG_NO_MEMORY;
    t->by_constraints = found;
    if (found) {
        t->m = 0;
        t->solved = 1;
        return 0;
    }
    if (watch != NULL && fg_is_stopped(watch->call)) return FG_INTERRUPTED;
    /* they did not converge (scores of very different sizes, or the time limit): structures for the rest of this solve */
    t->refused = 1;
    fg_free_constraints(t);
    return fg_active_solve(f, t, v, w, c, rounds, x, work, watch);
}

/* Equations of the face of an answer by constraints or, if `whole`, of the smallest face that it lies in (factor_face.h).
 * Returns a status. */
static int fg_constraints_span(const fg_spec *f, fg_active *t, const double *w, int whole, fg_watch *watch) {
    fg_span *span;
    int status, ready;
    if (whole && f->kind == FG_TREE && (status = fg_complete_sets(t->multipliers, watch))) return status;
    span = calloc(1, sizeof(fg_span));
    ready = span != NULL;
    if (ready && f->kind == FG_SEQUENCE) ready = fg_flow_equations(f, t, whole, span);
    else if (ready) ready = fg_multipliers_equations(f, t->multipliers, whole, &span->on);
    if (!ready || !fg_span_ready(f, w, span)) {
        fg_span_release(span);
        return FG_NO_MEMORY;
    }
    fg_span_release(t->span);
    t->span = span;
    return 0;
}

/* y = J u */
static void fg_structured_jvp(const fg_spec *f, fg_active *t, const double *u, const double *w, double *y,
                              double *work) {
    if (t->by_constraints && t->span == NULL && fg_constraints_span(f, t, w, 0, NULL)) /* no memory: a zero direction */
        memset(y, 0, (size_t)f->d * sizeof(double));
    else fg_active_jvp(f, t, u, w, NULL, y, work);
}

#endif
