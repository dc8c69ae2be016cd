/* The local problem of a pair of variables in a factor graph: its closed form, Proposition 10, and its Jacobian. */
#ifndef SPARSEKIT_PAIR_H
#define SPARSEKIT_PAIR_H

#include "host_device.h"

/* marginals this near to 0 or 1 do not move: rounding must not free a variable that the constraint holds. Without
 * branches, so that loops over pairs vectorise. */
#define FG_EDGE 1e-12
#define FG_FREE(x) (((x) > FG_EDGE) & ((x) < 1.0 - FG_EDGE))

SK_BOTH double fg_clip(double x) { return x < 0.0 ? 0.0 : (x > 1.0 ? 1.0 : x); }

/* Marginals x1 and x2 for scores v1, v2 and that of both on; d1 and d2 are degrees, q = 1 / (d1 + d2). A negative score is
 * turned by x2' = 1 - x2, x12' = x1 - x12. */
SK_BOTH void sk_pair(double v1, double v2, double d1, double d2, double q, double score, double *x1, double *x2) {
    int turn = score < 0.0;
    double up = fabs(score), e1 = up * d1, e2 = up * d2;
    /* the first variable without the score and with it: a huge one must not cost the other its digits */
    double a1 = turn ? v1 - e1 : v1, b1 = turn ? v1 : v1 + e1;
    double a2 = turn ? 1.0 - v2 : v2, b2 = a2 + e2;
    double tied = (d2 * v1 + d1 * (turn ? a2 : b2)) * q;
    int first = a1 > b2, second = a2 > b1;
    double y1 = first ? a1 : (second ? b1 : tied);
    double y2 = first ? b2 : (second ? a2 : tied);
    y1 = y1 < 0.0 ? 0.0 : y1;
    y1 = y1 > 1.0 ? 1.0 : y1;
    y2 = y2 < 0.0 ? 0.0 : y2;
    y2 = y2 > 1.0 ? 1.0 : y2;
    *x1 = y1;
    *x2 = turn ? 1.0 - y2 : y2;
}

/* N p of a pair with marginals a and b. With a score of 0 the two count as independent. */
SK_BOTH double sk_pair_both(double a, double b, double score) {
    return score > 0.0 ? (a < b ? a : b) : (score < 0.0 ? (a + b > 1.0 ? a + b - 1.0 : 0.0) : a * b);
}

typedef struct {
    double f1, f2, e1, e2, coef, n1, n2;
} sk_pair_slopes;

/* eqs. (167) and (171) at the same point: f + e coef (w e)' in the scores, n in that of both. Where that is 0 the
 * variables are independent, and the slope in it, which is one-sided, that of a score just above 0. */
SK_BOTH sk_pair_slopes sk_pair_jacobian(double v1, double v2, double d1, double d2, double q, double score) {
    double up = fabs(score);
    int turn = score < 0.0;
    double a1 = turn ? v1 - up * d1 : v1, b1 = turn ? v1 : v1 + up * d1;
    double a2 = turn ? 1.0 - v2 : v2, b2 = a2 + up * d2;
    double tied = (d2 * v1 + d1 * (turn ? a2 : b2)) * q, share = d1 * d2 * q;
    int first = a1 > b2, second = a2 > b1, apart = first | second | (up == 0.0);
    double y1 = second ? b1 : a1, y2 = second ? a2 : b2;
    double free1 = apart & FG_FREE(y1) ? 1.0 : 0.0, free2 = apart & FG_FREE(y2) ? 1.0 : 0.0;
    double joined = apart ? 0.0 : (FG_FREE(tied) ? 1.0 : 0.0);
    double coef = joined * share; /* 1 / (w1 + w2) */
    /* with a score below 0 both depend on it where the first is above, else neither */
    double n1 = turn ? (first ? free1 * d1 : 0.0) : (second ? free1 * d1 : coef);
    double n2 = turn ? (first ? free2 * d2 : 0.0) : (first ? free2 * d2 : coef);
    sk_pair_slopes slopes = {free1, free2, joined, turn ? -joined : joined, coef, n1, n2};
    return slopes;
}

#endif
