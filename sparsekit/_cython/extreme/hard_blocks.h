/* The hard negatives of a row: the blocks of classes with its highest scores, without its label.
 *
 * The table is processed in tiles: a few blocks at every feature, packed. All rows use a tile before the next one. Rows
 * that read all their features' weights in turn would be limited by main memory. */
#ifndef SPARSEKIT_HARD_BLOCKS_H
#define SPARSEKIT_HARD_BLOCKS_H

#include <float.h>

#include "extreme/class_blocks.h"

/* blocks of a tile, whose scores of one row are in registers */
#define SK_TILE 4

/* A tile of the table from block `first` on, and what it may improve: the best m blocks of each example. */
typedef struct {
    const int64_t *used; /* (n_used): features that rows have */
    sk_size n_used;
    const void *W, *bias; /* (n_features, stride), (stride) or NULL */
    sk_size stride, n_classes, first, m;
    int32_t *block; /* (n_examples, m) */
    void *best;     /* (n_examples, m): their scores, falling */
    void *packed;   /* (n_features, SK_TILE SK_BLOCK): workspace */
} sk_tile;

#define SK_HARD_BLOCKS(NAME, REAL, INDEX, LOWEST)                                                                   \
    /* For examples lo .. hi - 1 put what is better of the tile from block `first` on into block (n_examples, m),   \
     * by falling score best. packed (n_features, SK_TILE SK_BLOCK) is a buffer for the tile at the features that       \
     * rows use. */                                                                                                 \
    SK_MULTI(int, sk_hard_tile_##NAME,                                                                              \
             (const sk_rows *rows, sk_size lo, sk_size hi, const sk_tile *tile),                                    \
             (rows, lo, hi, tile)) {                                                                                \
        enum { SIZE = SK_TILE * SK_BLOCK };                                                                         \
        const REAL *data = (const REAL *)rows->x, *W = (const REAL *)tile->W, *bias = (const REAL *)tile->bias;     \
        const INDEX *col = (const INDEX *)rows->col, *start = (const INDEX *)rows->start;                           \
        const int64_t *of = rows->of, *y_ = rows->y, *used = tile->used;                                            \
        REAL *packed = (REAL *)tile->packed, *best = (REAL *)tile->best, zero[SIZE];                                \
        int32_t *block = tile->block;                                                                               \
        sk_size n_used = tile->n_used, stride = tile->stride, n_classes = tile->n_classes, first = tile->first;     \
        sk_size m = tile->m, width = rows->width;                                                                   \
        sk_size from = first * SK_BLOCK, size = stride - from < SIZE ? stride - from : SIZE;                        \
        sk_size n_blocks = (n_classes - from + SK_BLOCK - 1) / SK_BLOCK;                                            \
        n_blocks = n_blocks < SK_TILE ? n_blocks : SK_TILE;                                                         \
        for (sk_size j = 0; j < n_used; j++) {                                                                      \
            sk_size i = (sk_size)used[j];                                                                           \
            if (j + 8 < n_used) SK_PREFETCH(W + (sk_size)used[j + 8] * stride + from);                              \
            for (sk_size t = 0; t < size; t++) packed[i * SIZE + t] = W[i * stride + from + t];                     \
            for (sk_size t = size; t < SIZE; t++) packed[i * SIZE + t] = (REAL)0;                                   \
        }                                                                                                           \
        for (sk_size t = 0; t < SIZE; t++) zero[t] = bias != NULL && t < size ? bias[from + t] : (REAL)0;           \
        for (sk_size e = lo; e < hi; e++) {                                                                         \
            int64_t i_row = of != NULL ? of[e] : e, y = y_[e];                                                      \
            const REAL *x = data + (start != NULL ? (sk_size)start[i_row] : i_row * width);                         \
            const INDEX *c = start != NULL ? col + start[i_row] : NULL;                                             \
            sk_size len = start != NULL ? (sk_size)(start[i_row + 1] - start[i_row]) : width;                       \
            REAL a[SIZE], peak[SK_BLOCK], highest = LOWEST, *own = best + e * m;                                    \
            int32_t *blocks = block + e * m;                                                                        \
            for (sk_size t = 0; t < SIZE; t++) a[t] = zero[t];                                                      \
            for (sk_size i = 0; i < len; i++) {                                                                     \
                const REAL *row = packed + (c != NULL ? (sk_size)c[i] : i) * SIZE, xi = x[i];                       \
                SK_SIMD for (sk_size t = 0; t < SIZE; t++) a[t] += xi * row[t];                                     \
            }                                                                                                       \
            for (sk_size t = n_classes - from; t < SIZE; t++) a[t] = LOWEST;                                        \
            if (y >= from && y < from + SIZE) a[y - from] = LOWEST;                                                 \
            for (sk_size t = 0; t < SK_BLOCK; t++) {                                                                \
                peak[t] = a[t];                                                                                     \
                for (sk_size j = 1; j < SK_TILE; j++)                                                               \
                    peak[t] = a[j * SK_BLOCK + t] > peak[t] ? a[j * SK_BLOCK + t] : peak[t];                        \
            }                                                                                                       \
            SK_SIMD_MAX(reduction(max : highest))                                                                   \
            for (sk_size t = 0; t < SK_BLOCK; t++) highest = peak[t] > highest ? peak[t] : highest;                 \
            if (!(highest > own[m - 1])) continue; /* most tiles have nothing */                                    \
            for (sk_size j = 0; j < n_blocks; j++) {                                                                \
                REAL top = LOWEST;                                                                                  \
                sk_size at = m - 1;                                                                                 \
                SK_SIMD_MAX(reduction(max : top))                                                                   \
                for (sk_size t = 0; t < SK_BLOCK; t++)                                                              \
                    top = a[j * SK_BLOCK + t] > top ? a[j * SK_BLOCK + t] : top;                                    \
                if (!(top > own[at])) continue;                                                                     \
                for (; at > 0 && top > own[at - 1]; at--) {                                                         \
                    own[at] = own[at - 1];                                                                          \
                    blocks[at] = blocks[at - 1];                                                                    \
                }                                                                                                   \
                own[at] = top;                                                                                      \
                blocks[at] = (int32_t)(first + j);                                                                  \
            }                                                                                                       \
        }                                                                                                           \
        return 0;                                                                                                   \
    }

SK_HARD_BLOCKS(f32_i32, float, int32_t, -FLT_MAX)
SK_HARD_BLOCKS(f32_i64, float, int64_t, -FLT_MAX)
SK_HARD_BLOCKS(f64_i32, double, int32_t, -DBL_MAX)
SK_HARD_BLOCKS(f64_i64, double, int64_t, -DBL_MAX)

static int sk_hard_tile(sk_types types, const sk_rows *rows, sk_size lo, sk_size hi, sk_tile tile) {
    int (*const tiles[2][2])(const sk_rows *, sk_size, sk_size, const sk_tile *) = {
        {sk_hard_tile_f32_i32, sk_hard_tile_f32_i64}, {sk_hard_tile_f64_i32, sk_hard_tile_f64_i64}};
    return tiles[types.is_double][types.is_long](rows, lo, hi, &tile);
}
#endif
