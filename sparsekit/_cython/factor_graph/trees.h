/* The best dependency tree for scores (n, n): row = modifier, column = head, diagonal = the arc from the root. head[i]
 * = i says that the root is the head of word i. The conventions are those of structures.h. */
#ifndef SPARSEKIT_TREES_H
#define SPARSEKIT_TREES_H

#include "shared/structures.h"

static sk_size sk_arborescence_buffer_size(sk_size n) { return n * n + 20 * n; }

/* Arrays of a search for an arborescence; its nodes are words and sets of words. */
typedef struct {
    sk_size n, nodes;      /* nodes 0 .. n - 1 are the words */
    const double *scores;
    double *rows;          /* of the sets: the best arc into the set from each word, -inf from its own */
    double *root;          /* the best arc into a node from the root */
    double *entry;         /* the best arc into a node from all */
    sk_size *source;       /* the word at its tail, -1 for the root */
    sk_size *parent, *child, *sibling; /* sets in sets */
    sk_size *first, *last, *next;      /* the words of a node, as a list */
    sk_size *node;         /* the largest node around a word */
    sk_size *path, *state; /* nodes on the path; 0: not visited, 1: on the path, 2: connected to the root */
} sk_arcs;

SK_INLINE const double *sk_arcs_into(const sk_arcs *a, sk_size node) {
    return node < a->n ? a->scores + node * a->n : a->rows + (node - a->n) * a->n;
}

/* A word's own column stands for the root, which is a source unless any = 0. */
SK_INLINE void sk_enter_word(const sk_arcs *a, sk_size i, int any) {
    const sk_size n = a->n;
    const double *restrict s = a->scores + i * n;
    double top;
    sk_size j;
    if (any) {
        top = sk_top(s, n);
        j = sk_index_of(s, n, top);
        j = j < n && j != i ? j : -1;
    } else {
        double left = sk_top(s, i), right = sk_top(s + i + 1, n - i - 1);
        top = left > right ? left : right;
        j = left > right ? sk_index_of(s, i, top) : i + 1 + sk_index_of(s + i + 1, n - i - 1, top);
        if (j >= n) j = i > 0 ? 0 : 1;
    }
    a->entry[i] = top;
    a->source[i] = j;
}

/* Contracts the cycle of nodes path[from .. to] to one set. An arc into it has its score minus that of the arc that it
 * replaces, so the score of the set itself is not needed. */
SK_INLINE void sk_contract(sk_arcs *a, sk_size from, sk_size to, int any) {
    const sk_size n = a->n, set = a->nodes++;
    double *restrict row = a->rows + (set - n) * n;
    sk_size b = a->path[from], c = a->path[from + 1], j;
    const double *restrict p = sk_arcs_into(a, b), *restrict q = sk_arcs_into(a, c);
    double e = a->entry[b], f = a->entry[c], top, root = -INFINITY;
    SK_SIMD
    for (sk_size k = 0; k < n; k++) {
        double s = p[k] - e, t = q[k] - f;
        row[k] = s > t ? s : t;
    }
    for (sk_size d = from + 2; d <= to; d++) {
        const double *restrict r = sk_arcs_into(a, a->path[d]);
        e = a->entry[a->path[d]];
        SK_SIMD
        for (sk_size k = 0; k < n; k++) {
            double s = r[k] - e, t = row[k];
            row[k] = s > t ? s : t;
        }
    }
    a->child[set] = -1;
    a->parent[set] = -1;
    for (sk_size d = from; d <= to; d++) {
        b = a->path[d];
        a->parent[b] = set;
        a->sibling[b] = a->child[set];
        a->child[set] = b;
        if (d == from)
            a->first[set] = a->first[b];
        else
            a->next[a->last[set]] = a->first[b];
        a->last[set] = a->last[b];
        if (a->root[b] - a->entry[b] > root) root = a->root[b] - a->entry[b];
    }
    a->root[set] = root;
    for (sk_size k = a->first[set];; k = a->next[k]) {
        a->node[k] = set;
        row[k] = -INFINITY;
        if (k == a->last[set]) break;
    }
    top = sk_top(row, n);
    if (any && !(top > root)) {
        top = root;
        j = -1;
    } else {
        j = sk_index_of(row, n, top);
        if (j == n || a->node[j] == set) { /* NaN scores: take any word outside, so that the loop ends */
            j = -1;
            for (sk_size k = 0; !any && k < n && j < 0; k++) j = a->node[k] == set ? -1 : k;
        }
    }
    a->entry[set] = top;
    a->source[set] = j;
}

/* Follows the best arcs backwards from each word. A path that meets itself has a cycle, which is contracted. With any =
 * 0 the root is left out until all words are one set. */
SK_INLINE void sk_follow(sk_arcs *a, int any) {
    const sk_size n = a->n;
    sk_size tops = n;
    a->nodes = n;
    for (sk_size i = 0; i < n; i++) {
        a->node[i] = a->first[i] = a->last[i] = i;
        a->parent[i] = -1;
        a->state[i] = 0;
        a->root[i] = a->scores[i * n + i];
    }
    for (sk_size start = 0; start < (any ? n : 1); start++) {
        sk_size length = 0, node = start, to;
        if (a->state[start]) continue;
        for (;;) {
            a->path[length++] = node;
            a->state[node] = 1;
            if (node < n && (any || n > 1)) sk_enter_word(a, node, any);
            for (;;) { /* contract until the arc comes from a node off the path */
                if (!any && tops == 1) return;
                to = a->source[node];
                to = to < 0 ? -1 : a->node[to];
                if (to < 0 || a->state[to] != 1) break;
                sk_size from = length - 1;
                while (a->path[from] != to) from--;
                sk_contract(a, from, length - 1, any);
                tops -= length - 1 - from;
                length = from;
                node = a->nodes - 1;
                a->path[length++] = node;
                a->state[node] = 1;
            }
            if (to < 0 || a->state[to] == 2) break;
            node = to;
        }
        while (length > 0) a->state[a->path[--length]] = 2;
    }
}

/* The best word for the single arc from the root, once all words are one set. That arc replaces the entries of all sets
 * around its word. Entries of a word that must be the root are huge and cancel among the words of a set. The sums are
 * therefore in double-double arithmetic. */
SK_INLINE sk_size sk_one_root(const sk_arcs *a, double *restrict high, double *restrict low) {
    double most = -INFINITY, rest = 0.0;
    sk_size best = 0;
    for (sk_size d = a->nodes - 1; d >= 0; d--) {
        double h = 0.0, l = 0.0, sum, part, gain, mine = d < a->n ? a->root[d] : 0.0;
        if (a->parent[d] >= 0) {
            double e = a->entry[d];
            h = high[a->parent[d]];
            sum = h + e;
            part = sum - h;
            l = low[a->parent[d]] + ((h - (sum - part)) + (e - part));
            h = sum + l;
            l -= h - sum;
        }
        high[d] = h;
        low[d] = l;
        if (d >= a->n) continue;
        sum = mine - h;
        part = sum - mine;
        l = ((mine - (sum - part)) - (h + part)) - l;
        gain = sum + l;
        l -= gain - sum;
        if (gain > most || (gain == most && l > rest)) {
            most = gain;
            rest = l;
            best = d;
        }
    }
    return best;
}

/* Expands the sets, outermost first: the arc into a set replaces the cycle's arc at the node that it enters. The other
 * nodes keep the arcs of the cycle. */
SK_INLINE double sk_expand(const sk_arcs *a, sk_size one, sk_size *restrict head) {
    const sk_size n = a->n;
    double value = 0.0;
    if (one >= 0)
        for (sk_size d = one; d >= 0; d = a->parent[d]) a->source[d] = -1;
    for (sk_size set = a->nodes - 1; set >= n; set--) {
        sk_size j = a->source[set], into = a->child[set];
        double most = -INFINITY;
        if (j < 0 && one >= 0) continue;
        for (sk_size d = into; d >= 0; d = a->sibling[d]) {
            double s = (j < 0 ? a->root[d] : sk_arcs_into(a, d)[j]) - a->entry[d];
            if (s > most) {
                most = s;
                into = d;
            }
        }
        a->source[into] = j;
    }
    for (sk_size i = 0; i < n; i++) {
        head[i] = a->source[i] < 0 ? i : a->source[i];
        value += a->scores[i * n + head[i]];
    }
    return value;
}

/* The method of Chu and Liu and of Edmonds, which merges rows of sets instead of copying graphs. It takes O(n^2): there
 * are at most n - 1 sets with 2 n - 2 nodes, and a row has n entries. If a tree of allowed arcs exists, one of them
 * enters each set, so entries of sets stay finite. The exception is a set with the only possible root: hence the
 * double-double sums in sk_one_root. */
SK_MULTI(double, sk_arborescence,
         (sk_size n, const double *restrict scores, int single_root, sk_size *restrict head, double *work),
         (n, scores, single_root, head, work)) {
    sk_arcs a;
    double value;
    sk_size roots = 0;
    a.n = n;
    a.scores = scores;
    a.rows = sk_take(&work, n * n - n);
    a.root = sk_take(&work, 2 * n);
    a.entry = sk_take(&work, 2 * n);
    a.source = sk_take_indices(&work, 2 * n);
    a.parent = sk_take_indices(&work, 2 * n);
    a.child = sk_take_indices(&work, 2 * n);
    a.sibling = sk_take_indices(&work, 2 * n);
    a.first = sk_take_indices(&work, 2 * n);
    a.last = sk_take_indices(&work, 2 * n);
    a.state = sk_take_indices(&work, 2 * n);
    a.path = sk_take_indices(&work, n);
    a.next = sk_take_indices(&work, n);
    a.node = sk_take_indices(&work, n);
    sk_follow(&a, 1);
    value = sk_expand(&a, -1, head);
    if (!single_root) return value;
    for (sk_size i = 0; i < n; i++) roots += head[i] == i;
    if (roots == 1) return value;
    sk_follow(&a, 0);
    /* the words' lists are no longer needed: the sums use their memory */
    return sk_expand(&a, sk_one_root(&a, (double *)a.first, (double *)a.last), head);
}

/* cells of the chart that are computed together */
#define SK_CELLS 8

/* Doubles between two widths of the chart; padding lets the last cells read past its end. With a multiple of two cache
 * lines widths share the sets of a cache: 496 words take 1.4 times as long. */
SK_INLINE sk_size sk_chart_stride(sk_size n) { return n + (n % (2 * SK_CELLS) ? 2 : 3) * SK_CELLS; }

static sk_size sk_eisner_buffer_size(sk_size n) { return 4 * (n + 2) * sk_chart_stride(n) + 7 * n + 6; }

/* The first k < n where x + y, of entries dx and dy apart, is largest. */
SK_INLINE sk_size sk_best_split(const double *x, sk_size dx, const double *y, sk_size dy, sk_size n) {
    double most = -INFINITY;
    sk_size at = 0;
    for (sk_size k = 0; k < n; k++)
        if (x[k * dx] + y[k * dy] > most) {
            most = x[k * dx] + y[k * dy];
            at = k;
        }
    return at;
}

/* Eisner's chart over the words: entry [w, s] belongs to the words from s to s + w. right, left: the best tree over
 * them with head s, or s + w. to_right, to_left: the same with an arc between s and s + w, whose subtree ends there on
 * the other side. The root comes last, in the order of the sentence. rooted[e]: the best trees over the words before e.
 * hung[d]: the same up to d, with the root as the head of d and no word yet on d's right. Each row of scores is taken
 * relative to its largest. Cells of one width do not depend on each other, so several are computed at once. */
SK_MULTI(double, sk_eisner,
         (sk_size n, const double *restrict scores, int single_root, sk_size *restrict head, double *work),
         (n, scores, single_root, head, work)) {
    const sk_size stride = sk_chart_stride(n), back = 1 - stride, size = (n + 2) * stride;
    memset(work, 0, (size_t)(4 * size) * sizeof(double)); /* of the chart, through the pointer that all share */
    double *restrict right = sk_take(&work, size), *restrict left = sk_take(&work, size);
    double *restrict to_right = sk_take(&work, size), *restrict to_left = sk_take(&work, size);
    double *restrict high = sk_take(&work, n);
    double *restrict rooted = sk_take(&work, n + 1), *restrict hung = sk_take(&work, n + 1);
    sk_size *restrict stack = sk_take_indices(&work, 4 * n + 4);
    sk_size depth = 0, end;
    double value = 0.0;
    for (sk_size i = 0; i < n; i++) high[i] = sk_top(scores + i * n, n);
    for (sk_size w = 1; w < n; w++)
        for (sk_size from = 0; from < n - w; from += SK_CELLS) {
            double both[SK_CELLS], r[SK_CELLS], l[SK_CELLS];
            for (sk_size i = 0; i < SK_CELLS; i++) {
                both[i] = right[from + i] + left[(w - 1) * stride + from + i + 1];
                r[i] = l[i] = -INFINITY;
            }
            for (sk_size j = 1; j < w; j++) {
                const sk_size first = j * stride + from, rest = (w - j) * stride + from + j;
                const double *restrict a = right + first, *restrict b = left + rest + back;
                const double *restrict c = to_right + first, *restrict d = right + rest;
                const double *restrict e = to_left + rest, *restrict f = left + first;
                SK_SIMD for (sk_size i = 0; i < SK_CELLS; i++) {
                    const double p = a[i] + b[i], q = c[i] + d[i], u = e[i] + f[i];
                    both[i] = p > both[i] ? p : both[i];
                    r[i] = q > r[i] ? q : r[i];
                    l[i] = u > l[i] ? u : l[i];
                }
            }
            for (sk_size i = 0; i < SK_CELLS && from + i < n - w; i++) {
                const sk_size s = from + i, t = s + w, at = w * stride + s;
                to_right[at] = both[i] + (scores[t * n + s] - high[t]);
                to_left[at] = both[i] + (scores[s * n + t] - high[s]);
                right[at] = r[i] > to_right[at] ? r[i] : to_right[at];
                left[at] = l[i] > to_left[at] ? l[i] : to_left[at];
            }
        }
    rooted[0] = 0.0;
    for (sk_size d = 0; d < n; d++) {
        double top = left[d * stride], total = -INFINITY;
        for (sk_size k = 1; k <= d && !single_root; k++) {
            const double sum = rooted[k] + left[(d - k) * stride + k];
            top = sum > top ? sum : top;
        }
        hung[d] = top + (scores[d * n + d] - high[d]);
        for (sk_size k = 0; k <= d; k++) {
            const double sum = hung[k] + right[(d - k) * stride + k];
            total = sum > total ? sum : total;
        }
        rooted[d + 1] = total;
    }
    for (end = n; end > 0;) {
        const sk_size d = sk_best_split(hung, 1, right + (end - 1) * stride, back, end);
        head[d] = d;
        stack[depth++] = d;
        stack[depth++] = end - 1;
        end = single_root ? 0 : sk_best_split(rooted, 1, left + d * stride, back, d + 1);
        stack[depth++] = d;
        stack[depth++] = end;
        /* each step gives one word its head: the stack has at most 2 n + 2 trees of two indices */
        while (depth > 0) {
            const sk_size e = stack[--depth], h = stack[--depth], width = (h < e ? e - h : h - e);
            sk_size m, s, t, k;
            if (h == e) continue;
            if (h < e) {
                const double *rest = right + (width - 1) * stride + h + 1;
                m = h + 1 + sk_best_split(to_right + stride + h, stride, rest, back, width);
            } else
                m = e + sk_best_split(to_left + width * stride + e, back, left + e, stride, width);
            head[m] = h;
            s = h < m ? h : m;
            t = h < m ? m : h;
            k = s + sk_best_split(right + s, stride, left + (t - s - 1) * stride + s + 1, back, t - s);
            stack[depth++] = m;
            stack[depth++] = e;
            stack[depth++] = s;
            stack[depth++] = k;
            stack[depth++] = t;
            stack[depth++] = k + 1;
        }
    }
    for (sk_size i = 0; i < n; i++) value += scores[i * n + head[i]];
    return value;
}

#endif
