/* Factors in closed form: a box cut by one linear constraint (D.1.3) and OrOut (D.2.6). Their answers, the Jacobians f +
 * e coef (w e)' of these, at ties too, and their largest <rho, x>. For one thread of a processor, or for the lanes of a
 * GPU that share a factor.
 *
 * The including file has fg_sweep and defines: FG_LANES and FG_SAME_LANES, a parameter and an argument with a comma
 * behind it, or nothing; FG_EACH(k, d), a loop over a lane's entries; FG_SUM, FG_MOST and FG_LEAST over the lanes;
 * FG_OF(x, k), x of the lane that has entry k; FG_ONE_LANE, whether this lane writes what they share; FG_MEET, their
 * barrier; FG_CLOSED, what functions begin with; fg_count, the type of d. */
#ifndef SPARSEKIT_CLOSED_H
#define SPARSEKIT_CLOSED_H

#include "numbers.h"
#include "pair.h"

#define FG_HUGE 1.7976931348623157e308
/* largest difference that counts as rounding at ties: a constraint that is met with equality is active even if its
 * multiplier is 0, and so is a bound */
#define FG_TIED 1e-9
#define FG_INSIDE(x) (((x) > FG_TIED) & ((x) < 1.0 - FG_TIED))

/* distance in tau from here to where the next variable leaves its bound, upwards (way 1) or downwards (-1) */
FG_CLOSED double fg_next_bend(FG_LANES fg_count d, const double *v, const double *ad, double tau, int way) {
    double best = FG_HUGE;
    FG_EACH(k, d) {
        double rate = way * ad[k], y = v[k] + tau * ad[k], t = FG_HUGE;
        if (rate > 0.0 && y <= 0.0) t = -y / rate;
        else if (rate < 0.0 && y >= 1.0) t = (1.0 - y) / rate;
        best = t < best ? t : best;
    }
    return FG_LEAST(best);
}

/* Projection on the box cut by a.x <=, = or >= b: x = clip(v + tau ad). a.x rises with tau; tau solves a.x = b, and is
 * 0 for an inactive inequality. Newton's method in a bracket, from the last tau: a.x is piecewise linear, so the step
 * out of the right piece is exact. */
FG_CLOSED void fg_linear(FG_LANES fg_count d, const double *v, const double *a, const double *ad, int relation, double b,
                         double *tau, double *x, double *f, double *e, double *coef) {
    double t = *tau, lo = -FG_HUGE, hi = FG_HUGE, sum, slope, scale = fabs(b) + 1.0;
    int free_of_it = 0;
    for (int round = 0; round < 200; round++) {
        double miss, next;
        fg_sweep(FG_SAME_LANES d, v, a, ad, t, x, &sum, &slope);
        miss = sum - b;
        if (t == 0.0 && relation * miss >= 0.0 && relation != FG_EQUAL) {
            free_of_it = 1;
            break;
        }
        if (fabs(miss) <= 2e-16 * scale) break;
        if (miss > 0.0) hi = t;
        else lo = t;
        if (slope > 0.0) next = t - miss / slope;
        else {
            double bend = fg_next_bend(FG_SAME_LANES d, v, ad, t, miss > 0.0 ? -1 : 1);
            if (bend == FG_HUGE) break; /* all are at their bounds: a.x is at its maximum or minimum */
            bend += 1e-6 + 8.0 * 2.220446049250313e-16 * (fabs(t) + bend);
            next = miss > 0.0 ? t - bend : t + bend;
        }
        /* the sign that the multiplier of an inequality has */
        if (relation * next < 0.0) next = 0.0;
        if (!(next > lo && next < hi)) {
            const double middle = 0.5 * (lo + hi);
            if (lo == -FG_HUGE || hi == FG_HUGE || !(middle > lo && middle < hi)) break;
            next = middle;
        }
        if (next == t) break;
        t = next;
    }
    FG_MEET;
    if (FG_ONE_LANE) *tau = t;
    if (!f) return;
    slope = 0.0;
    FG_EACH(k, d) {
        f[k] = FG_FREE(x[k]);
        e[k] = f[k] * ad[k];
        slope += f[k] * a[k] * ad[k];
    }
    slope = FG_SUM(slope);
    if (FG_ONE_LANE) *coef = free_of_it || !(slope > 0.0) ? 0.0 : -1.0 / slope;
}

/* OrOut: last = OR of the others; y becomes v with what is negated turned, and x, of y, has it turned too. Returns
 * whether the answer is instead that the others sum to the last, which fg_linear finds from y. */
FG_CLOSED int fg_orout(FG_LANES fg_count d, const double *v, const double *w, const int *negated, double *x, double *y,
                       double *f, double *e, double *coef) {
    double most = 0.0, total = 0.0, last = 0.0, level = 0.0, out, weight = 0.0;
    int is_level = 0;
    FG_EACH(k, d) {
        y[k] = negated[k] ? 1.0 - v[k] : v[k];
        x[k] = fg_clip(y[k]);
        if (k == d - 1) last = y[k];
        else {
            total += x[k];
            most = x[k] > most ? x[k] : most;
        }
    }
    last = FG_OF(last, d - 1);
    total = FG_SUM(total);
    most = FG_MOST(most);
    out = fg_clip(last);
    if (most > out) {
        /* Proposition 8: tau = weighted mean of the last score and those above it. It only rises as members join, so a
         * member stays one. */
        is_level = 1;
        level = last;
        for (fg_count round = 0; round <= d; round++) {
            double s = 0.0, q = 0.0, next;
            FG_EACH(k, d) if (k == d - 1 || y[k] > level) s += w[k] * y[k], q += w[k];
            next = FG_SUM(s) / FG_SUM(q);
            if (!(next > level)) break;
            level = next;
        }
        total = 0.0;
        out = fg_clip(level);
        FG_EACH(k, d) {
            x[k] = fg_clip(k == d - 1 || y[k] > level ? level : y[k]);
            if (k < d - 1) total += x[k];
        }
        total = FG_SUM(total);
    }
    if (total < out) return 1;
    if (!f) return 0;
    FG_EACH(k, d) {
        const int member = is_level && (k == d - 1 || y[k] > level);
        f[k] = member ? 0.0 : FG_FREE(x[k]);
        e[k] = member && FG_FREE(level);
        weight += e[k] * w[k];
    }
    weight = FG_SUM(weight);
    if (FG_ONE_LANE) *coef = weight > 0.0 ? 1.0 / weight : 0.0;
    return 0;
}

/* Turns back what is negated in answers of OrOut, and in e unless that is null. */
FG_CLOSED void fg_turn_back(FG_LANES fg_count d, const int *negated, double *x, double *e) {
    FG_EACH(k, d) if (negated[k]) {
        if (x) x[k] = 1.0 - x[k];
        if (e) e[k] = -e[k];
    }
}

/* Maximum of rho.x over the box cut by a.x <=, = or >= b. Its dual minimises t b + sum max(0, rho - t a) over t with
 * the constraint's sign. That function is convex, with breakpoints at rho / a. Each lane evaluates its own. */
FG_CLOSED double fg_linear_support(FG_LANES fg_count d, const double *rho, const double *a, int relation, double b) {
    double best = FG_HUGE;
    FG_EACH(i, d + 1) {
        double t = i == d ? 0.0 : (a[i] != 0.0 ? rho[i] / a[i] : 0.0), value;
        if (relation * t > 0.0) continue;
        value = t * b;
        for (fg_count k = 0; k < d; k++) value += rho[k] - t * a[k] > 0.0 ? rho[k] - t * a[k] : 0.0;
        best = value < best ? value : best;
    }
    return FG_LEAST(best);
}

FG_CLOSED double fg_orout_support(FG_LANES fg_count d, const double *rho, const int *negated) {
    double fixed = 0.0, inputs = 0.0, largest = -FG_HUGE, last = 0.0, on;
    FG_EACH(k, d) {
        double r = negated[k] ? -rho[k] : rho[k];
        fixed += negated[k] ? rho[k] : 0.0;
        if (k == d - 1) last = r;
        else {
            inputs += r > 0.0 ? r : 0.0;
            largest = r > largest ? r : largest;
        }
    }
    last = FG_OF(last, d - 1);
    inputs = FG_SUM(inputs);
    largest = FG_MOST(largest);
    on = last + (largest > 0.0 ? inputs : largest);
    return FG_SUM(fixed) + (on > 0.0 ? on : 0.0);
}

/* The Jacobian of the smallest face that the answer x lies in. */
FG_CLOSED void fg_complete_linear(FG_LANES fg_count d, const double *x, const double *a, const double *ad, double b,
                                  double *f, double *e, double *coef) {
    double miss = 0.0, size = 0.0, slope = 0.0;
    FG_EACH(k, d) {
        miss += a[k] * x[k];
        size += fabs(a[k] * x[k]);
        f[k] = FG_INSIDE(x[k]);
        e[k] = f[k] * ad[k];
        slope += f[k] * a[k] * ad[k];
    }
    miss = FG_SUM(miss) - b;
    size = FG_SUM(size) + fabs(b) + 1.0;
    slope = FG_SUM(slope);
    if (FG_ONE_LANE) *coef = (fabs(miss) <= FG_TIED * size || *coef != 0.0) && slope > 0.0 ? -1.0 / slope : 0.0;
}

/* the last is the largest of the others or more, and their sum or less; y: what is negated turned */
FG_CLOSED void fg_complete_orout(FG_LANES fg_count d, const double *x, const double *a, const double *ad, const double *w,
                                 const int *negated, double *y, double *f, double *e, double *coef) {
    double total = 0.0, weight = 0.0, out = 0.0;
    FG_EACH(k, d) {
        y[k] = negated[k] ? 1.0 - x[k] : x[k];
        if (k == d - 1) out = y[k];
        else total += y[k];
    }
    out = FG_OF(out, d - 1);
    total = FG_SUM(total);
    if (FG_ONE_LANE) *coef = 0.0;
    if (fabs(total - out) <= FG_TIED * (1.0 + total)) fg_complete_linear(FG_SAME_LANES d, y, a, ad, 0.0, f, e, coef);
    else {
        FG_EACH(k, d) {
            e[k] = FG_INSIDE(out) && fabs(y[k] - out) <= FG_TIED;
            f[k] = e[k] == 0.0 && FG_INSIDE(y[k]);
            weight += e[k] * w[k];
        }
        weight = FG_SUM(weight);
        if (FG_ONE_LANE) *coef = weight > 0.0 ? 1.0 / weight : 0.0;
    }
    fg_turn_back(FG_SAME_LANES d, negated, 0, e);
}

#endif
