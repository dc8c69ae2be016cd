/* Line search on a slope that increases with the step: expansion until its sign changes, then secants in the bracket. */
#ifndef SPARSEKIT_LINE_SEARCH_H
#define SPARSEKIT_LINE_SEARCH_H

#include "host_device.h"

/* Steps with a negative and with a positive slope, the slopes there, and the last one. hi = 0: none is positive yet. */
typedef struct {
    double lo, hi, at_lo, at_hi, last;
} sk_bracket;

/* The step after `step` with its slope, at most `most`. It expands by factors of four until the slope changes its sign,
 * then takes secant steps in the bracket. The slope at an end that stays twice is halved (Illinois rule): at a kink
 * steps would creep otherwise. The bracket begins as {0, 0, slope at 0, 0, 0}. */
SK_BOTH double sk_next_step(sk_bracket *b, double step, double slope, double most) {
    double margin, next;
    if (slope > 0.0) {
        if (b->last > 0.0) b->at_lo *= 0.5;
        b->hi = step, b->at_hi = slope;
    } else {
        if (b->last < 0.0) b->at_hi *= 0.5;
        b->lo = step, b->at_lo = slope;
    }
    b->last = slope;
    if (b->hi == 0.0) return 4.0 * step < most ? 4.0 * step : most;
    margin = 0.05 * (b->hi - b->lo);
    next = b->lo - b->at_lo * (b->hi - b->lo) / (b->at_hi - b->at_lo);
    next = next > b->lo + margin ? next : b->lo + margin;
    return next < b->hi - margin ? next : b->hi - margin;
}

#endif
