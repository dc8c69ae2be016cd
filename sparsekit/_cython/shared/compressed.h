/* Checks of the arrays of a CSR or CSC matrix: the first error in them. An error shows in the sign bits of a
 * whole block, combined by OR. That loop has no branch and costs a small part of a product's time. */
#ifndef SPARSEKIT_COMPRESSED_H
#define SPARSEKIT_COMPRESSED_H

#include "shared/simd.h"

/* entries between two checks of the signs: few, so that they stay in the first cache for the second reading */
#define SK_CHECK_BLOCK 2048

/* Indices are in 0 .. top, 0 <= top + 1: v < 0 has its own sign, and for others top - v cannot overflow. Pointers fall
 * nowhere where they and their differences are not negative; of such numbers no difference overflows either. */
#define SK_COMPRESSED(NAME, INT, UNSIGNED)                                                                       \
    SK_MULTI(UNSIGNED, sk_index_signs_##NAME, (const INT *restrict v, sk_size n, INT top), (v, n, top)) {         \
        UNSIGNED all = 0;                                                                                        \
        for (sk_size k = 0; k < n; k++) all |= (UNSIGNED)v[k] | ((UNSIGNED)top - (UNSIGNED)v[k]);                \
        return all >> (8 * sizeof(INT) - 1);                                                                     \
    }                                                                                                            \
    /* of v[1], ..., v[n] after v[0] */                                                                          \
    SK_MULTI(UNSIGNED, sk_step_signs_##NAME, (const INT *restrict v, sk_size n), (v, n)) {                        \
        UNSIGNED all = 0;                                                                                        \
        for (sk_size k = 0; k < n; k++) all |= (UNSIGNED)v[k + 1] | ((UNSIGNED)v[k + 1] - (UNSIGNED)v[k]);       \
        return all >> (8 * sizeof(INT) - 1);                                                                     \
    }                                                                                                            \
    /* the first position of an index outside of 0 .. top, or -1 */                                                 \
    static sk_size sk_index_fault_##NAME(const INT *v, sk_size n, INT top) {                                     \
        for (sk_size lo = 0; lo < n; lo += SK_CHECK_BLOCK) {                                                     \
            sk_size size = n - lo < SK_CHECK_BLOCK ? n - lo : SK_CHECK_BLOCK;                                    \
            if (!sk_index_signs_##NAME(v + lo, size, top)) continue;                                             \
            for (sk_size k = lo;; k++)                                                                           \
                if (v[k] < 0 || v[k] > top) return k;                                                            \
        }                                                                                                        \
        return -1;                                                                                               \
    }                                                                                                            \
    /* the first of n + 1 pointers that is not 0 (the first), less than the one before or beyond ``most``, or -1 */ \
    static sk_size sk_pointer_fault_##NAME(const INT *v, sk_size n, int64_t most) {                              \
        if (v[0] != 0) return 0;                                                                                 \
        for (sk_size lo = 0; lo < n; lo += SK_CHECK_BLOCK) {                                                     \
            sk_size size = n - lo < SK_CHECK_BLOCK ? n - lo : SK_CHECK_BLOCK;                                    \
            if (!sk_step_signs_##NAME(v + lo, size) && v[lo + size] <= most) continue;                           \
            for (sk_size k = lo + 1;; k++)                                                                       \
                if (v[k] < v[k - 1] || v[k] > most) return k;                                                    \
        }                                                                                                        \
        return -1;                                                                                               \
    }

SK_COMPRESSED(i32, int32_t, uint32_t)
SK_COMPRESSED(i64, int64_t, uint64_t)

#endif
