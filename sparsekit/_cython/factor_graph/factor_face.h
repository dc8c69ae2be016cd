/* The face that a factor's answer lies in, where scores tie.
 *
 * The derivative in the scores exists if the critical cone is a subspace: the directions in which the answer can move
 * among tied structures. That cone is the intersection of the factors' cones. Its largest subspace is the intersection
 * of theirs, the spans of the smallest faces around the answers. The Jacobian is the projection on it. At a kink it is
 * the Jacobian of nearby scores with the same answer. Structures in use may span less than their face; the missing ones
 * are added with weight 0. */
#ifndef SPARSEKIT_FACTOR_FACE_H
#define SPARSEKIT_FACTOR_FACE_H

#include "factor_graph/factor_equations.h"
#include "factor_graph/factor_map.h"

/* the same for weights and losses if no other factor changes the scores: long sentences have weights of all sizes */
#define FG_NO_WEIGHT_ALONE 1e-15
#define FG_TIED_SCORE_ALONE 1e-12

/* state of a search for a factor's face */
typedef struct {
    const fg_spec *f;
    fg_active *t;
    const double *w, *c;
    double *x, *g, *r, *y, *zero, *work; /* (d), work: of the oracle */
    int alone;                           /* no other factor moves the scores */
    double tied, level, size;            /* what is equal; what the face's structures have under the scores g, c */
    uint64_t seed;
    fg_watch *watch;
} fg_face;

static double fg_noise(fg_face *s) {
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(s->seed >> 33) / 1073741824.0 - 1.0;
}

/* Computes the score of the structures in use. */
static void fg_set_level(fg_face *s) {
    const fg_active *t = s->t;
    s->level = 0.0;
    for (sk_size k = 0; k < t->m - t->extra; k++) s->level += t->p[k] * fg_of_parts(s->f, t, k, s->g, s->c);
    s->size = 1.0 + fabs(s->level);
}

/* r: w times a random direction, orthogonal to the structures' span; returns its largest entry over w. */
static double fg_draw_direction(fg_face *s) {
    const sk_size d = s->f->d;
    double most = 0.0;
    fg_set_ones(s->t);
    for (sk_size i = 0; i < d; i++) s->y[i] = fg_noise(s);
    fg_active_jvp(s->f, s->t, s->y, s->w, NULL, s->r, s->work);
    for (sk_size i = 0; i < d; i++) {
        s->r[i] = s->y[i] - s->r[i];
        most = fabs(s->r[i]) > most ? fabs(s->r[i]) : most;
        s->r[i] *= s->w[i];
    }
    return most;
}

/* Makes r orthogonal to structure m as well, whose row of L is computed; returns its largest entry over w. One pass
 * over L: the new direction is the structure minus its best affine mixture of the others. */
static double fg_orthogonalize(fg_face *s) {
    fg_active *t = s->t;
    const sk_size m = t->m, d = s->f->d;
    const double *row = t->L + m * t->size;
    double *a = t->target, *q = s->y, total = 0.0, ones = 0.0, along = 0.0, square = 0.0, most = 0.0;
    memcpy(a, row, (size_t)m * sizeof(double));
    fg_backward(t, m, a);
    for (sk_size k = 0; k < m; k++) total += a[k], ones += t->ones[k];
    memset(q, 0, (size_t)d * sizeof(double));
    fg_add_parts(s->f, t, m, 1.0, q, NULL);
    for (sk_size k = 0; k < m; k++) fg_add_parts(s->f, t, k, -a[k] - (1.0 - total) / ones * t->ones[k], q, NULL);
    /* K^-1 1 for all m + 1, by the bordered inverse */
    t->ones[m] = (1.0 - total) / (row[m] * row[m]);
    for (sk_size k = 0; k < m; k++) t->ones[k] -= t->ones[m] * a[k];
    for (sk_size i = 0; i < d; i++) along += s->r[i] * q[i], square += s->w[i] * q[i] * q[i];
    for (sk_size i = 0; i < d; i++) {
        s->r[i] -= along / square * s->w[i] * q[i];
        most = fabs(s->r[i]) > most * s->w[i] ? fabs(s->r[i]) / s->w[i] : most;
    }
    return most;
}

/* Adds tied structures, until none lies outside the hull on one side of a random plane through it. Those that span the
 * smallest face lie on both sides of every such plane. A structure that gains `rho` in direction r but loses `gap` is
 * not better for steps up to gap / rho. Shorter steps therefore find a tied structure, or none. */
static int fg_collect(fg_face *s, sk_size most_extra) {
    const fg_spec *f = s->f;
    fg_active *t = s->t;
    const sk_size d = f->d;
    double most = 0.0, left = 0.0;
    for (;;) {
        double base, step, best;
        /* reuse the rest of the last direction until it is small */
        const int fresh = !(left > 0.05 * most);
        int found = 0, status;
        if (fg_stopped(s->watch, (t->m + f->rows + f->columns) * d)) return FG_INTERRUPTED;
        if (fresh) {
            most = fg_draw_direction(s);
            if (most < 1e-7) return 0;
        }
        base = fg_of_parts(f, t, 0, s->r, NULL);
        step = 1e-5 * s->size / (double)(f->n_on > 0 ? f->n_on : 1);
        for (int trial = 0; trial < 40; trial++) {
            double gap, rho;
            for (sk_size i = 0; i < d; i++) s->y[i] = s->g[i] + step * s->r[i];
            if ((status = fg_call_oracle(f, t, s->y, s->c, s->work, &best))) return status;
            gap = s->level - fg_of_parts(f, t, t->m, s->g, s->c);
            rho = fg_of_parts(f, t, t->m, s->r, NULL) - base;
            if (gap <= s->tied * s->size) {
                found = rho > 1e-9 && fg_factor_row(f, t, s->w, s->zero) > FG_DEPENDENT;
                break;
            }
            if (step * rho <= gap) break;
            step = 0.5 * gap / rho;
        }
        left = found ? fg_orthogonalize(s) : 0.0;
        if (!found && fresh) return 0;
        if (!found) continue;
        t->p[t->m++] = 0.0;
        if (++t->extra == most_extra) return 0;
    }
}

/* q becomes a view of the structures with weights: they are the first ones, and so are their rows of L */
static int fg_in_use(fg_face *s, fg_active *q) {
    const fg_spec *f = s->f;
    const fg_active *t = s->t;
    q->shift = t->shift;
    for (q->m = 0; q->m < t->m - t->extra; q->m++) {
        const sk_size k = q->m;
        if (!fg_grow(f, q)) return FG_NO_MEMORY;
        if (f->kind == FG_CUSTOM) {
            const sk_size n = f->d + f->n_add;
            memcpy(q->value + k * n, t->value + k * n, (size_t)n * sizeof(double));
        } else {
            memcpy(q->on + k * f->n_on, t->on + k * f->n_on, (size_t)f->n_on * sizeof(int32_t));
            memcpy(q->bonus + k * f->n_bonus, t->bonus + k * f->n_bonus, (size_t)f->n_bonus * sizeof(int32_t));
        }
        memcpy(q->L + k * q->size, t->L + k * t->size, (size_t)(k + 1) * sizeof(double));
        q->p[k] = t->p[k];
    }
    return 0;
}

/* Whether the answer can move away from the added structures, as it can from all of its smallest face. If not, some
 * direction of the scores leaves the answer unchanged. g moves along it, and the added structures are no longer tied. */
static int fg_move_away(fg_face *s, int *inside) {
    const fg_spec *f = s->f;
    fg_active *t = s->t, q;
    const sk_size d = f->d, m = t->m, used = m - t->extra;
    double *e = s->r, *x = s->y, most = 0.0, loss = 0.0;
    double *v = malloc((size_t)(d + 1) * sizeof(double));
    int status = v == NULL ? FG_NO_MEMORY : 0;
    memset(&q, 0, sizeof q);
    for (sk_size i = 0; i < d; i++) e[i] = -s->x[i];
    for (sk_size k = used; k < m; k++) fg_add_parts(f, t, k, 1.0 / (double)t->extra, e, NULL);
    for (sk_size i = 0; i < d; i++) most = fabs(e[i]) > most ? fabs(e[i]) : most;
    *inside = 1;
    for (double step = s->alone ? 1e-5 : 1e-3; !status && step > 1e-8; step *= 0.1) {
        double miss = 0.0, least = DBL_MAX, top = -DBL_MAX;
        if ((status = fg_in_use(s, &q))) break;
        for (sk_size i = 0; i < d; i++) v[i] = s->x[i] + s->g[i] / s->w[i] - step * e[i];
        if ((status = fg_active_solve(f, &q, v, s->w, s->c, FG_MAX_ORACLE_CALLS, x, s->work, s->watch))) break;
        for (sk_size i = 0; i < d; i++) {
            double by = fabs(x[i] - s->x[i] + step * e[i]);
            miss = by > miss ? by : miss;
        }
        *inside = miss <= 1e-3 * step * most;
        if (*inside) break;
        /* too long a step makes other structures best, or removes some in use */
        loss = 0.0;
        for (sk_size k = 0; k < q.m; k++) {
            double gap = s->level - fg_of_parts(f, &q, k, s->g, s->c);
            loss = gap > loss ? gap : loss;
        }
        for (sk_size i = 0; i < d; i++) v[i] = s->w[i] * (v[i] - x[i]);
        for (sk_size k = 0; k < used; k++) {
            double value = fg_of_parts(f, t, k, v, s->c);
            least = value < least ? value : least;
            top = value > top ? value : top;
        }
        if (loss > s->tied * s->size || top - least > 1e-4 * step * most) continue;
        memcpy(s->g, v, (size_t)d * sizeof(double));
        fg_set_level(s);
        for (sk_size k = m - 1; k >= used; k--)
            if (s->level - fg_of_parts(f, t, k, s->g, s->c) > s->tied * s->size) {
                fg_remove_structure(f, t, k);
                t->extra--;
            }
        break;
    }
    if (!*inside && !status && t->extra == m - used) { /* no step was small enough: keep the structures in use */
        t->m = used;
        t->extra = 0;
        *inside = 1;
    }
    fg_release(&q);
    free(v);
    return status;
}

/* Describes the face by its equations, which are fewer than the structures that span it. */
static int fg_find_span(fg_face *s) {
    const fg_spec *f = s->f;
    fg_active *t = s->t;
    fg_span *span = calloc(1, sizeof(fg_span));
    int ready = span != NULL;
    t->m -= t->extra;
    t->extra = 0;
    if (ready && f->kind == FG_SEQUENCE)
        ready = fg_span_sequence(f, t, s->x, s->g, s->c, s->tied * s->size, span);
    else if (ready) ready = fg_span_stars(f, s->x, span);
    if (ready && fg_span_ready(f, s->w, span)) {
        t->span = span;
        return 0;
    }
    fg_span_release(span);
    return FG_NO_MEMORY;
}

/* Structures for the answer x to scores v, w, c become those of its smallest face. alone: no other factor
 * moves the scores. */
static int fg_complete(const fg_spec *f, fg_active *t, const double *v, const double *w, const double *c,
                       int alone, double *work, fg_watch *watch) {
    const sk_size d = f->d;
    double *buffer = calloc((size_t)(5 * d + 1), sizeof(double));
    fg_face s = {f, t, w, c, buffer, buffer + d, buffer + 2 * d, buffer + 3 * d, buffer + 4 * d, work,
                 alone, alone ? FG_TIED_SCORE_ALONE : FG_TIED_SCORE, 0.0, 1.0, 1, watch};
    int status = 0, inside = 0;
    double sum = 0.0;
    if (buffer == NULL) return FG_NO_MEMORY;
    t->m -= t->extra; /* left by an interrupted call */
    t->extra = 0;
    for (sk_size k = t->m - 1; k >= 0 && t->m > 1; k--)
        if (t->p[k] <= (alone ? FG_NO_WEIGHT_ALONE : FG_NO_WEIGHT)) fg_remove_structure(f, t, k);
    for (sk_size k = 0; k < t->m; k++) sum += t->p[k];
    for (sk_size k = 0; k < t->m; k++) t->p[k] /= sum;
    for (sk_size k = 0; k < t->m; k++) fg_add_parts(f, t, k, t->p[k], s.x, NULL);
    for (sk_size i = 0; i < d; i++) s.g[i] = w[i] * (v[i] - s.x[i]);
    fg_set_level(&s);
    if (f->kind == FG_SEQUENCE) {
        status = fg_collect(&s, 1); /* is the face larger than the structures in use? */
        if (!status && t->extra > 0) status = fg_find_span(&s);
        inside = 1;
    } else if (f->kind == FG_PROJECTIVE && fg_is_of_stars(f, s.x, alone ? FG_STAR_TOLERANCE : FG_STAR_TOLERANCE_SHARED, s.y)) {
        status = fg_find_span(&s);
        inside = 1;
    }
    for (sk_size round = 0; !status && !inside && round <= 2 * d; round++) {
        status = fg_collect(&s, d + 1);
        if (status || t->extra == 0) break;
        status = fg_move_away(&s, &inside);
    }
    fg_set_ones(t);
    free(buffer);
    return status;
}

/* Jacobians of all factors become those of the smallest faces; once a solve */
static int fg_complete_all(const fg_plan *g, fg_state *t) {
    const sk_size np = g->n_pair;
    int status;
    if (t->whole) return 0;
    fg_complete_pairs(g, t);
    for (sk_size i = 0; i < g->n_linear; i++) {
        sk_size s = g->linear[i];
        fg_complete_linear(g->linear[i + 1] - s, t->x + s, g->a + s, g->ad + s, g->bound[i], t->f + s, t->e + s,
                           t->coef + np + i);
    }
    for (sk_size i = 0; i < g->n_orout; i++) {
        sk_size s = g->orout[i];
        fg_complete_orout(g->orout[i + 1] - s, t->x + s, g->a + s, g->ad + s, g->w + s, g->negated + s, t->work,
                          t->f + s, t->e + s, t->coef + np + g->n_linear + i);
    }
    for (sk_size i = 0; i < g->n_struct; i++) {
        const fg_spec *p = g->spec + i;
        double *c = t->work;
        if (!t->active[i].solved) continue;
        if (t->active[i].by_constraints) {
            if ((status = fg_constraints_span(p, t->active + i, g->w + p->slot, 1, t->watch))) return status;
            continue;
        }
        for (sk_size k = 0; k < p->n_add; k++) c[k] = t->add[p->add + k] * t->inv;
        status = fg_complete(p, t->active + i, t->v + p->slot, g->w + p->slot, c,
                             g->is_separate, t->work + p->n_add, t->watch);
        if (status) return status;
    }
    t->whole = 1;
    return 0;
}

#endif
