/* Loops over the steps of extreme.h: single rows and batches. */
#ifndef SPARSEKIT_EXTREME_STEPS_H
#define SPARSEKIT_EXTREME_STEPS_H

#include "extreme/extreme.h"

/* number of rows whose classes are drawn ahead; rows that share none are processed together */
#define SK_WINDOW SK_LANES_AT_ONCE
/* entries of a row to prefetch; the processor prefetches the rest */
#define SK_AHEAD 64
/* bytes of weights above which they are prefetched a window ahead: the second cache holds fewer */
#define SK_FAR ((size_t)1 << 21)
/* entries to prefetch for all classes of a row: at most 512 KB for two windows */
#define SK_ASKED 1024
/* Whether a class of row b is one of rows first .. b - 1; k (rows, stride), count[b] + 1 of each row. */
SK_INLINE int sk_meets(const int64_t *k, sk_size stride, const sk_size *count, sk_size first, sk_size b) {
    const int64_t *own = k + b * stride;
    int met = 0;
    for (sk_size a = first; a < b; a++)
        for (sk_size i = 0; i <= count[a]; i++)
            for (sk_size j = 0; j <= count[b]; j++) met |= k[a * stride + i] == own[j];
    return met;
}

#define SK_STEPS(NAME, REAL, INDEX)                                                                                 \
    typedef struct {                                                                                                \
        const REAL *x;                                                                                              \
        const INDEX *col;                                                                                           \
        sk_size len;                                                                                                \
    } sk_row_##NAME;                                                                                                \
    SK_INLINE sk_row_##NAME sk_row_of_##NAME(const sk_rows *rows, int64_t e) {                                      \
        int64_t i = rows->of != NULL ? rows->of[e] : e;                                                             \
        const INDEX *start = (const INDEX *)rows->start;                                                            \
        sk_row_##NAME row = {(const REAL *)rows->x + i * rows->width, NULL, rows->width};                           \
        if (start != NULL) {                                                                                        \
            row.x = (const REAL *)rows->x + start[i];                                                               \
            row.col = (const INDEX *)rows->col + start[i];                                                          \
            row.len = (sk_size)(start[i + 1] - start[i]);                                                           \
        }                                                                                                           \
        return row;                                                                                                 \
    }                                                                                                               \
    /* asks for the weights of n + 1 classes at the entries of a row */                                             \
    SK_INLINE void sk_ask_##NAME(const sk_table *T, sk_row_##NAME row, const int64_t *k, sk_size n, int hashed) {   \
        const REAL *W = (const REAL *)T->W, *bias = (const REAL *)T->bias;                                          \
        const sk_size most = row.col != NULL || hashed ? SK_ASKED : SK_AHEAD, len = row.len < most ? row.len : most; \
        sk_size left = SK_ASKED;                                                                                    \
        for (sk_size j = 0; j <= n && left > 0; j++, left -= len) {                                                 \
            const REAL *V = hashed ? W : W + k[j] * T->n_features;                                                  \
            if (hashed) {                                                                                           \
                uint64_t key = sk_class_key(k[j]);                                                                  \
                for (sk_size i = 0; i < len; i++)                                                                   \
                    SK_PREFETCH_FAR(V + (sk_hash(key, (uint64_t)(row.col ? (sk_size)row.col[i] : i)) >> T->shift)); \
            } else if (row.col != NULL) {                                                                           \
                for (sk_size i = 0; i < len; i++) SK_PREFETCH_FAR(V + row.col[i]);                                  \
            } else {                                                                                                \
                for (sk_size i = 0; i < len; i += (sk_size)(64 / sizeof(REAL))) SK_PREFETCH_FAR(V + i);             \
            }                                                                                                       \
            if (bias != NULL) SK_PREFETCH_FAR(bias + k[j]);                                                         \
            if (T->scale != NULL) SK_PREFETCH_FAR(T->scale + k[j]);                                                 \
        }                                                                                                           \
    }                                                                                                               \
    /* Rows first .. stop of a window, whose classes are drawn: scores, then slopes, then changes. For a batch      \
     * this is the definition. Single rows share no class, so it equals successive steps, with more loads and       \
     * roots in flight. Returns the first row that was not finite, or -1. */                                        \
    SK_INLINE sk_size sk_group_##NAME(const sk_table *T, const sk_rule *rule, const sk_rows *rows, const int64_t *order, \
                                      sk_size first, sk_size stop, double share, sk_workspace workspace,            \
                                      int far, int hashed) {                                                        \
        sk_size stride = rule->n_negatives + 1;                                                                     \
        int norms = rule->method == SK_IMPLICIT;                                                                    \
        double none = 0.0, z[SK_WINDOW], log_r[SK_WINDOW], eta[SK_WINDOW], sigma[SK_WINDOW], old[SK_WINDOW];        \
        sk_size place[SK_WINDOW], n = 0;                                                                            \
        for (sk_size b = first; b < stop; b++) {                                                                    \
            sk_row_##NAME row = sk_row_of_##NAME(rows, order[b]);                                                   \
            sk_size later = b + SK_WINDOW; /* of a large batch, whose first ones are asked for already */           \
            if (far && later < stop)                                                                                \
                sk_ask_##NAME(T, sk_row_of_##NAME(rows, order[later]), workspace.k + later * stride, workspace.count[later], hashed); \
            sk_scores_##NAME(T, row.x, row.col, row.len, workspace.k + b * stride, workspace.count[b], workspace.f + b * stride, hashed); \
            if (norms) {                                                                                            \
                workspace.s[b] = sk_square_##NAME(row.x, row.len) + (T->bias != NULL);                              \
            }                                                                                                       \
        }                                                                                                           \
        for (sk_size b = first; b < stop; b++) {                                                                    \
            int64_t e = order[b];                                                                                   \
            double *u = rows->u != NULL ? &rows->u[e] : &none, *g = workspace.g + b * stride;                       \
            workspace.eta[b] = rule->eta * (rows->weight != NULL ? rows->weight[e] : 1.0) * share;                  \
            /* a row of zeros moves no entry of W, but u has its equation still */                                  \
            workspace.s[b] = norms && workspace.s[b] > 0.0 ? workspace.s[b] : 1e-300;                               \
            sk_solve(T, rule, workspace.k + b * stride, workspace.f + b * stride, workspace.r + b * stride, g, workspace, \
                     workspace.s[b], workspace.count[b], workspace.eta[b], u);                                      \
            if (rule->method == SK_IMPLICIT && workspace.count[b] == 1) {                                           \
                double rk = sk_shrink(T, rule, workspace.k[b * stride + 1], workspace.eta[b]);                      \
                double ry = sk_shrink(T, rule, workspace.k[b * stride], workspace.eta[b]);                          \
                z[n] = rk * workspace.f[b * stride + 1] - ry * workspace.f[b * stride];                             \
                log_r[n] = rule->noise == NULL ? rule->log_ratio : log(workspace.r[b * stride + 1]);                \
                eta[n] = workspace.eta[b];                                                                          \
                sigma[n] = workspace.s[b] * (rk + ry);                                                              \
                old[n] = *u;                                                                                        \
                place[n++] = b;                                                                                     \
            } else if (!(fabs(g[0]) < 1e300) || !(fabs(*u) < 1e300)) {                                              \
                return b;                                                                                           \
            }                                                                                                       \
        }                                                                                                           \
        /* an implicit step has one row: no more of them than a window */                                           \
        if (n) {                                                                                                    \
            sk_implicit_rows(n, z, log_r, eta, sigma, old);                                                         \
            for (sk_size i = 0; i < n; i++) {                                                                       \
                workspace.g[place[i] * stride] = sigma[i];                                                          \
                workspace.g[place[i] * stride + 1] = -sigma[i];                                                     \
                rows->u[order[place[i]]] = old[i];                                                                  \
                if (!(fabs(sigma[i]) < 1e300) || !(fabs(old[i]) < 1e300)) return place[i];                          \
            }                                                                                                       \
        }                                                                                                           \
        for (sk_size b = first; b < stop; b++) {                                                                    \
            sk_row_##NAME row = sk_row_of_##NAME(rows, order[b]);                                                   \
            for (sk_size j = 0; j <= workspace.count[b]; j++)                                                       \
                sk_move_##NAME(T, row.x, row.col, row.len, workspace.k[b * stride + j], workspace.g[b * stride + j], \
                               sk_shrink(T, rule, workspace.k[b * stride + j], workspace.eta[b]), hashed);          \
        }                                                                                                           \
        return -1;                                                                                                  \
    }                                                                                                               \
    /* Batches of the examples order[lo .. hi). Returns -1, or the index of the first step that was not finite,     \
     * where it stops. */                                                                                           \
    SK_INLINE sk_size sk_steps_##NAME(const sk_table *T, const sk_rule *rule, const sk_rows *rows, const int64_t *order, \
                                      sk_size lo, sk_size hi, sk_workspace workspace, uint64_t *state, int hashed) { \
        sk_size stride = rule->n_negatives + 1, B = rule->batch_size, K = T->n_classes;                             \
        sk_size width = B > 1 ? B : SK_WINDOW, bad;                                                                 \
        size_t bytes = sizeof(REAL) * (T->shift ? (size_t)1 << (64 - T->shift) : (size_t)K * (size_t)T->n_features); \
        const int far = bytes > SK_FAR;                                                                             \
        for (sk_size at = lo - width, round = -1; at < hi; at += width, round++) {                                  \
            sk_size size = hi - at < width ? hi - at : width, first = 0, ahead = (round & 1) * width;               \
            /* classes are drawn a window ahead: workspaces of this window and of the next */                       \
            sk_workspace here = workspace, next = workspace;                                                        \
            here.k += (width - ahead) * stride, here.r += (width - ahead) * stride, here.count += width - ahead;    \
            next.k += ahead * stride, next.r += ahead * stride, next.count += ahead;                                \
            /* rows come in random order: ask for their addresses three windows ahead, for themselves two ahead */  \
            for (sk_size b = at + 3 * width; b < at + 4 * width && b < hi; b++) {                                   \
                int64_t e = order[b];                                                                               \
                SK_PREFETCH(rows->y + e);                                                                           \
                if (rows->u != NULL) SK_PREFETCH(rows->u + e);                                                      \
                if (rows->start != NULL) SK_PREFETCH((const INDEX *)rows->start + (rows->of != NULL ? rows->of[e] : e)); \
            }                                                                                                       \
            for (sk_size b = at + 2 * width; b < at + 3 * width && b < hi; b++) {                                   \
                sk_row_##NAME row = sk_row_of_##NAME(rows, order[b]);                                               \
                sk_size last = (row.len < SK_AHEAD ? row.len : SK_AHEAD) - 1;                                       \
                for (sk_size l = 0; l < last; l += (sk_size)(64 / sizeof(REAL))) {                                  \
                    SK_PREFETCH_FAR(row.x + l);                                                                     \
                    if (row.col != NULL) SK_PREFETCH_FAR(row.col + l);                                              \
                }                                                                                                   \
                if (last >= 0) { /* few rows begin where a cache line does */                                       \
                    SK_PREFETCH_FAR(row.x + last);                                                                  \
                    if (row.col != NULL) SK_PREFETCH_FAR(row.col + last);                                           \
                }                                                                                                   \
            }                                                                                                       \
            for (sk_size b = 0; b < width && at + width + b < hi; b++) {                                            \
                int64_t *k = next.k + b * stride, e = order[at + width + b];                                        \
                k[0] = rows->y[e];                                                                                  \
                next.count[b] = sk_draw(rule, K, k[0], state, k, next.r + b * stride);                              \
                if (far && b < SK_WINDOW) sk_ask_##NAME(T, sk_row_of_##NAME(rows, e), k, next.count[b], hashed);    \
            }                                                                                                       \
            if (round < 0) continue;                                                                                \
            if (B > 1) {                                                                                            \
                bad = sk_group_##NAME(T, rule, rows, order + at, 0, size, size > 1 ? 1.0 / (double)size : 1.0, here, far, hashed); \
                if (bad >= 0) return at + bad;                                                                      \
                continue;                                                                                           \
            }                                                                                                       \
            for (sk_size b = 1; b <= size; b++) {                                                                   \
                if (b < size && !sk_meets(here.k, stride, here.count, first, b)) continue;                          \
                bad = sk_group_##NAME(T, rule, rows, order + at, first, b, 1.0, here, far, hashed);                 \
                if (bad >= 0) return at + bad;                                                                      \
                first = b;                                                                                          \
            }                                                                                                       \
        }                                                                                                           \
        return -1;                                                                                                  \
    }                                                                                                               \
    static sk_size sk_run_##NAME(const sk_table *T, const sk_rule *rule, const sk_rows *rows, const int64_t *order, \
                                 sk_size lo, sk_size hi, sk_workspace workspace, uint64_t *shared_state) {          \
        /* copies on the stack: threads must not write to one cache line */                                         \
        uint64_t own_state = *shared_state, *state = &own_state;                                                    \
        sk_size bad = -1;                                                                                           \
        if (T->shift) {                                                                                             \
            bad = sk_steps_##NAME(T, rule, rows, order, lo, hi, workspace, state, 1);                               \
        } else {                                                                                                    \
            bad = sk_steps_##NAME(T, rule, rows, order, lo, hi, workspace, state, 0);                               \
        }                                                                                                           \
        *shared_state = own_state;                                                                                  \
        return bad;                                                                                                 \
    }

SK_STEPS(f32_i32, float, int32_t)
SK_STEPS(f32_i64, float, int64_t)
SK_STEPS(f64_i32, double, int32_t)
SK_STEPS(f64_i64, double, int64_t)

/* by the types of the rows: float32 or float64, indices of 32 or 64 bits */
static sk_size sk_run(int is_double, int is_long, const sk_table *T, const sk_rule *rule, const sk_rows *rows,
                      const int64_t *order, sk_size lo, sk_size hi, sk_workspace workspace, uint64_t *state) {
    sk_size (*const run[2][2])(const sk_table *, const sk_rule *, const sk_rows *, const int64_t *, sk_size, sk_size,
                               sk_workspace, uint64_t *) = {{sk_run_f32_i32, sk_run_f32_i64},
                                                                      {sk_run_f64_i32, sk_run_f64_i64}};
    return run[is_double][is_long](T, rule, rows, order, lo, hi, workspace, state);
}
#endif
