/* Loops over the steps of extreme.h: single rows, batches, and implicit batches. */
#ifndef SPARSEKIT_EXTREME_STEPS_H
#define SPARSEKIT_EXTREME_STEPS_H

#include "extreme.h"

/* the sampled objective is looked at in one of so many steps: it costs an exponential or two */
#define SK_LOOK 8
/* an implicit batch ends when a sweep changes no coefficient by more than this, relative to the
 * largest; sweeps converge linearly, and few need more than ten */
#define SK_SWEEP_TOL 1e-7
#define SK_SWEEPS 500

#define SK_ROW(data, start, i, width) ((start) != NULL ? (data) + (start)[i] : (data) + (i) * (width))

/* what an implicit batch needs: c = n_negatives + batch_size classes at most */
typedef struct {
    int64_t *k, *label;             /* (c), (batch_size) */
    double *r, *rho, *z, *b, *rb, *rhob, *q; /* (c) */
    double *old;                    /* (batch_size) */
    double *f, *coef;               /* (batch_size, c) */
    double *gram;                   /* (batch_size, batch_size) */
} sk_batch_room;

/* Distinct classes beside the first nl of k, behind them; all that are left if there are no more
 * than n_negatives. Returns the number of both. */
static sk_size sk_draw_beside(const sk_rule *rule, sk_size K, sk_size nl, int64_t *k, uint64_t *state) {
    sk_size n = nl, m = rule->n_negatives;
    if (K - nl <= m) {
        for (int64_t j = 0; j < K; j++) {
            int seen = 0;
            for (sk_size i = 0; i < nl; i++) seen |= k[i] == j;
            if (!seen) k[n++] = j;
        }
        return n;
    }
    while (n < nl + m) {
        int64_t j = sk_below(state, K);
        int seen = 0;
        for (sk_size i = 0; i < n; i++) seen |= k[i] == j;
        if (!seen) k[n++] = j;
    }
    return n;
}

#define SK_STEPS(NAME, REAL, INDEX)                                                                              \
    /* x_a . x_b of sorted rows, or of dense ones */                                                             \
    SK_INLINE double sk_rows_dot_##NAME(const REAL *restrict x, const INDEX *restrict col, sk_size len,          \
                                        const REAL *restrict z, const INDEX *restrict other, sk_size n) {        \
        double sum = 0.0;                                                                                        \
        if (col == NULL) {                                                                                       \
            _Pragma("omp simd reduction(+ : sum)") for (sk_size i = 0; i < len; i++) sum += (double)x[i] * z[i]; \
            return sum;                                                                                          \
        }                                                                                                        \
        for (sk_size i = 0, j = 0; i < len && j < n;) {                                                          \
            if (col[i] == other[j]) sum += (double)x[i] * z[j];                                                  \
            if (col[i] < other[j]) i++;                                                                          \
            else if (col[i] > other[j]) j++;                                                                     \
            else i++, j++;                                                                                       \
        }                                                                                                        \
        return sum;                                                                                              \
    }                                                                                                            \
    /* The implicit step of several rows at once (Appendix F.3). In place of the paper's orthonormal             \
     * basis the rows themselves span the changes, W_k = rho_k (old + sum_b coef[b, k] x_b), and their           \
     * Gram matrix gives the scores. Row after row solves for its own coefficients with those of the             \
     * others held: block coordinate ascent on the dual of the step, whose blocks are steps of one row. */       \
    static sk_size sk_batch_##NAME(const sk_table *T, const sk_rule *rule, const REAL *data, const INDEX *col,   \
                                   const INDEX *start, sk_size width, const int64_t *order, sk_size size,        \
                                   const int64_t *of, const int64_t *y, const double *weight, double *u,         \
                                   sk_batch_room room, uint64_t *state, int64_t t, int value, double *loss,      \
                                   int hashed) {                                                                 \
        sk_size K = T->n_classes, n = 0, nl, cap = rule->n_negatives + rule->batch_size;                         \
        int bias = T->bias != NULL;                                                                              \
        for (sk_size b = 0; b < size; b++) { /* the labels, each once */                                         \
            sk_size j = 0;                                                                                       \
            while (j < n && room.k[j] != y[order[b]]) j++;                                                       \
            if (j == n) room.k[n++] = y[order[b]];                                                               \
            room.label[b] = j;                                                                                   \
        }                                                                                                        \
        nl = n;                                                                                                  \
        n = sk_draw_beside(rule, K, nl, room.k, state);                                                          \
        for (sk_size j = 0; j < n; j++) {                                                                        \
            room.r[j] = j < nl ? 1.0 : (double)(K - nl) / (double)(n - nl);                                      \
            room.rho[j] = sk_shrink(T, rule, room.k[j], rule->eta);                                              \
        }                                                                                                        \
        memset(room.coef, 0, sizeof(double) * (size_t)(size * cap));                                             \
        for (sk_size b = 0; b < size; b++) {                                                                     \
            int64_t e = order[b], i = of != NULL ? of[e] : e;                                                    \
            const REAL *x = SK_ROW(data, start, i, width);                                                       \
            const INDEX *c = start != NULL ? col + start[i] : NULL;                                              \
            sk_size len = start != NULL ? (sk_size)(start[i + 1] - start[i]) : width;                            \
            double *f = room.f + b * cap;                                                                        \
            sk_scores_##NAME(T, x, c, len, room.k, n - 1, f, hashed);                                            \
            for (sk_size a = 0; a <= b; a++) {                                                                   \
                int64_t ia = of != NULL ? of[order[a]] : order[a];                                               \
                double G = bias + sk_rows_dot_##NAME(                                                            \
                    x, c, len, SK_ROW(data, start, ia, width), start != NULL ? col + start[ia] : NULL,           \
                    start != NULL ? (sk_size)(start[ia + 1] - start[ia]) : width);                               \
                room.gram[a * rule->batch_size + b] = room.gram[b * rule->batch_size + a] = G;                   \
            }                                                                                                    \
            room.old[b] = u[e];                                                                                  \
            if (u[e] != u[e]) {                                                                                  \
                double high = 0.0, total = 0.0, fy = f[room.label[b]];                                           \
                for (sk_size j = 0; j < n; j++) high = f[j] - fy > high ? f[j] - fy : high;                      \
                for (sk_size j = 0; j < n; j++)                                                                  \
                    if (j != room.label[b]) total += room.r[j] * exp(f[j] - fy - high);                          \
                room.old[b] = high + log(exp(-high) + total);                                                    \
            }                                                                                                    \
            if (value) {                                                                                         \
                double fy = f[room.label[b]], total = room.old[b] + exp(-room.old[b]) - 1.0;                     \
                for (sk_size j = 0; j < n; j++)                                                                  \
                    if (j != room.label[b]) total += room.r[j] * exp(f[j] - fy - room.old[b]);                   \
                loss[0] += total;                                                                                \
                loss[1] += 1.0;                                                                                  \
            }                                                                                                    \
        }                                                                                                        \
        for (int sweep = 0; sweep < SK_SWEEPS; sweep++) {                                                        \
            double change = 0.0, largest = 0.0;                                                                  \
            for (sk_size b = 0; b < size; b++) {                                                                 \
                int64_t e = order[b];                                                                            \
                sk_size l = room.label[b], m = 0;                                                                \
                double eta = rule->eta * (weight != NULL ? weight[e] : 1.0) / (double)size;                      \
                double *f = room.f + b * cap, *coef = room.coef + b * cap;                                       \
                const double *G = room.gram + b * rule->batch_size;                                              \
                double s = G[b] > 0.0 ? G[b] : 1e-300, c;                                                        \
                for (sk_size j = 0; j < n; j++) room.z[j] = f[j];                                                \
                for (sk_size a = 0; a < size; a++)                                                               \
                    if (a != b)                                                                                  \
                        for (sk_size j = 0; j < n; j++) room.z[j] += G[a] * room.coef[a * cap + j];              \
                for (sk_size j = 0; j < n; j++) room.z[j] *= room.rho[j];                                        \
                for (sk_size j = 0; j < n; j++)                                                                  \
                    if (j != l) {                                                                                \
                        room.b[m] = room.z[j] - room.z[l];                                                       \
                        room.rb[m] = room.r[j];                                                                  \
                        room.rhob[m++] = room.rho[j];                                                            \
                    }                                                                                            \
                c = sk_implicit_many(m, room.b, room.rb, room.rhob, room.q, eta, s, room.rho[l], room.old[b], &u[e]);\
                for (sk_size j = 0, i = 0; j < n; j++) {                                                         \
                    double value_j = j == l ? c : -room.b[i++];                                                  \
                    double d = fabs(value_j - coef[j]);                                                          \
                    change = d > change ? d : change;                                                            \
                    largest = fabs(value_j) > largest ? fabs(value_j) : largest;                                 \
                    coef[j] = value_j;                                                                           \
                }                                                                                                \
                if (!(fabs(c) < 1e300) || !(fabs(u[e]) < 1e300)) return b;                                       \
            }                                                                                                    \
            if (size == 1 || change <= SK_SWEEP_TOL * largest) break;                                            \
        }                                                                                                        \
        for (sk_size b = 0; b < size; b++) {                                                                     \
            int64_t i = of != NULL ? of[order[b]] : order[b];                                                    \
            const REAL *x = SK_ROW(data, start, i, width);                                                       \
            const INDEX *c = start != NULL ? col + start[i] : NULL;                                              \
            sk_size len = start != NULL ? (sk_size)(start[i + 1] - start[i]) : width;                            \
            for (sk_size j = 0; j < n; j++)                                                                      \
                sk_move_##NAME(T, rule, x, c, len, room.gram[b * rule->batch_size + b], room.k[j],               \
                               room.coef[b * cap + j], b + 1 < size ? 1.0 : room.rho[j], t, hashed);             \
        }                                                                                                        \
        return -1;                                                                                               \
    }                                                                                                            \
    /* Batches of the examples order[lo .. hi). Example e is row of[e] (NULL: e) with label y[e] and weight[e]   \
     * (NULL: 1). Returns -1, or the place of the first step that was not finite, where it stops. loss[0] sums   \
     * the sampled objective over loss[1] of the rows. t counts the steps before, for the average. */            \
    SK_INLINE sk_size sk_steps_##NAME(const sk_table *T, const sk_rule *rule, const REAL *data, const INDEX *col,\
                                      const INDEX *start, sk_size width, const int64_t *order, sk_size lo,       \
                                      sk_size hi, const int64_t *of, const int64_t *y, const double *weight,     \
                                      double *u, sk_room room, uint64_t *state, int64_t t, int64_t t_step,       \
                                      int value, double *loss, int hashed) {                                     \
        sk_size stride = rule->n_negatives + 1, B = rule->batch_size, K = T->n_classes;                          \
        int bias = T->bias != NULL, norms = rule->method == SK_IMPLICIT || T->square != NULL;                    \
        double none = 0.0;                                                                                       \
        for (sk_size at = lo; at < hi; at += B) {                                                                \
            sk_size size = hi - at < B ? hi - at : B;                                                            \
            t += t_step;                                                                                         \
            for (int phase = 0; phase < 2; phase++)                                                              \
                for (sk_size b = 0; b < size; b++) {                                                             \
                    int64_t e = order[at + b], i = of != NULL ? of[e] : e;                                       \
                    const REAL *x = SK_ROW(data, start, i, width);                                               \
                    const INDEX *c = start != NULL ? col + start[i] : NULL;                                      \
                    sk_size len = start != NULL ? (sk_size)(start[i + 1] - start[i]) : width;                    \
                    double eta = rule->eta * (weight != NULL ? weight[e] : 1.0) / (double)size, s = bias;        \
                    double *own_u = u != NULL ? &u[e] : &none;                                                   \
                    sk_room own = room;                                                                          \
                    own.count += b;                                                                              \
                    own.k += b * stride;                                                                         \
                    own.f += b * stride;                                                                         \
                    own.g += b * stride;                                                                         \
                    own.r += b * stride;                                                                         \
                    if (norms) {                                                                                 \
                        REAL sum = 0;                                                                            \
                        _Pragma("omp simd reduction(+ : sum)") for (sk_size l = 0; l < len; l++) sum += x[l] * x[l];\
                        s += (double)sum;                                                                        \
                    }                                                                                            \
                    if (phase == 0) {                                                                            \
                        int look = value && ((at - lo) / B) % SK_LOOK == 0;                                      \
                        double one;                                                                              \
                        own.k[0] = y[e];                                                                         \
                        *own.count = sk_draw(rule, K, y[e], state, own.k, own.r);                                \
                        /* a row of zeros moves no entry of W, but u has its equation still */                   \
                        one = sk_row_##NAME(T, rule, x, c, len, s > 0.0 ? s : 1e-300, *own.count, eta, own_u, own,\
                                            look, hashed);                                                       \
                        if (look) {                                                                              \
                            loss[0] += one;                                                                      \
                            loss[1] += 1.0;                                                                      \
                        }                                                                                        \
                        if (!(fabs(own.g[0]) < 1e300) || !(fabs(*own_u) < 1e300)) return at;                     \
                        if (size > 1) continue;                                                                  \
                    }                                                                                            \
                    for (sk_size j = 0; j <= *own.count; j++)                                                    \
                        sk_move_##NAME(T, rule, x, c, len, s, own.k[j], own.g[j],                                \
                                       sk_shrink(T, rule, own.k[j], eta), t, hashed);                            \
                    if (size == 1) phase = 2;                                                                    \
                }                                                                                                \
        }                                                                                                        \
        return -1;                                                                                               \
    }                                                                                                            \
    static sk_size sk_run_##NAME(const sk_table *T, const sk_rule *rule, const REAL *data, const INDEX *col,     \
                                 const INDEX *start, sk_size width, const int64_t *order, sk_size lo, sk_size hi,\
                                 const int64_t *of, const int64_t *y, const double *weight, double *u,           \
                                 sk_room room, sk_batch_room batch, uint64_t *shared_state, int64_t t, int64_t t_step,\
                                 int value, double *total_loss) {                                                \
        /* copies on the stack: threads must not write to one cache line */                                      \
        uint64_t own_state = *shared_state, *state = &own_state;                                                 \
        double loss[2] = {0.0, 0.0};                                                                             \
        sk_size bad = -1;                                                                                        \
        if (rule->method == SK_IMPLICIT && rule->batch_size > 1) {                                               \
            for (sk_size at = lo; at < hi; at += rule->batch_size) {                                             \
                sk_size size = hi - at < rule->batch_size ? hi - at : rule->batch_size;                          \
                int look = value && ((at - lo) / rule->batch_size) % SK_LOOK == 0;                               \
                t += t_step;                                                                                     \
                if (sk_batch_##NAME(T, rule, data, col, start, width, order + at, size, of, y, weight, u, batch, \
                                    state, t, look, loss, T->shift != 0) >= 0) {                                 \
                    bad = at;                                                                                    \
                    break;                                                                                       \
                }                                                                                                \
            }                                                                                                    \
        } else if (T->shift) {                                                                                   \
            bad = sk_steps_##NAME(T, rule, data, col, start, width, order, lo, hi, of, y, weight, u, room, state, t,\
                                  t_step, value, loss, 1);                                                       \
        } else {                                                                                                 \
            bad = sk_steps_##NAME(T, rule, data, col, start, width, order, lo, hi, of, y, weight, u, room, state, t,\
                                  t_step, value, loss, 0);                                                       \
        }                                                                                                        \
        *shared_state = own_state;                                                                               \
        total_loss[0] += loss[0];                                                                                \
        total_loss[1] += loss[1];                                                                                \
        return bad;                                                                                              \
    }

SK_STEPS(f32_i32, float, int32_t)
SK_STEPS(f32_i64, float, int64_t)
SK_STEPS(f64_i32, double, int32_t)
SK_STEPS(f64_i64, double, int64_t)
#endif
