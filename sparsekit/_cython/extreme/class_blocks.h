/* Adaptive steps with whole blocks of negatives, on the softmax over the label and the weighted classes drawn.
 *
 * The weights are stored by feature, W (n_features, stride), so SK_BLOCK adjacent classes are one or two cache lines at
 * every feature. As negatives they cost little more than a single class, and their scores and changes are vectors. Each
 * class is in as many draws as its block. */
#ifndef SPARSEKIT_CLASS_BLOCKS_H
#define SPARSEKIT_CLASS_BLOCKS_H

#include "extreme/block_draws.h"

#define SK_CLASS_BLOCKS(NAME, REAL, INDEX)                                                                          \
    /* Add the centre's entries to a row of weights that is shrunk to zeros by 1 / (1 + s by). */                   \
    SK_INLINE void sk_center_##NAME(const sk_metric *M, const sk_blocks *B, sk_size j, sk_size b, REAL s,           \
                                    const REAL *restrict by, REAL *restrict row) {                                  \
        const REAL *center = (const REAL *)M->center;                                                               \
        for (int64_t e = M->start[j * B->n_blocks + b]; e < M->start[j * B->n_blocks + b + 1]; e++)                 \
            row[M->lane[e]] += center[e] * ((REAL)1 - (REAL)1 / ((REAL)1 + s * by[M->lane[e]]));                    \
    }                                                                                                               \
    /* Adds a row to the sums of its features; squares: the sum of the gradient's squares. Sets xs and xr, x and the\
     * ridge in their metric. Adds to the squared length of x, and to the change of a score by a step. */           \
    SK_INLINE void sk_feature_steps_##NAME(const sk_rule *rule, const sk_metric *M, const REAL *restrict x,         \
                                           const INDEX *restrict c, sk_size len, double squares, REAL *xs, REAL *xr,\
                                           double *length_, double *reach_) {                                       \
        double unit = M->totals[3], times = M->n_threads, length = *length_, reach = *reach_;                       \
        int ridge = rule->ridge > 0.0;                                                                              \
        if (c == NULL) {                                                                                            \
            double *features = M->features, *rows = M->rows, often = rule->ridge * unit * unit * M->totals[1];      \
            SK_SIMD_WITH(reduction(+ : length, reach))                                                              \
            for (sk_size i = 0; i < len; i++) {                                                                     \
                double part = (double)x[i] * unit, scale;                                                           \
                rows[i] += times;                                                                                   \
                features[i] += times * part * part * squares;                                                       \
                length += part * part;                                                                              \
                scale = features[i] > SK_LEAST_SQUARES ? 1.0 / sqrt(features[i]) : 0.0;                             \
                xs[i] = (REAL)(part * unit * scale);                                                                \
                reach += part * part * scale;                                                                       \
                scale *= often / rows[i];                                                                           \
                xr[i] = (REAL)(scale < SK_MOST_SHRINKAGE ? scale : SK_MOST_SHRINKAGE);                              \
            }                                                                                                       \
        } else {                                                                                                    \
            for (sk_size i = 0; i < len; i++) {                                                                     \
                sk_size j = (sk_size)c[i];                                                                          \
                double part = (double)x[i] * unit, scale;                                                           \
                M->rows[j] += times;                                                                                \
                M->features[j] += times * part * part * squares;                                                    \
                length += part * part;                                                                              \
                scale = M->features[j] > SK_LEAST_SQUARES ? 1.0 / sqrt(M->features[j]) : 0.0;                       \
                xs[i] = (REAL)(part * unit * scale);                                                                \
                reach += part * part * scale;                                                                       \
                if (!ridge) continue;                                                                               \
                scale *= rule->ridge * unit * unit * M->totals[1] / M->rows[j];                                     \
                xr[i] = (REAL)(scale < SK_MOST_SHRINKAGE ? scale : SK_MOST_SHRINKAGE);                              \
            }                                                                                                       \
        }                                                                                                           \
        *length_ = length;                                                                                          \
        *reach_ = reach;                                                                                            \
    }                                                                                                               \
    /* The changes of one row in the metric of the sums, from the gradient g along x. The ridge shrinks in the same \
     * metric, since another one would change the solution. Only weights of the row's features and classes shrink.  \
     * The factor is the ridge over the part of rows with the feature, times the weight of the drawn block (1 for   \
     * the label). The mean over the draws is the ridge. */                                                         \
    SK_INLINE void sk_adapt_##NAME(const sk_table *T, const sk_rule *rule, const sk_blocks *B,                      \
                                   const sk_metric *M, sk_workspace workspace, const REAL *restrict x,              \
                                   const INDEX *restrict c, sk_size len, int64_t y, const int64_t *block,           \
                                   sk_size count) {                                                                 \
        sk_size n = count * SK_BLOCK, stride = B->stride, p = T->n_features;                                        \
        double *g = workspace.g, *shrink = workspace.rho, squares = 0.0, length = 0.0, reach = 0.0, most = 0.0, root; \
        double bias_scale = 0.0, times = M->n_threads;                                                              \
        REAL *xs = (REAL *)M->workspace, *xr = xs + p, *W = (REAL *)T->W, *bias = (REAL *)T->bias;                  \
        const REAL *table = M->start == NULL ? (const REAL *)M->center : NULL, zeros[SK_BLOCK] = {0};               \
        int ridge = rule->ridge > 0.0;                                                                              \
        M->totals[1] += times;                                                                                      \
        SK_SIMD_WITH(reduction(+ : squares))                                                                        \
        for (sk_size j = 0; j <= n; j++) squares += g[j] * g[j];                                                    \
        if (bias != NULL && squares > 0.0) {                                                                        \
            M->totals[2] += times * squares;                                                                        \
            length = 1.0;                                                                                           \
            reach = bias_scale = 1.0 / sqrt(M->totals[2]);                                                          \
        }                                                                                                           \
        sk_feature_steps_##NAME(rule, M, x, c, len, squares, xs, xr, &length, &reach);                              \
        M->totals[0] += times * length * squares;                                                                   \
        root = rule->eta * sqrt(M->totals[0]);                                                                      \
        M->classes[y] += times * length * g[0] * g[0];                                                              \
        shrink[0] = M->classes[y] > SK_LEAST_SQUARES ? root / sqrt(M->classes[y]) : 0.0;                            \
        for (sk_size j = 0; j < count; j++) {                                                                       \
            double *sums = M->classes + block[j] * SK_BLOCK, *own = g + 1 + j * SK_BLOCK;                           \
            double *by = shrink + 1 + j * SK_BLOCK;                                                                 \
            SK_SIMD for (sk_size t = 0; t < SK_BLOCK; t++) {                                                        \
                sums[t] += times * length * own[t] * own[t];                                                        \
                by[t] = sums[t] > SK_LEAST_SQUARES ? root / sqrt(sums[t]) : 0.0;                                    \
            }                                                                                                       \
        }                                                                                                           \
        for (sk_size j = 0; j <= n; j++) {                                                                          \
            g[j] *= shrink[j];                                                                                      \
            most = fabs(g[j]) > most ? fabs(g[j]) : most;                                                           \
        }                                                                                                           \
        most = 1.0 / (1.0 + most * reach / SK_SCORE_STEP);                                                          \
        for (sk_size j = 0; j <= n; j++) g[j] *= most;                                                              \
        if (ridge)                                                                                                  \
            for (sk_size j = 0; j <= n; j++) {                                                                      \
                /* the label among the negatives, and what is beyond the last class, have weight 0 */               \
                shrink[j] *= most * (j > 0 ? workspace.r[j] : 1.0);                                                 \
            }                                                                                                       \
        for (sk_size j = 0; j < count; j++) {                                                                       \
            sk_size from = (sk_size)block[j] * SK_BLOCK;                                                            \
            REAL *base = W + from, a[SK_BLOCK], by[SK_BLOCK];                                                       \
            for (sk_size t = 0; t < SK_BLOCK; t++) {                                                                \
                a[t] = (REAL)g[1 + j * SK_BLOCK + t];                                                               \
                by[t] = ridge ? (REAL)shrink[1 + j * SK_BLOCK + t] : (REAL)0;                                       \
            }                                                                                                       \
            if (bias != NULL) {                                                                                     \
                REAL b = (REAL)bias_scale, s = (REAL)(rule->ridge * bias_scale);                                    \
                for (sk_size t = 0; t < SK_BLOCK; t++)                                                              \
                    bias[from + t] = (bias[from + t] - b * a[t]) / ((REAL)1 + s * by[t]);                           \
            }                                                                                                       \
            for (sk_size i = 0; i < len; i++) {                                                                     \
                sk_size feature = c != NULL ? (sk_size)c[i] : i;                                                    \
                REAL *row = base + feature * stride, xi = xs[i];                                                    \
                if (ridge) {                                                                                        \
                    const REAL *m = table != NULL ? table + feature * stride + from : zeros;                        \
                    REAL s = xr[i];                                                                                 \
                    SK_SIMD for (sk_size t = 0; t < SK_BLOCK; t++)                                                  \
                        row[t] = (row[t] - xi * a[t] - m[t]) / ((REAL)1 + s * by[t]) + m[t];                        \
                    if (M->start != NULL) sk_center_##NAME(M, B, feature, (sk_size)block[j], s, by, row);           \
                } else {                                                                                            \
                    SK_SIMD for (sk_size t = 0; t < SK_BLOCK; t++) row[t] -= xi * a[t];                             \
                }                                                                                                   \
            }                                                                                                       \
        }                                                                                                           \
        if (bias != NULL)                                                                                           \
            bias[y] = (REAL)(((double)bias[y] - bias_scale * g[0]) /                                                \
                             (1.0 + (ridge ? rule->ridge * bias_scale * shrink[0] : 0.0)));                         \
        for (sk_size i = 0; i < len; i++) {                                                                         \
            sk_size feature = c != NULL ? (sk_size)c[i] : i;                                                        \
            sk_size block_of = (sk_size)(y / SK_BLOCK), lane = (sk_size)(y % SK_BLOCK);                             \
            REAL *row = W + feature * stride + block_of * SK_BLOCK, by[SK_BLOCK] = {0}, m;                          \
            row[lane] -= xs[i] * (REAL)g[0];                                                                        \
            if (!ridge) continue;                                                                                   \
            by[lane] = (REAL)shrink[0];                                                                             \
            m = table != NULL ? table[feature * stride + y] : (REAL)0;                                              \
            row[lane] = (row[lane] - m) / ((REAL)1 + xr[i] * by[lane]) + m;                                         \
            if (M->start != NULL) sk_center_##NAME(M, B, feature, block_of, xr[i], by, row);                        \
        }                                                                                                           \
    }                                                                                                               \
    /* Examples order[lo .. hi). Returns -1, or the index of the first step that was not finite, where it stops. The\
     * workspace has n_negatives + 1 entries in k, f, g, r and rho, blocks and weights 2 n_drawn. */                \
    SK_MULTI(sk_size, sk_block_steps_##NAME,                                                                        \
             (const sk_table *T, const sk_rule *rule, const sk_blocks *B, const sk_metric *M, const sk_rows *rows,  \
              const int64_t *order, sk_size lo, sk_size hi, sk_workspace workspace, uint64_t *shared_state),        \
             (T, rule, B, M, rows, order, lo, hi, workspace, shared_state)) {                                       \
        const REAL *data = (const REAL *)rows->x;                                                                   \
        const INDEX *col = (const INDEX *)rows->col, *start = (const INDEX *)rows->start;                           \
        const int64_t *of = rows->of, *y_ = rows->y;                                                                \
        const double *weight_ = rows->weight, *own = M->own;                                                        \
        double *weights = workspace.weights;                                                                        \
        int64_t *blocks = workspace.blocks, *slot = workspace.slot;                                                 \
        sk_size width = rows->width;                                                                                \
        REAL *W = (REAL *)T->W, *bias = (REAL *)T->bias;                                                            \
        sk_size K = T->n_classes, stride = B->stride, n_next = 0;                                                   \
        sk_size most = B->n_drawn;                                                                                  \
        uint64_t own_state = *shared_state, *state = &own_state;                                                    \
        double *f = workspace.f, *g = workspace.g, *r = workspace.r, unused = 0.0;                                  \
        sk_size bad = -1;                                                                                           \
        if (lo < hi)                                                                                                \
            n_next = sk_draw_blocks(B, state, blocks + (lo & 1) * most, weights + (lo & 1) * most, slot);           \
        for (sk_size at = lo; at < hi; at++) {                                                                      \
            int64_t e = order[at], i_row = of != NULL ? of[e] : e, y = y_[e];                                       \
            const int64_t *block = blocks + (at & 1) * most;                                                        \
            const double *w = weights + (at & 1) * most;                                                            \
            sk_size count = n_next, n = count * SK_BLOCK, len = width;                                              \
            const REAL *x = data + i_row * width;                                                                   \
            const INDEX *c = NULL;                                                                                  \
            REAL fy = bias != NULL ? bias[y] : (REAL)0;                                                             \
            if (start != NULL) {                                                                                    \
                x = data + start[i_row];                                                                            \
                c = col + start[i_row];                                                                             \
                len = (sk_size)(start[i_row + 1] - start[i_row]);                                                   \
            }                                                                                                       \
            if (at + 1 < hi) { /* the next row's weights are on their way while this one is worked on */            \
                int64_t e1 = order[at + 1], i1 = of != NULL ? of[e1] : e1;                                          \
                int64_t *b1 = blocks + ((at + 1) & 1) * most;                                                       \
                n_next = sk_draw_blocks(B, state, b1, weights + ((at + 1) & 1) * most, slot);                       \
                if (start != NULL) {                                                                                \
                    const INDEX *c1 = col + start[i1];                                                              \
                    sk_size len1 = (sk_size)(start[i1 + 1] - start[i1]);                                            \
                    int64_t y1 = y_[e1];                                                                            \
                    for (sk_size i = 0, lines = 0; i < len1 && lines < SK_LINES_AHEAD; i++, lines += n_next + 1) {  \
                        const REAL *row = W + (sk_size)c1[i] * stride;                                              \
                        SK_PREFETCH(row + y1);                                                                      \
                        for (sk_size j = 0; j < n_next; j++) {                                                      \
                            if (M->start != NULL) SK_PREFETCH(M->start + (sk_size)c1[i] * B->n_blocks + b1[j]);     \
                            for (sk_size t = 0; t < SK_BLOCK; t += (sk_size)(64 / sizeof(REAL)))                    \
                                SK_PREFETCH(row + b1[j] * SK_BLOCK + t);                                            \
                        }                                                                                           \
                    }                                                                                               \
                }                                                                                                   \
                if (at + 3 < hi) {                                                                                  \
                    int64_t e3 = order[at + 3], i3 = of != NULL ? of[e3] : e3;                                      \
                    SK_PREFETCH(y_ + e3);                                                                           \
                    if (start != NULL) SK_PREFETCH(start + i3);                                                     \
                }                                                                                                   \
                if (at + 2 < hi && start != NULL) {                                                                 \
                    int64_t e2 = order[at + 2], i2 = of != NULL ? of[e2] : e2;                                      \
                    SK_PREFETCH(data + start[i2]);                                                                  \
                    SK_PREFETCH(col + start[i2]);                                                                   \
                }                                                                                                   \
            }                                                                                                       \
            for (sk_size i = 0; i < len; i++) fy += x[i] * W[(c != NULL ? (sk_size)c[i] : i) * stride + y];         \
            f[0] = (double)fy - (own != NULL ? own[e] : 0.0);                                                       \
            for (sk_size j = 0; j < count; j++) {                                                                   \
                sk_size from = (sk_size)block[j] * SK_BLOCK;                                                        \
                const REAL *base = W + from;                                                                        \
                REAL a[SK_BLOCK];                                                                                   \
                for (sk_size t = 0; t < SK_BLOCK; t++) a[t] = bias != NULL ? bias[from + t] : (REAL)0;              \
                for (sk_size i = 0; i < len; i++) {                                                                 \
                    const REAL *row = base + (c != NULL ? (sk_size)c[i] : i) * stride, xi = x[i];                   \
                    SK_SIMD for (sk_size t = 0; t < SK_BLOCK; t++) a[t] += xi * row[t];                             \
                }                                                                                                   \
                for (sk_size t = 0; t < SK_BLOCK; t++) {                                                            \
                    f[1 + j * SK_BLOCK + t] = (double)a[t];                                                         \
                    r[1 + j * SK_BLOCK + t] = w[j];                                                                 \
                }                                                                                                   \
                /* the label among the negatives, and what is beyond the last class, have weight 0; a score there could\
                 * shift the others out of range */                                                                 \
                for (sk_size t = K - from; t < SK_BLOCK; t++) {                                                     \
                    r[1 + j * SK_BLOCK + t] = 0.0;                                                                  \
                    f[1 + j * SK_BLOCK + t] = f[0];                                                                 \
                }                                                                                                   \
                if (y >= from && y < from + SK_BLOCK) {                                                             \
                    r[1 + j * SK_BLOCK + y - from] = 0.0;                                                           \
                    f[1 + j * SK_BLOCK + y - from] = f[0];                                                          \
                }                                                                                                   \
            }                                                                                                       \
            sk_slopes(rule, n, 1.0, NULL, f, r, g, &unused, K);                                                     \
            if (!(fabs(g[0]) < 1e300)) {                                                                            \
                bad = at;                                                                                           \
                break;                                                                                              \
            }                                                                                                       \
            if (weight_ != NULL)                                                                                    \
                for (sk_size j = 0; j <= n; j++) g[j] *= weight_[e];                                                \
            sk_adapt_##NAME(T, rule, B, M, workspace, x, c, len, y, block, count);                                  \
        }                                                                                                           \
        *shared_state = own_state;                                                                                  \
        return bad;                                                                                                 \
    }

SK_CLASS_BLOCKS(f32_i32, float, int32_t)
SK_CLASS_BLOCKS(f32_i64, float, int64_t)
SK_CLASS_BLOCKS(f64_i32, double, int32_t)
SK_CLASS_BLOCKS(f64_i64, double, int64_t)

/* types of the rows: float32 or float64, indices of 32 or 64 bits */
typedef struct {
    int is_double, is_long;
} sk_types;

static sk_size sk_block_steps(sk_types types, const sk_table *T, const sk_rule *rule, const sk_blocks *B,
                              sk_metric metric, const sk_rows *rows, const int64_t *order, const sk_size *range,
                              sk_workspace workspace, uint64_t *state) {
    sk_size (*const steps[2][2])(const sk_table *, const sk_rule *, const sk_blocks *, const sk_metric *,
                                 const sk_rows *, const int64_t *, sk_size, sk_size, sk_workspace, uint64_t *) = {{sk_block_steps_f32_i32, sk_block_steps_f32_i64},
                                              {sk_block_steps_f64_i32, sk_block_steps_f64_i64}};
    return steps[types.is_double][types.is_long](T, rule, B, &metric, rows, order, range[0], range[1], workspace, state);
}
#endif
