/* The kernels' C code without Python: some of each header against plain loops, in sums of long double, for compilers
 * and processors that the test suite itself does not run on. Prints what it ran; ends with status 1 where a result is
 * wrong. tests/kernels/test_kernel_smoke.py builds it, natively and for others under an emulator. */
#include "shared/curvature.h"
#include "extreme/implicit.h"
#include "shared/kernels.h"
#include "shared/multinomial.h"
#include "shared/box.h"
#include "shared/pairs.h"
#include "bounded/row_losses.h"
#include "extreme/shortlist.h"
#include "fenchel_young/sparsemax.h"
#include "factor_graph/trees.h"
#include "line_search.h"

#include <stdio.h>
#include <stdlib.h>

#define LONGEST 301
/* odd lengths too: what is left over after whole registers is code of its own */
static const sk_size LENGTHS[] = {1, 2, 3, 7, 8, 16, 31, 64, 129, LONGEST};
enum { N_LENGTHS = sizeof LENGTHS / sizeof LENGTHS[0] };

static int failures, checks;
static uint64_t state = 0x9E3779B97F4A7C15ull;

static double uniform(void) { /* in -1 .. 1, the same numbers everywhere */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 4503599627370496.0 - 1.0;
}

static void check(const char *what, sk_size n, long double got, long double expected, long double tolerance) {
    long double miss = fabsl(got - expected);
    checks++;
    if (miss <= tolerance * (1.0L + fabsl(expected))) return; /* false for NaN */
    failures++;
    printf("FAILED %s, n = %d: %.17g, expected %.17g\n", what, (int)n, (double)got, (double)expected);
}

static double none[LONGEST], z[LONGEST], y[LONGEST], s[LONGEST], a[LONGEST], b[LONGEST], c[LONGEST], out[3][LONGEST];
static float f[LONGEST], g[LONGEST], h[2 * LONGEST];

static void draw(sk_size n, double scale) {
    for (sk_size i = 0; i < n; i++) {
        z[i] = scale * uniform();
        y[i] = uniform() < 0.0 ? -1.0 : 1.0;
        s[i] = 1.5 + uniform();
        a[i] = uniform();
        b[i] = uniform();
        c[i] = uniform();
        f[i] = (float)uniform();
        g[i] = (float)uniform();
    }
}

static void logistic(sk_size n) {
    long double value = 0.0L, plain = 0.0L;
    double all, log_loss;
    for (sk_size i = 0; i < n; i++) {
        long double one = log1pl(expl(-(long double)y[i] * z[i]));
        value += s[i] * one;
        plain += one;
    }
    check("sk_logistic_value", n, sk_logistic_value(z, y, s, n), value, 1e-14L);
    check("sk_logistic_value without weights", n, sk_logistic_value(z, y, NULL, n), plain, 1e-14L);
    all = sk_logistic_all(z, y, s, out[0], out[1], n);
    check("sk_logistic_all", n, all, value, 1e-14L);
    for (sk_size i = 0; i < n; i++) {
        long double p = 1.0L / (1.0L + expl((long double)y[i] * z[i]));
        check("sk_logistic_all, slope", n, out[0][i], -s[i] * y[i] * p, 1e-14L);
        check("sk_logistic_all, curvature", n, out[1][i], s[i] * p * (1.0L - p), 1e-14L);
    }
    log_loss = sk_log_loss_all(z, none, y, s, out[0], out[2], out[1], n);
    check("sk_log_loss_all", n, log_loss, value, 1e-14L);
}

static void vectors(sk_size n) {
    long double dot = 0.0L, small = 0.0L;
    for (sk_size i = 0; i < n; i++) {
        dot += (long double)a[i] * b[i];
        small += (long double)f[i] * g[i];
        out[0][i] = c[i];
    }
    check("sk_dot64", n, sk_dot64(a, b, n), dot, 1e-14L * n);
    check("sk_dot32", n, sk_dot32(f, g, n), small, 1e-7L * n);
    sk_axpy(0.75, a, out[0], n);
    for (sk_size i = 0; i < n; i++) check("sk_axpy", n, out[0][i], c[i] + 0.75L * a[i], 1e-15L);
}

static void dense(sk_size n) { /* (A^T diag(d) A) v of two rows, f and g */
    float rows[2 * LONGEST];
    double d[2] = {0.5, 2.0};
    long double first = 0.0L, second = 0.0L;
    for (sk_size k = 0; k < n; k++) {
        rows[k] = f[k];
        rows[n + k] = g[k];
        h[k] = 0.0f;
        h[LONGEST + k] = (float)a[k];
        first += (long double)f[k] * h[LONGEST + k];
        second += (long double)g[k] * h[LONGEST + k];
    }
    sk_hessian_dense(rows, d, 0, 2, h + LONGEST, h, n, 0);
    for (sk_size k = 0; k < n; k++)
        check("sk_hessian_dense", n, h[k], 0.5L * first * f[k] + 2.0L * second * g[k], 1e-6L * n);
}

static void sparsemax(sk_size n) {
    double sum = 0.0, tau, loss, groups[64], keep[LONGEST + 1], spare[LONGEST];
    sk_size where[LONGEST + 1];
    int64_t size, count = 0;
    long double low = -3.0L, high = 3.0L;
    if (n == 1) high = 1.0L;
    sk_sparsemax_f64(z, n, NULL, 0, NULL, out[0], n, &tau, &size, &loss, 0, 0, 1, n, groups, keep, where, spare);
    for (int step = 0; step < 200; step++) { /* sum max(z - t, 0) = 1 by bisection */
        long double t = 0.5L * (low + high), total = 0.0L;
        for (sk_size k = 0; k < n; k++) total += z[k] > t ? z[k] - t : 0.0L;
        if (total > 1.0L) low = t;
        else high = t;
    }
    check("sk_sparsemax_f64, threshold", n, tau, low, 1e-14L * n);
    for (sk_size k = 0; k < n; k++) {
        sum += out[0][k];
        count += out[0][k] > 0.0;
        check("sk_sparsemax_f64", n, out[0][k], z[k] > low ? z[k] - low : 0.0L, 1e-14L * n);
    }
    check("sk_sparsemax_f64, sum", n, sum, 1.0L, 1e-14L * n);
    check("sk_sparsemax_f64, size", n, size, count, 0.0L);
}

static void multinomial(sk_size n) {
    int32_t code = (int32_t)(n / 2);
    long double total = 0.0L;
    double value;
    for (sk_size k = 0; k < n; k++) total += expl(z[k]);
    value = sk_multinomial_all(z, &code, NULL, out[0], 0, 1, n);
    check("sk_multinomial_all", n, value, logl(total) - z[code], 1e-14L);
    for (sk_size k = 0; k < n; k++)
        check("sk_multinomial_all, slope", n, out[0][k], expl(z[k]) / total - (k == code), 1e-14L);
}

static void box(sk_size n) {
    long double most = 0.0L;
    for (sk_size i = 0; i < n; i++) {
        out[0][i] = -1.0;
        out[1][i] = 0.5;
        c[i] = c[i] < 0.5 ? c[i] : 0.5; /* at the upper bound a negative slope violates nothing */
        if (c[i] < 0.5 || a[i] > 0.0) most = fabsl(a[i]) > most ? fabsl(a[i]) : most;
    }
    check("sk_optimality", n, sk_optimality(n, c, a, out[0], out[1]), most, 0.0L);
    sk_trial_point(n, b, a, 3.0, out[0], out[1], out[2]);
    for (sk_size i = 0; i < n; i++) {
        long double t = b[i] + 3.0L * a[i];
        check("sk_trial_point", n, out[2][i], t < -1.0L ? -1.0L : t > 0.5L ? 0.5L : t, 1e-15L);
    }
}

static void viterbi(void) { /* all 4^5 sequences */
    enum { T = 5, K = 4 };
    double unary[T * K], transition[(T - 1) * K * K], *work = malloc(sizeof(double) * (size_t)sk_viterbi_buffer_size(T, K));
    int32_t tags[T];
    double best = -INFINITY, got;
    if (work == NULL) exit(2);
    for (int i = 0; i < T * K; i++) unary[i] = uniform();
    for (int i = 0; i < (T - 1) * K * K; i++) transition[i] = uniform();
    for (int code = 0; code < 1024; code++) {
        double score = unary[code % K];
        for (int t = 1, rest = code; t < T; t++, rest /= K)
            score += unary[t * K + rest / K % K] + transition[(t - 1) * K * K + rest % K * K + rest / K % K];
        best = score > best ? score : best;
    }
    got = sk_viterbi(T, K, unary, transition, K * K, tags, work);
    check("sk_viterbi", T, got, best, 1e-14L);
    free(work);
}

enum { FEATURES = 7, PARTS = 2, BEST = 3, ROOM = 2 * SK_PART };

static void shortlist(sk_size n) { /* PARTS parts of SK_PART and n classes, FEATURES features */
    static float w[FEATURES][PARTS * SK_PART], steps[FEATURES][PARTS], bias[PARTS * SK_PART];
    static double scores[PARTS * SK_PART], upper[ROOM];
    static int8_t q[FEATURES][PARTS * SK_PART];
    static int64_t codes[ROOM];
    double x[FEATURES], lower[BEST], sorted[BEST];
    int64_t slot[FEATURES];
    float about_bias[2 * PARTS];
    sk_size K = SK_PART + n;
    sk_rounded W = {K, PARTS, q[0], steps[0], bias, about_bias};
    sk_shortlist list = {BEST, 0, ROOM, lower, upper, codes};
    for (sk_size j = 0; j < BEST; j++) lower[j] = sorted[j] = -INFINITY;
    for (sk_size k = 0; k < K; k++) bias[k] = (float)uniform();
    for (sk_size part = 0; part < PARTS; part++) about_bias[part] = about_bias[PARTS + part] = 1.0f;
    for (sk_size i = 0; i < FEATURES; i++) {
        x[i] = 2.0 * uniform();
        slot[i] = FEATURES - 1 - i;
        for (sk_size part = 0; part < PARTS; part++) {
            float *own = w[i] + part * SK_PART, *step = &steps[slot[i]][part];
            int8_t *whole = q[slot[i]] + part * SK_PART;
            sk_size m = part ? n : SK_PART;
            double most = 0.0;
            for (sk_size k = 0; k < m; k++) own[k] = (float)(uniform() * uniform() + 0.1 * (double)part);
            *step = sk_round_part(own, m, whole);
            for (sk_size k = 0; k < m; k++) {
                double off = fabs((double)own[k] - (double)*step * (double)whole[k]);
                most = off > most ? off : most;
            }
            check("sk_round_part", m, most <= SK_STEP_ERROR * (double)*step, 1.0L, 0.0L);
        }
    }
    check("sk_list_candidates", n, sk_list_candidates(&W, x, slot, FEATURES, &list), 1.0L, 0.0L);
    for (sk_size k = 0; k < K; k++) {
        double sum = (double)bias[k];
        for (sk_size i = 0; i < FEATURES; i++) sum += x[i] * (double)w[i][k];
        scores[k] = sum;
        for (sk_size j = 0; j < BEST; j++) {
            double low = sum < sorted[j] ? sum : sorted[j];
            sorted[j] = sum > sorted[j] ? sum : sorted[j];
            sum = low;
        }
    }
    check("sk_list_candidates, lower bound", n, lower[0] <= sorted[BEST - 1], 1.0L, 0.0L);
    check("sk_list_candidates, few in doubt", n, list.n <= BEST + K / 8 + 3, 1.0L, 0.0L);
    for (sk_size k = 0; k < K; k++) {
        int listed = 0;
        for (sk_size j = 0; j < list.n; j++)
            if (codes[j] == k) listed = upper[j] >= scores[k] ? 1 : 2;
        check("sk_list_candidates, the best are listed", n,
              scores[k] >= sorted[BEST - 1] ? listed == 1 : listed < 2, 1.0L, 0.0L);
    }
}

static void implicit(sk_size m, double scale) { /* stationarity of a step with m negatives, m <= 8 */
    double old[8], step[8], r[8], rho[8], buffer[3 * (8 + 3)], u, total;
    double eta = 1.0 + 0.9 * uniform(), sq = 1.5 + uniform(), rho_y = 0.8 + 0.2 * uniform();
    double u_old = 3.0 + 2.0 * uniform();
    long double sum = 0.0L;
    for (sk_size j = 0; j < m; j++) {
        old[j] = step[j] = scale * uniform();
        r[j] = 3.0 + 2.0 * uniform();
        rho[j] = 0.8 + 0.2 * uniform();
    }
    total = sk_implicit_many(m, step, r, rho, buffer, eta, sq, rho_y, u_old, &u);
    for (sk_size j = 0; j < m; j++) {
        long double moved = rho[j] * (long double)step[j] + rho_y * (long double)total;
        check("sk_implicit_many, b", m, step[j], eta * r[j] * expl(old[j] - sq * moved - u), 1e-8L);
        sum += step[j];
    }
    check("sk_implicit_many, sum", m, total, sum, 1e-14L * m);
    check("sk_implicit_many, u", m, total, u - u_old + eta * (1.0L - expl(-(long double)u)), 1e-8L);
}

static double slope_at(int kind, double root, double t) { /* a straight line, a curve, or a kink */
    double off = t / root - 1.0;
    if (kind < 2) return kind == 0 ? off : off * off * off + 0.1 * off;
    return (off > 0.0) == (kind == 2) ? off : 0.1 * off;
}

static void slopes(int kind, double root, int most) { /* the root of a slope in at most so many steps */
    sk_bracket b = {0.0, 0.0, slope_at(kind, root, 0.0), 0.0, 0.0};
    double step = 1.0, slope;
    int n = 1;
    while (fabs(slope = slope_at(kind, root, step)) > 1e-6 && n <= 99) {
        double next = sk_next_step(&b, step, slope, 1e30);
        if (b.hi == 0.0) check("sk_next_step, expansion", n, next, 4.0L * step, 0.0L);
        else check("sk_next_step, bracket", n, b.lo < next && next < b.hi && b.lo <= root && root <= b.hi, 1.0L, 0.0L);
        step = next;
        n++;
    }
    check("sk_next_step, number of steps", n, n <= most, 1.0L, 0.0L);
    check("sk_next_step, root", n, step / root, 1.0L, kind == 0 ? 1e-6L : 1e-5L);
}

int main(void) {
    for (int l = 0; l < N_LENGTHS; l++) {
        sk_size n = LENGTHS[l];
        draw(n, 2.0);
        logistic(n);
        vectors(n);
        dense(n);
        sparsemax(n);
        multinomial(n);
        box(n);
        draw(n, 40.0);
        logistic(n);
        multinomial(n);
        shortlist(n);
    }
    shortlist(SK_PART);
    for (sk_size m = 1; m <= 8; m++) {
        implicit(m, 1.0);
        implicit(m, 6.0);
    }
    viterbi();
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < 5; i++)
            slopes(kind, (double[]){1e-3, 0.3, 0.9, 7.0, 2e4}[i], (int[]){12, 20, 32, 32}[kind]);
    check("sk_next_step, limit", 1, sk_next_step(&(sk_bracket){0.0, 0.0, -1.0, 0.0, 0.0}, 1.0, -1.0, 2.0), 2.0L, 0.0L);
#ifdef SPARSEKIT_SIMD_H
    printf("level %d, ", sk_level);
#endif
    printf("%d checks, %d failures\n", checks, failures);
    return failures > 0;
}
