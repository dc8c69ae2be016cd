/* Violated cuts: sets of words that arcs enter by less than `mass`. Arcs whose heads sum to `mass` for each word are a
 * mixture of arborescences if none is violated (Edmonds, 1967). x (n, n), row = modifier, column = head, diagonal =
 * root, as in trees.h. */
#ifndef SPARSEKIT_TREE_CUTS_H
#define SPARSEKIT_TREE_CUTS_H

#include "shared/structures.h"

/* largest flow that counts as rounding */
#define SK_NO_FLOW 1e-15

/* Maximum flows from the root to each word in turn. A finished word joins the source, since all sets with it are
 * checked. Most of the flow to later words then has length one. */
typedef struct {
    sk_size n;
    double *left;                 /* (n, n): residual capacity to a row's word from a column's */
    double *direct, *supply;      /* (n): capacity from the source to a word, and its unused part */
    sk_size *queue, *next;        /* (n) */
    unsigned char *source, *seen; /* (n): the finished words; the smallest set around the last one */
} sk_cuts;

static sk_size sk_cuts_buffer_size(sk_size n) { return n * n + 4 * n + 2 * n / (sk_size)sizeof(double) + 2; }

static void sk_cuts_take(sk_cuts *c, sk_size n, double *work) {
    c->n = n;
    c->left = sk_take(&work, n * n);
    c->direct = sk_take(&work, n);
    c->supply = sk_take(&work, n);
    c->queue = sk_take_indices(&work, n);
    c->next = sk_take_indices(&work, n);
    c->source = (unsigned char *)work;
    c->seen = c->source + n;
}

static void sk_cuts_begin(sk_cuts *c, const double *x) {
    memset(c->source, 0, (size_t)c->n);
    for (sk_size i = 0; i < c->n; i++) c->direct[i] = x[i * c->n + i];
}

/* A shortest augmenting path from the source to the word `to`: returns its first word, or -1 if none. Then `seen` are
 * the words with a residual path to it. */
static sk_size sk_cuts_find_path(sk_cuts *c, sk_size to) {
    const sk_size n = c->n;
    const double *into = c->left + to * n;
    sk_size count = 0;
    memcpy(c->seen, c->source, (size_t)n);
    c->seen[to] = 1;
    for (sk_size at = -1; at < count; at++) {
        const sk_size b = at < 0 ? to : c->queue[at];
        if (at >= 0) into = c->left + b * n;
        for (sk_size a = 0; a < n; a++) {
            if (c->seen[a] || !(into[a] > SK_NO_FLOW)) continue;
            c->seen[a] = 1;
            c->next[a] = b;
            if (c->supply[a] > SK_NO_FLOW) return a;
            c->queue[count++] = a;
        }
    }
    for (sk_size a = 0; a < n; a++) c->seen[a] ^= c->source[a];
    return -1;
}

/* Maximum flow to the word `to`. Returns by how much it falls short, which is also the violation of `seen`: the
 * smallest set around `to` without finished words. */
static double sk_cuts_max_flow(sk_cuts *c, const double *x, sk_size to) {
    const sk_size n = c->n;
    double *into = c->left + to * n, lacks = 0.0, flow;
    sk_size a, b;
    memcpy(c->left, x, (size_t)(n * n) * sizeof(double));
    memcpy(c->supply, c->direct, (size_t)n * sizeof(double));
    into[to] = c->supply[to] = 0.0; /* direct */
    for (a = 0; a < n; a++) {
        c->left[a * n + a] = 0.0;
        if (c->source[a]) into[a] = 0.0;
        flow = into[a] < c->supply[a] ? into[a] : c->supply[a];
        into[a] -= flow;
        c->supply[a] -= flow;
    }
    /* a bound on the number of augmenting paths in exact arithmetic */
    for (sk_size ways = n * n * n; ways > 0 && (a = sk_cuts_find_path(c, to)) >= 0; ways--) {
        flow = c->supply[a];
        for (b = a; b != to; b = c->next[b])
            flow = c->left[c->next[b] * n + b] < flow ? c->left[c->next[b] * n + b] : flow;
        c->supply[a] -= flow;
        for (b = a; b != to; b = c->next[b]) {
            c->left[c->next[b] * n + b] -= flow;
            c->left[b * n + c->next[b]] += c->next[b] == to ? 0.0 : flow;
        }
    }
    for (a = 0; a < n; a++) lacks += into[a];
    return lacks;
}

/* After a maximum flow: `source` becomes the words with more than `least` residual capacity from the root. */
static void sk_cuts_reach(sk_cuts *c, double least) {
    const sk_size n = c->n;
    sk_size count = 0;
    for (sk_size a = 0; a < n; a++) {
        c->source[a] = c->supply[a] > least;
        if (c->source[a]) c->queue[count++] = a;
    }
    while (count > 0) {
        const sk_size a = c->queue[--count];
        for (sk_size b = 0; b < n; b++)
            if (!c->source[b] && c->left[b * n + a] > least) {
                c->source[b] = 1;
                c->queue[count++] = b;
            }
    }
}

/* `seen` becomes the words with residual capacity above `least` to `to` or `other` */
static void sk_cuts_closure(sk_cuts *c, sk_size to, sk_size other, double least) {
    const sk_size n = c->n;
    sk_size count = 1;
    memset(c->seen, 0, (size_t)n);
    c->seen[to] = c->seen[other] = 1; /* the first has no residual capacity left */
    c->queue[0] = other;
    while (count > 0) {
        const double *into = c->left + c->queue[--count] * n;
        for (sk_size a = 0; a < n; a++)
            if (!c->seen[a] && into[a] > least) {
                c->seen[a] = 1;
                c->queue[count++] = a;
            }
    }
}

/* Words of `seen` that `other` reaches as well lead to the same set: they join `source`. */
static void sk_cuts_merge_alike(sk_cuts *c, sk_size other, double least) {
    const sk_size n = c->n;
    sk_size count = 1;
    c->source[other] = 1;
    c->queue[0] = other;
    while (count > 0) {
        const sk_size a = c->queue[--count];
        for (sk_size b = 0; b < n; b++)
            if (c->seen[b] && !c->source[b] && c->left[b * n + a] > least) {
                c->source[b] = 1;
                c->queue[count++] = b;
            }
    }
}

/* The next word: the unfinished one with most capacity from the source; `lacks`: the rest. -1 after the last. */
static sk_size sk_cuts_next(sk_cuts *c, const double *x, double *lacks) {
    const sk_size n = c->n;
    sk_size to = -1;
    for (sk_size i = 0; i < n; i++)
        if (!c->source[i] && (to < 0 || c->direct[i] > c->direct[to])) to = i;
    if (to < 0) return -1;
    *lacks = sk_cuts_max_flow(c, x, to);
    c->source[to] = 1;
    for (sk_size i = 0; i < n; i++) c->direct[i] += i == to ? 0.0 : x[i * n + to];
    return to;
}

#endif
