/* The blocks of classes with the highest scores of a row beside its label: its hard negatives.
 *
 * All rows meet a tile of the table before the next one does, a tile being a few blocks at every feature, packed:
 * rows that went through all of their features' weights in turn would wait for main memory. */
#ifndef SPARSEKIT_HARD_BLOCKS_H
#define SPARSEKIT_HARD_BLOCKS_H

#include <float.h>

#include "extreme/class_blocks.h"

/* blocks of a tile, whose scores of one row are in registers */
#define SK_TILE 4

#define SK_HARD_BLOCKS(NAME, REAL, INDEX, LOWEST)                                                                   \
    /* For examples lo .. hi - 1 put what is better of the tile from block `first` on into block (n_examples, m),   \
     * by falling score best. packed (n_features, SK_TILE SK_BLOCK) is room for the tile at the features that       \
     * rows use. */                                                                                                 \
    SK_MULTI(int, sk_hard_tile_##NAME,                                                                              \
             (const void *data_, const void *col_, const void *start_, sk_size width, const int64_t *of,            \
              const int64_t *y_, sk_size lo, sk_size hi, const int64_t *used, sk_size n_used, const void *W_,       \
              const void *bias_, sk_size stride, sk_size n_classes, sk_size first, sk_size m, int32_t *block,       \
              void *best_, void *packed_),                                                                          \
             (data_, col_, start_, width, of, y_, lo, hi, used, n_used, W_, bias_, stride, n_classes, first, m,     \
              block, best_, packed_)) {                                                                             \
        enum { SIZE = SK_TILE * SK_BLOCK };                                                                         \
        const REAL *data = (const REAL *)data_, *W = (const REAL *)W_, *bias = (const REAL *)bias_;                 \
        const INDEX *col = (const INDEX *)col_, *start = (const INDEX *)start_;                                     \
        REAL *packed = (REAL *)packed_, *best = (REAL *)best_, zero[SIZE];                                          \
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

/* by the types of the rows: float32 or float64, indices of 32 or 64 bits */
static int sk_hard_tile(int is_double, int is_long, const void *data, const void *col, const void *start,
                        sk_size width, const int64_t *of, const int64_t *y, sk_size lo, sk_size hi,
                        const int64_t *used, sk_size n_used, const void *W, const void *bias, sk_size stride,
                        sk_size n_classes, sk_size first, sk_size m, int32_t *block, void *best, void *packed) {
    int (*const tiles[2][2])(const void *, const void *, const void *, sk_size, const int64_t *, const int64_t *,
                             sk_size, sk_size, const int64_t *, sk_size, const void *, const void *, sk_size,
                             sk_size, sk_size, sk_size, int32_t *, void *, void *) = {{sk_hard_tile_f32_i32, sk_hard_tile_f32_i64},
                                                           {sk_hard_tile_f64_i32, sk_hard_tile_f64_i64}};
    return tiles[is_double][is_long](data, col, start, width, of, y, lo, hi, used, n_used, W, bias, stride, n_classes,
                                     first, m, block, best, packed);
}
#endif
