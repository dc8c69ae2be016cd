/* Equations of the smallest face around a factor's answer, for known polytopes: the constraints that are tight. They
 * depend on the weights, and for sequences on ties of transitions. */
#ifndef SPARSEKIT_FACTOR_EQUATIONS_H
#define SPARSEKIT_FACTOR_EQUATIONS_H

#include "factor_graph/factor_chain.h"
#include "factor_graph/factor_span.h"

/* largest weight, and largest relative difference to the best score, that count as rounding */
#define FG_NO_WEIGHT 1e-10
#define FG_TIED_SCORE 3e-9

/* Sets the diagonal D = W^-1. */
static int fg_span_ready(const fg_spec *f, const double *w, fg_span *s) {
    double *scale = malloc((size_t)(f->d + 1) * sizeof(double));
    int ready = scale != NULL;
    for (sk_size i = 0; ready && i < f->d; i++) scale[i] = 1.0 / w[i];
    ready = ready && fg_rows_factor(&s->on, scale) && (s->arc == NULL || fg_rows_factor(&s->part, NULL));
    free(scale);
    return ready;
}

/* Rows and columns that are full. */
static int fg_span_matching(const fg_spec *f, const double *x, fg_span *s) {
    const sk_size m = f->rows, n = f->columns;
    double *sum;
    if (!fg_rows_begin(&s->on, m + n, m * n, 3 * m * n)) return 0;
    sum = s->on.y;
    memset(sum, 0, (size_t)(m + n) * sizeof(double));
    for (sk_size i = 0; i < m * n; i++) sum[i / n] += x[i], sum[m + i % n] += x[i];
    for (sk_size i = 0; i < m * n; i++) {
        if (x[i] > 0.0) {
            if (sum[i / n] > 1.0 - 1e-9) fg_rows_enter(&s->on, i / n, 1.0);
            if (sum[m + i % n] > 1.0 - 1e-9) fg_rows_enter(&s->on, m + i % n, 1.0);
        }
        fg_rows_next(&s->on);
    }
    return 1;
}

/* The lowest word above both in a tree of heads, -1: the root. depth: arcs from the root. */
static sk_size fg_lowest_common_head(const int32_t *head, const int32_t *depth, sk_size a, sk_size b) {
    while (a != b) {
        sk_size *lower = depth[a] >= depth[b] ? &a : &b;
        if (head[*lower] == *lower) return -1;
        *lower = head[*lower];
    }
    return a;
}

/* One head a word, and tight sets of words. A set is tight on the face if each tree in use enters it once, since every
 * tree enters it at least once. The smallest such sets around a word and its head in a tree imply all others: cuts are
 * modular on tight sets that meet. */
static int fg_span_tree(const fg_spec *f, const fg_active *t, const double *x, fg_span *s) {
    const sk_size n = f->columns, m = t->m;
    int32_t *head = malloc((size_t)(2 * m * n + 1) * sizeof(int32_t)), *depth = head + m * n;
    unsigned char *in = calloc((size_t)(n * n + 1), 1); /* (set, word) */
    sk_size n_set = 0, n_entry = 0;
    int ready = head != NULL && in != NULL;
    for (sk_size k = 0; ready && k < m; k++)
        for (sk_size i = 0; i < n; i++) head[k * n + i] = t->on[k * n + i] - (int32_t)(i * n);
    for (sk_size k = 0; ready && k < m; k++)
        for (sk_size i = 0; i < n; i++) {
            sk_size up = i;
            depth[k * n + i] = 0;
            for (; head[k * n + up] != up; up = head[k * n + up]) depth[k * n + i]++;
        }
    for (sk_size i = 0; ready && i < n; i++) {
        unsigned char *set = in + n_set * n;
        int grows = 1;
        if (head[i] == i) continue;
        memset(set, 0, (size_t)n);
        set[i] = set[head[i]] = 1;
        while (grows == 1) {
            grows = 0;
            for (sk_size k = 0; k < m && grows >= 0; k++) {
                const int32_t *of = head + k * n;
                sk_size top = i;
                for (sk_size j = 0; j < n && top >= 0; j++)
                    if (set[j]) top = fg_lowest_common_head(of, depth + k * n, top, j);
                if (top < 0) grows = -1;
                for (sk_size j = 0; j < n && top >= 0; j++)
                    if (set[j])
                        for (sk_size up = j; up != top; up = of[up])
                            if (!set[of[up]]) set[of[up]] = 1, grows = 1;
            }
        }
        if (grows < 0) continue;
        for (sk_size k = 0; k < n_set && grows == 0; k++) grows = !memcmp(in + k * n, set, (size_t)n);
        n_set += grows == 0;
    }
    for (sk_size i = 0; ready && i < n * n; i++)
        for (sk_size k = 0; x[i] > 0.0 && k <= n_set; k++) n_entry++;
    ready = ready && fg_rows_begin(&s->on, n + n_set, n * n, n_entry);
    for (sk_size i = 0; ready && i < n * n; i++) {
        const sk_size word = i / n, other = i % n;
        if (x[i] > 0.0) {
            fg_rows_enter(&s->on, word, 1.0);
            for (sk_size k = 0; k < n_set; k++)
                if (in[k * n + word] && (other == word || !in[k * n + other])) fg_rows_enter(&s->on, n + k, 1.0);
        }
        fg_rows_next(&s->on);
    }
    free(head);
    free(in);
    return ready;
}

/* Strongly connected sets of tags at two adjacent positions: forward by transitions tied with the best, back by those
 * in use. Weight can circulate in them. side (2 K) becomes the set's number, from `first` on; returns how many. */
static sk_size fg_flow_sets(sk_size K, const unsigned char *tied, const unsigned char *used, const unsigned char *here,
                            sk_size first, int32_t *side, int32_t *queue, unsigned char *seen) {
    sk_size count = 0;
    for (sk_size i = 0; i < 2 * K; i++) side[i] = -1;
    for (sk_size from = 0; from < K; from++) {
        if (!here[from] || side[from] >= 0) continue;
        memset(seen, 0, (size_t)(2 * K));
        for (int way = 1; way <= 2; way++) { /* forward, then backward reachability */
            const unsigned char *right = way == 1 ? tied : used, *left = way == 1 ? used : tied;
            sk_size n = 1;
            queue[0] = (int32_t)from;
            seen[from] |= way;
            while (n > 0) {
                const sk_size at = queue[--n];
                for (sk_size k = 0; k < K; k++) {
                    const sk_size to = at < K ? K + k : k;
                    if ((at < K ? right[at * K + k] : left[k * K + at - K]) && !(seen[to] & way)) {
                        seen[to] |= way;
                        queue[n++] = (int32_t)to;
                    }
                }
            }
        }
        for (sk_size i = 0; i < 2 * K; i++)
            if (seen[i] == 3) side[i] = (int32_t)(first + count);
        count++;
    }
    return count;
}

/* In each such set the weight that leaves one position equals what enters the next. g: scores minus the answer. If
 * `tied_below` is negative, only transitions in use count, and only for variables. */
static int fg_span_sequence(const fg_spec *f, const fg_active *t, const double *x, const double *g, const double *c,
                            double tied_below, fg_span *s) {
    const sk_size T = f->rows, K = f->columns, n = T * K, arcs = (T - 1) * K * K;
    double *ahead = malloc((size_t)(2 * n + 1) * sizeof(double)), *back = ahead + n, best = -INFINITY;
    unsigned char *tied = calloc((size_t)(2 * arcs + n + 2 * K + 1), 1), *used = tied + arcs, *here = used + arcs;
    int32_t *side = malloc((size_t)(2 * T * K + 2 * K + 1) * sizeof(int32_t)), *queue = side + 2 * T * K;
    sk_size n_row = 1, n_arc = 0;
    int ready = ahead != NULL && tied != NULL && side != NULL;
    for (sk_size i = 0; ready && i < n; i++) here[i] = x[i] > 0.0;
    for (sk_size i = 0; ready && i < n; i++) {
        const sk_size p = i / K, k = i % K;
        ahead[i] = p == 0 ? g[i] : -INFINITY;
        if (!here[i]) continue;
        for (sk_size j = 0; p > 0 && j < K; j++)
            if (here[(p - 1) * K + j]) {
                const double sum = ahead[(p - 1) * K + j] + c[((p - 1) * K + j) * K + k] + g[i];
                ahead[i] = sum > ahead[i] ? sum : ahead[i];
            }
        if (p == T - 1 && ahead[i] > best) best = ahead[i];
    }
    for (sk_size i = n - 1; ready && i >= 0; i--) {
        const sk_size p = i / K;
        back[i] = p == T - 1 ? 0.0 : -INFINITY;
        for (sk_size k = 0; p < T - 1 && here[i] && k < K; k++)
            if (here[(p + 1) * K + k]) {
                const double sum = c[i * K + k] + g[(p + 1) * K + k] + back[(p + 1) * K + k];
                back[i] = sum > back[i] ? sum : back[i];
            }
        for (sk_size k = 0; p < T - 1 && here[i] && k < K; k++) {
            const sk_size to = (p + 1) * K + k;
            tied[i * K + k] = here[to] && best - (ahead[i] + c[i * K + k] + g[to] + back[to]) <= tied_below;
        }
    }
    for (sk_size k = 0; ready && k < t->m * f->n_bonus; k++) used[t->bonus[k]] = tied[t->bonus[k]] = 1;
    for (sk_size k = 0; ready && t->by_flow && k < arcs; k++)
        if (t->flow->E[k] > FG_NO_WEIGHT) used[k] = tied[k] = 1;
    for (sk_size p = 0; ready && p < T - 1; p++)
        n_row += fg_flow_sets(K, tied + p * K * K, used + p * K * K, here + p * K, n_row, side + 2 * p * K, queue,
                              here + n);
    ready = ready && fg_rows_begin(&s->on, n_row, n, 3 * n);
    for (sk_size i = 0; ready && i < n; i++) {
        const sk_size p = i / K, k = i % K;
        if (here[i]) {
            if (p == 0) fg_rows_enter(&s->on, 0, 1.0);
            /* a tag's weight may be so small that none of its transitions counts as in use */
            if (p > 0 && side[(2 * p - 1) * K + k] > 0) fg_rows_enter(&s->on, side[(2 * p - 1) * K + k], -1.0);
            if (p < T - 1 && side[2 * p * K + k] > 0) fg_rows_enter(&s->on, side[2 * p * K + k], 1.0);
        }
        fg_rows_next(&s->on);
    }
    for (sk_size i = 0; ready && i < arcs; i++) {
        const sk_size p = i / (K * K), j = i / K % K, k = i % K;
        tied[i] = tied_below >= 0.0 && tied[i] && side[2 * p * K + j] > 0 &&
                  side[2 * p * K + j] == side[(2 * p + 1) * K + k];
        n_arc += tied[i];
    }
    if (ready && n_arc > 0) {
        s->arc = malloc((size_t)n_arc * sizeof(int32_t));
        ready = s->arc != NULL && fg_rows_begin(&s->part, 2 * (T - 1) * K, n_arc, 2 * n_arc);
        for (sk_size i = 0; ready && i < arcs; i++)
            if (tied[i]) {
                s->arc[s->part.n_column] = (int32_t)i;
                fg_rows_enter(&s->part, 2 * (i / (K * K)) * K + i / K % K, 1.0);
                fg_rows_enter(&s->part, (2 * (i / (K * K)) + 1) * K + i % K, 1.0);
                fg_rows_next(&s->part);
            }
    }
    free(ahead);
    free(tied);
    free(side);
    return ready;
}

#endif
