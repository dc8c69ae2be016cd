/* The best structure of a factor, by its scores: sequences, matchings, joint assignments (trees are in
 * trees.h). Every function returns the score of the structure that it wrote, summed over its parts. Its _buffer_size
 * function gives the size of its workspace in doubles.
 *
 * Scores are finite, their sums too. Forbidden parts may have huge negative scores, as -1e12. If an allowed
 * structure exists, a method compares and adds only sums of allowed parts, so they keep their digits. If each
 * structure has forbidden parts, the answer is the best up to the rounding of their scores. One exception:
 * exactly one of a group must be taken (the tags at a position, the arcs into a word, the columns of a row).
 * If all of it are forbidden alike, the other scores lose no digits.
 *
 * Loops over maxima store no maximiser, which keeps them simple. It is found afterwards, along the best
 * structure only, which is cheap. The same terms rounded the same way give the same number, so equality is
 * the right test. */
#ifndef SPARSEKIT_STRUCTURES_H
#define SPARSEKIT_STRUCTURES_H

#include "shared/kernels.h"

SK_INLINE double sk_top(const double *restrict x, sk_size n) {
    double top = -INFINITY;
    SK_SIMD_MAX(reduction(max : top))
    for (sk_size j = 0; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

/* the first entry that equals the value; n if none does (scores that are not numbers) */
SK_INLINE sk_size sk_index_of(const double *restrict x, sk_size n, double value) {
    sk_size j = 0;
    while (j < n && x[j] != value) j++;
    return j;
}

SK_INLINE double *sk_take(double **work, sk_size n) {
    double *part = *work;
    *work += n;
    return part;
}

/* indices are stored in the array of doubles, which are at least as large */
SK_INLINE sk_size *sk_take_indices(double **work, sk_size n) { return (sk_size *)sk_take(work, n); }

/* the largest entry, or 0 where none is finite */
SK_INLINE double sk_finite_top(const double *restrict x, sk_size n) {
    const double top = sk_top(x, n);
    return top > -INFINITY ? top : 0.0;
}

static sk_size sk_viterbi_buffer_size(sk_size T, sk_size K) { return (T + 1) * K; }

/* tags (T,): the best sequence by unary (T, K) and trans [previous, next], (K, K) tables that are `step` numbers apart,
 * K^2 or, where all positions have the same, 0. Returns its score: -inf where none is allowed. */
SK_MULTI(double, sk_viterbi,
         (sk_size T, sk_size K, const double *restrict unary, const double *restrict trans, sk_size step,
          int32_t *restrict tags, double *restrict work),
         (T, K, unary, trans, step, tags, work)) {
    double *restrict best = work + T * K, value;
    double top = sk_finite_top(unary, K);
    for (sk_size k = 0; k < K; k++) work[k] = unary[k] - top;
    for (sk_size t = 1; t < T; t++) {
        const double *before = work + (t - 1) * K, *block = trans + (t - 1) * step;
        const double *restrict u = unary + t * K;
        double *restrict now = work + t * K;
        sk_size j = 0;
        for (sk_size k = 0; k < K; k++) best[k] = -INFINITY;
        /* four previous tags a pass: the running maxima are loaded and stored less often */
        for (; j + 4 <= K; j += 4) {
            const double *restrict p = block + j * K, *restrict q = p + K, *restrict r = q + K,
                         *restrict s = r + K;
            double a = before[j], b = before[j + 1], c = before[j + 2], d = before[j + 3];
            SK_SIMD
            for (sk_size k = 0; k < K; k++) {
                double e = a + p[k], f = b + q[k], g = c + r[k], h = d + s[k];
                e = e > f ? e : f;
                g = g > h ? g : h;
                e = e > g ? e : g;
                best[k] = e > best[k] ? e : best[k];
            }
        }
        for (; j < K; j++) {
            const double *restrict p = block + j * K;
            double a = before[j];
            SK_SIMD
            for (sk_size k = 0; k < K; k++) {
                double e = a + p[k];
                best[k] = e > best[k] ? e : best[k];
            }
        }
        top = sk_finite_top(u, K);
        for (sk_size k = 0; k < K; k++) now[k] = best[k] + (u[k] - top);
    }
    {
        const double *last = work + (T - 1) * K;
        sk_size k = sk_index_of(last, K, sk_top(last, K));
        tags[T - 1] = k < K ? (int32_t)k : 0;
    }
    for (sk_size t = T - 1; t > 0; t--) {
        const double *before = work + (t - 1) * K, *into = trans + (t - 1) * step + tags[t];
        double most = -INFINITY;
        int32_t at = 0;
        for (sk_size j = 0; j < K; j++) {
            double e = before[j] + into[j * K];
            if (e > most) {
                most = e;
                at = (int32_t)j;
            }
        }
        tags[t - 1] = at;
    }
    value = unary[tags[0]];
    for (sk_size t = 1; t < T; t++) {
        value += trans[(t - 1) * step + tags[t - 1] * K + tags[t]];
        value += unary[t * K + tags[t]];
    }
    return value;
}

static sk_size sk_matching_buffer_size(sk_size m, sk_size n) {
    sk_size few = m < n ? m : n, many = m < n ? n : m;
    return 6 * many + 2 * few + (m > n ? m * n : 0);
}

/* column (m,): the column of each row by scores (m, n); with m > n the row of each column, (n,).
 *
 * Shortest augmenting paths: columns have prices, at which each matched row has one of its best
 * columns, and a column without a row costs nothing. Each row without a column finds by Dijkstra's algorithm
 * the chain of moves to a free column with the least loss. */
SK_MULTI(double, sk_matching,
         (sk_size m, sk_size n, const double *scores, sk_size *restrict column, double *work),
         (m, n, scores, column, work)) {
    if (m > n) {
        double *turned = sk_take(&work, m * n);
        for (sk_size i = 0; i < m; i++)
            for (sk_size j = 0; j < n; j++) turned[j * m + i] = scores[i * n + j];
        sk_size t = m;
        m = n;
        n = t;
        scores = turned;
    }
    double *restrict price = sk_take(&work, n), *restrict open = sk_take(&work, n);
    double *restrict gain = sk_take(&work, n), *restrict final = sk_take(&work, n);
    sk_size *restrict from = sk_take_indices(&work, n), *restrict row = sk_take_indices(&work, n);
    sk_size *restrict waiting = sk_take_indices(&work, m), *restrict done = sk_take_indices(&work, m);
    sk_size count = 0;
    double value = 0.0;
    for (sk_size j = 0; j < n; j++) {
        price[j] = 0.0;
        row[j] = -1;
    }
    for (sk_size i = 0; i < m; i++) {
        const double *restrict s = scores + i * n;
        sk_size j = sk_index_of(s, n, sk_top(s, n));
        column[i] = -1;
        if (j < n && row[j] < 0) {
            row[j] = i;
            column[i] = j;
        } else
            waiting[count++] = i;
    }
    for (sk_size k = 0; k < count; k++) {
        const sk_size start = waiting[k];
        const double *restrict s = scores + start * n;
        sk_size i, j, next, passed = 0;
        double top = -INFINITY;
        SK_SIMD_MAX(reduction(max : top))
        for (j = 0; j < n; j++) {
            open[j] = price[j];
            from[j] = start;
            gain[j] = s[j] - price[j];
            top = gain[j] > top ? gain[j] : top;
        }
        for (;;) {
            j = top > -INFINITY ? sk_index_of(gain, n, top) : n;
            if (j == n) /* no numbers, or sums that overflowed: any free column */
                for (j = 0; row[j] >= 0; j++) continue;
            if (row[j] < 0) break;
            /* the column is passed: no gain reaches it again, not even by rounding */
            i = row[j];
            final[passed] = top;
            done[passed++] = j;
            open[j] = INFINITY;
            gain[j] = -INFINITY;
            s = scores + i * n;
            const double moved = top - (s[j] - price[j]);
            top = -INFINITY;
            SK_SIMD_MAX(reduction(max : top))
            for (sk_size c = 0; c < n; c++) {
                double t = (s[c] - open[c]) + moved, old = gain[c];
                from[c] = t > old ? i : from[c];
                t = t > old ? t : old;
                gain[c] = t;
                top = t > top ? t : top;
            }
        }
        for (sk_size d = 0; d < passed; d++) price[done[d]] += final[d] - top;
        do {
            i = from[j];
            next = column[i];
            column[i] = j;
            row[j] = i;
            j = next;
        } while (i != start);
    }
    for (sk_size i = 0; i < m; i++) value += scores[i * n + column[i]];
    return value;
}

static sk_size sk_dense_buffer_size(sk_size K, const sk_size *sizes) {
    sk_size total = 1, rows = 1;
    for (sk_size k = 0; k < K - 1; k++) {
        rows *= sizes[k];
        total += rows;
    }
    return total;
}

/* values (K,): the best joint assignment of K variables by joint (sizes, C order) plus unary. The scores of
 * variable k start at unary[offsets[k]]; *at is the assignment's index in joint.
 *
 * Variables are maximised out from the last on. Each step divides the table's size by that of the variable,
 * so nearly all work is the one pass over joint. */
SK_MULTI(double, sk_dense,
         (sk_size K, const sk_size *restrict sizes, const sk_size *restrict offsets, const double *unary,
          const double *joint, sk_size *restrict values, sk_size *restrict at, double *work),
         (K, sizes, offsets, unary, joint, values, at, work)) {
    const double *table = joint;
    sk_size rows = 1, flat = 0;
    double value;
    for (sk_size k = 0; k < K - 1; k++) rows *= sizes[k];
    for (sk_size k = K - 1; k > 0; k--) {
        const sk_size size = sizes[k];
        const double *restrict u = unary + offsets[k], *restrict x = table;
        double *restrict out = work;
        if (size == 2) { /* binary variables: rows too short for a loop each */
            double off = u[0], on = u[1];
            SK_SIMD
            for (sk_size r = 0; r < rows; r++) {
                double e = x[2 * r] + off, f = x[2 * r + 1] + on;
                out[r] = f > e ? f : e;
            }
        } else
            for (sk_size r = 0; r < rows; r++) {
                double top = -INFINITY;
                SK_SIMD_MAX(reduction(max : top))
                for (sk_size j = 0; j < size; j++) {
                    double t = x[r * size + j] + u[j];
                    top = t > top ? t : top;
                }
                out[r] = top;
            }
        table = work;
        work += rows;
        rows /= sizes[k - 1];
    }
    for (sk_size k = 0; k < K; k++) {
        const double *restrict u = unary + offsets[k], *restrict x = table + flat * sizes[k];
        double top = -INFINITY;
        values[k] = 0;
        for (sk_size j = 0; j < sizes[k]; j++)
            if (x[j] + u[j] > top) {
                top = x[j] + u[j];
                values[k] = j;
            }
        flat = flat * sizes[k] + values[k];
        /* back to the table before this one */
        rows *= sizes[k];
        if (k + 1 < K) table = k + 2 < K ? table - rows * sizes[k + 1] : joint;
    }
    *at = flat;
    value = joint[flat];
    for (sk_size k = 0; k < K; k++) value += unary[offsets[k] + values[k]];
    return value;
}

#endif
