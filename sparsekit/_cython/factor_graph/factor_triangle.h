/* The Cholesky factor L of K for the structures in use: triangular systems, and removal of a structure. With many
 * structures L exceeds the caches, and passes over it dominate the time of a step. */
#ifndef SPARSEKIT_FACTOR_TRIANGLE_H
#define SPARSEKIT_FACTOR_TRIANGLE_H

#include <math.h>

#include "shared/simd.h"

SK_MULTI(double, fg_line_dot,
         (sk_size m, const double *restrict a, const double *restrict b),
         (m, a, b)) {
    double s = 0.0;
    SK_SIMD_WITH(reduction(+ : s)) for (sk_size i = 0; i < m; i++) s += a[i] * b[i];
    return s;
}

/* x[0] = c x[0] + s x[1], x[1] = c x[1] - s x[0] and so on along the row: `n` rotations, (c, s) of each */
SK_INLINE double fg_rotations(sk_size n, const double *restrict turn, double carry, double *restrict x) {
    for (sk_size j = 0; j < n; j++) {
        const double next = x[j + 1], c = turn[2 * j], s = turn[2 * j + 1];
        x[j] = c * carry + s * next;
        carry = c * next - s * carry;
    }
    return carry;
}

/* Removes row `gone` of the m rows of L. Rotations of adjacent columns restore the triangle, and are applied to a and b
 * too, which are L^-1 times vectors. turn (2 m): workspace. Four rows at a time, since each entry of a row depends on
 * the one before it. */
SK_MULTI(void, fg_lower_remove_row,
         (sk_size m, sk_size size, double *restrict L, sk_size gone, double *restrict a, double *restrict b,
          double *restrict turn),
         (m, size, L, gone, a, b, turn)) {
    for (sk_size first = gone; first < m - 1; first += 4) {
        const sk_size done = first - gone, rows = m - 1 - first < 4 ? m - 1 - first : 4;
        double *restrict x = L + first * size, carry[4];
        for (sk_size r = 0; r < rows; r++)
            memcpy(x + r * size, x + (r + 1) * size, (size_t)(first + r + 2) * sizeof(double));
        if (rows == 4) {
            double *restrict p = x + gone, *restrict q = p + size, *restrict u = q + size, *restrict v = u + size;
            double k = p[0], l = q[0], n = u[0], o = v[0];
            for (sk_size j = 0; j < done; j++) {
                const double c = turn[2 * j], s = turn[2 * j + 1];
                const double pj = p[j + 1], qj = q[j + 1], uj = u[j + 1], vj = v[j + 1];
                p[j] = c * k + s * pj;
                q[j] = c * l + s * qj;
                u[j] = c * n + s * uj;
                v[j] = c * o + s * vj;
                k = c * pj - s * k;
                l = c * qj - s * l;
                n = c * uj - s * n;
                o = c * vj - s * o;
            }
            carry[0] = k, carry[1] = l, carry[2] = n, carry[3] = o;
        } else
            for (sk_size r = 0; r < rows; r++) carry[r] = fg_rotations(done, turn, x[r * size + gone], x + r * size + gone);
        for (sk_size r = 0; r < rows; r++) {
            const sk_size i = first + r;
            double *restrict row = x + r * size, *restrict own = turn + 2 * (i - gone), length;
            carry[r] = fg_rotations(r, turn + 2 * done, carry[r], row + first);
            length = hypot(carry[r], row[i + 1]);
            own[0] = carry[r] / length;
            own[1] = row[i + 1] / length;
            row[i] = length;
        }
    }
    if (gone < m - 1) {
        a[m - 1] = fg_rotations(m - 1 - gone, turn, a[gone], a + gone);
        b[m - 1] = fg_rotations(m - 1 - gone, turn, b[gone], b + gone);
    }
}

/* Four rows of L times x: four independent chains of additions. GCC vectorises it in a function of its own only. */
SK_MULTI(void, fg_four_by_one,
         (sk_size n, sk_size size, const double *restrict L, const double *restrict x, double *restrict sums),
         (n, size, L, x, sums)) {
    const double *restrict p = L, *restrict q = L + size, *restrict r = L + 2 * size, *restrict s = L + 3 * size;
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    SK_SIMD_WITH(reduction(+ : a, b, c, d)) for (sk_size j = 0; j < n; j++) {
        a += p[j] * x[j];
        b += q[j] * x[j];
        c += r[j] * x[j];
        d += s[j] * x[j];
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

/* Each of the n rows of X becomes L^-1 times it. Rows of L and X are `size` apart; four of L are read once for all. */
SK_MULTI(void, fg_lower_forward,
         (sk_size m, sk_size size, const double *restrict L, sk_size n, double *restrict X),
         (m, size, L, n, X)) {
    sk_size i = 0;
    for (; i + 4 <= m; i += 4)
        for (sk_size k = 0; k < n; k++) {
            const double *restrict row = L + i * size;
            double *restrict x = X + k * size, sums[4];
            fg_four_by_one(i, size, row, x, sums);
            for (sk_size r = 0; r < 4; r++, row += size) {
                double s = sums[r];
                for (sk_size j = i; j < i + r; j++) s += row[j] * x[j];
                x[i + r] = (x[i + r] - s) / row[i + r];
            }
        }
    for (; i < m; i++)
        for (sk_size k = 0; k < n; k++) {
            const double *restrict row = L + i * size;
            double *restrict x = X + k * size, s = 0.0;
            SK_SIMD_WITH(reduction(+ : s)) for (sk_size j = 0; j < i; j++) s += row[j] * x[j];
            x[i] = (x[i] - s) / row[i];
        }
}

/* x = L^-T x */
SK_MULTI(void, fg_lower_back,
         (sk_size m, sk_size size, const double *restrict L, double *restrict x),
         (m, size, L, x)) {
    sk_size i = m;
    for (; i >= 4; i -= 4) { /* four rows at a time, for which x is read and written once */
        const double *restrict p = L + (i - 4) * size, *restrict q = p + size, *restrict r = q + size;
        const double *restrict s = r + size;
        const double d = x[i - 1] / s[i - 1], c = (x[i - 2] - d * s[i - 2]) / r[i - 2];
        const double b = (x[i - 3] - d * s[i - 3] - c * r[i - 3]) / q[i - 3];
        const double a = (x[i - 4] - d * s[i - 4] - c * r[i - 4] - b * q[i - 4]) / p[i - 4];
        x[i - 1] = d, x[i - 2] = c, x[i - 3] = b, x[i - 4] = a;
        SK_SIMD for (sk_size j = 0; j < i - 4; j++) x[j] -= (p[j] * a + q[j] * b) + (r[j] * c + s[j] * d);
    }
    for (i--; i >= 0; i--) {
        const double *restrict row = L + i * size;
        const double by = x[i] /= row[i];
        SK_SIMD for (sk_size j = 0; j < i; j++) x[j] -= row[j] * by;
    }
}

#endif
