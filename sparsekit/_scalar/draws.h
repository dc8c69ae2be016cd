/* Random numbers and hashes of softmax with very many classes. */
#ifndef SPARSEKIT_DRAWS_H
#define SPARSEKIT_DRAWS_H

#include "host_device.h"

/* xorshift64* (Vigna, 2016): one word of state, which is enough to draw classes */
SK_BOTH sk_word sk_random(sk_word *state) {
    sk_word x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Dull;
}

/* uniform in 0 .. n - 1, n < 2^32, by a product's high half; the bias is below n / 2^32 */
SK_BOTH sk_int sk_below(sk_word *state, sk_int n) {
    return (sk_int)(((sk_random(state) >> 32) * (sk_word)n) >> 32);
}

/* uniform in [0, 1) */
SK_BOTH double sk_unit(sk_word *state) { return (double)(sk_random(state) >> 11) * (1.0 / 9007199254740992.0); }

SK_BOTH sk_word sk_class_key(sk_int k) { /* splitmix64 */
    sk_word x = ((sk_word)k + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

SK_BOTH sk_word sk_hash(sk_word key, sk_word j) {
    return (key ^ (j * 0xD6E8FEB86659FD93ull)) * 0xA0761D6478BD642Full;
}

/* Negatives of label y into k[1 ..] with inverse probabilities r[1 ..]; returns their number, m at most.
 * Uniform (noise is NULL): distinct, never y, all of them if there are no more. Draws from a noise distribution of the
 * K classes, by its alias table, with replacement. Equal ones are merged and y is dropped, which keeps sums over k != y
 * unbiased. NCE uses the draws unchanged. */
SK_BOTH sk_int sk_draw_classes(int is_nce, sk_int m, sk_int K, sk_int y, sk_word *state, const double *noise,
                               const double *keep, const sk_int *alias, sk_int *k, double *r) {
    sk_int n = 0;
    if (!noise && !is_nce) {
        for (sk_int j = 0; m >= K - 1 && j < K; j++)
            if (j != y) {
                k[++n] = j;
                r[n] = 1.0;
            }
        while (n < m && n < K - 1) {
            sk_int j = sk_below(state, K - 1);
            int seen = 0;
            j += j >= y;
            for (sk_int i = 1; i <= n; i++) seen |= k[i] == j;
            if (!seen) {
                k[++n] = j;
                r[n] = (double)(K - 1) / (double)m;
            }
        }
        return n;
    }
    for (sk_int i = 0; i < m; i++) {
        sk_int j = sk_below(state, K);
        double weight;
        int seen = 0;
        if (noise && !(sk_unit(state) < keep[j])) j = alias[j];
        weight = noise ? 1.0 / ((double)m * noise[j]) : (double)K / (double)m;
        if (!is_nce) {
            if (j == y) continue;
            for (sk_int l = 1; l <= n && !seen; l++)
                if (k[l] == j) {
                    r[l] += weight;
                    seen = 1;
                }
            if (seen) continue;
        }
        k[++n] = j;
        r[n] = weight;
    }
    return n;
}

#endif
