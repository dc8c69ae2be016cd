/* What steps with blocks of classes share: their tables, and the draw of a step's blocks. */
#ifndef SPARSEKIT_BLOCK_DRAWS_H
#define SPARSEKIT_BLOCK_DRAWS_H

#include "extreme/softmax_rules.h"

#define SK_BLOCK 16
/* cache lines of the next row's weights that are asked for ahead */
#define SK_LINES_AHEAD 256

typedef struct {
    sk_size stride;        /* numbers from a feature's weights to the next one's */
    sk_size n_blocks;
    sk_size n_drawn;        /* blocks of a step, at most; all of them if it is n_blocks */
    const double *p, *keep; /* probabilities of the blocks and their alias table (n_blocks); unused if all are taken */
    const int64_t *alias;
} sk_blocks;

/* Sums of squared gradients for AdaGrad's step sizes (Duchi, Hazan, Singer, 2011), as products of one number a feature
 * and one a class. A row adds x_i^2 g_k^2, which is such a product. A step in this metric has rank one, as before. No
 * table of sums of the size of the weights is needed. */
typedef struct {
    double *features; /* (n_features) */
    double *rows;     /* (n_features): rows that had the feature */
    double *classes;  /* (stride) */
    double *totals;   /* (4): the sum of all squares, the number of rows, the sum of the intercepts, and one over the
                       * scale of the features, which stays */
    double *workspace; /* (2, n_features) */
    /* the ridge's centre, or NULL: zeros, of the rows' type. Without start it is a table as W. Else start[j n_blocks
     * + b] .. are the entries of feature j in block b, and lane their classes in the block */
    const int64_t *start;
    const unsigned char *lane;
    const void *center;
    const double *own; /* (examples) what the centre adds to an example's score of its label by its own row, or NULL */
    int n_threads;    /* each has sums of its own, to which a row adds as often */
} sk_metric;
/* largest change of a score by a step; longer steps are shortened, since first gradients do not predict later ones */
#define SK_SCORE_STEP 2.0
/* a sum of squares below this one moves nothing: one over its root would leave float32 */
#define SK_LEAST_SQUARES 1e-30
/* largest shrinkage of a feature, for rows of 1e-20: infinity times the 0 of another class would be NaN */
#define SK_MOST_SHRINKAGE 1e30

/* Writes the blocks of a step to b and the inverse expected number of each to w. Returns how many: equal ones are
 * merged. slot (n_blocks) holds the index of a block in b; it needs no initial values. */
static sk_size sk_draw_blocks(const sk_blocks *B, uint64_t *state, int64_t *b, double *w, int64_t *slot) {
    sk_size n = 0;
    for (; B->n_drawn >= B->n_blocks && n < B->n_blocks; n++) {
        b[n] = n;
        w[n] = 1.0;
    }
    for (sk_size i = 0; B->n_drawn < B->n_blocks && i < B->n_drawn; i++) {
        int64_t j = sk_below(state, B->n_blocks);
        double weight;
        sk_size l;
        if (!(sk_unit(state) < B->keep[j])) j = B->alias[j];
        weight = 1.0 / ((double)B->n_drawn * B->p[j]);
        l = slot[j];
        if (l >= 0 && l < n && b[l] == j) {
            w[l] += weight;
            continue;
        }
        slot[j] = n;
        b[n] = j;
        w[n++] = weight;
    }
    return n;
}

#endif
