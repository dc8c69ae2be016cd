/* Marginals of labels with pair scores, and perhaps factors over them, for one row of scores.
 *
 * Most labels of a row are decided before any iteration: a label whose score stays <= 0 with all that its pairs could
 * add is off, one whose score stays >= 1 (>= 0 in LP-MAP) with all that they could take is on, whatever the others
 * are; and each decision settles its pairs. What is left is a small graph of its own. */
#ifndef SPARSEKIT_LABEL_GRAPH_H
#define SPARSEKIT_LABEL_GRAPH_H

#include "factor_solve.h"

typedef struct {
    sk_size n_labels, n_pairs;
    const sk_size *start;         /* (n_labels + 1): pairs of a label are other, pair [start .. next) */
    const int32_t *other, *pair;
    const double *plus, *minus;   /* (n_pairs): score = plus - minus, both >= 0 */
    const double *gain, *loss;    /* (n_labels): sums of plus and of minus over a label's pairs */
    const int32_t *alone;         /* whether no factor holds a label */
    const int32_t *may_fall, *may_rise; /* whether no factor minds a label being less, or more */
    /* factors over labels, as in fg_plan */
    sk_size n_linear, n_orout;
    const sk_size *linear, *orout;
    const int32_t *linear_label, *orout_label, *relation, *negated;
    const double *a, *bound;
} fg_labels;

/* mu (n_labels) for scores eta; room: 4 n_labels doubles, queue: 2 n_labels integers */
static int fg_label_marginals(const fg_labels *g, const double *eta, const fg_options *o, double *mu, double *room,
                              int32_t *queue, sk_size *passes) {
    const sk_size K = g->n_labels;
    double *score = room, *up = room + K, *down = up + K; /* the score with pairs that are settled; what others add */
    int32_t *number = queue + K;                           /* number in the graph that is left, or what was decided */
    const double enough = o->quadratic ? 1.0 : 0.0;
    enum { OFF = -2, ON = -1, OPEN = 0 };
    sk_size head = 0, tail = 0, n = 0, np = 0, ns, nl = 0, no = 0;
    int status;
    for (sk_size j = 0; j < K; j++) {
        score[j] = eta[j];
        up[j] = g->gain[j];
        down[j] = g->loss[j];
        number[j] = OPEN;
    }
    for (sk_size j = 0; j < K; j++) {
        if (g->may_fall[j] && score[j] + up[j] <= 0.0) number[j] = OFF, queue[tail++] = (int32_t)j;
        else if (g->may_rise[j] && score[j] - down[j] >= enough) number[j] = ON, queue[tail++] = (int32_t)j;
    }
    for (; head < tail; head++) {
        sk_size j = queue[head];
        int on = number[j] == ON;
        for (sk_size e = g->start[j]; e < g->start[j + 1]; e++) {
            sk_size k = g->other[e], pair = g->pair[e];
            double plus = g->plus[pair], minus = g->minus[pair];
            if (number[k] != OPEN) continue;
            up[k] -= plus;
            down[k] -= minus;
            if (on) score[k] += plus - minus;
            if (g->may_fall[k] && score[k] + up[k] <= 0.0) number[k] = OFF, queue[tail++] = (int32_t)k;
            else if (g->may_rise[k] && score[k] - down[k] >= enough) number[k] = ON, queue[tail++] = (int32_t)k;
        }
    }
    for (sk_size j = 0; j < K; j++) {
        mu[j] = number[j] == ON;
        if (number[j] == OPEN) {
            int bound_up = !g->alone[j];
            for (sk_size e = g->start[j]; e < g->start[j + 1] && !bound_up; e++) bound_up = number[g->other[e]] >= OPEN;
            if (bound_up) number[j] = (int32_t)++n;
            else { /* nothing else that is open has to do with it */
                mu[j] = fg_clip(score[j]);
                number[j] = OFF; /* or what it is; nobody asks */
            }
        }
    }
    *passes = 0;
    if (n == 0) return FG_CONVERGED;

    for (sk_size j = 0; j < K; j++)
        if (number[j] > 0)
            for (sk_size e = g->start[j]; e < g->start[j + 1]; e++)
                if (g->other[e] > j && number[g->other[e]] > 0)
                    np += (g->plus[g->pair[e]] > 0.0) + (g->minus[g->pair[e]] > 0.0);
    ns = 2 * np;
    for (sk_size s = g->linear[0]; s < g->linear[g->n_linear]; s++) ns += number[g->linear_label[s]] > 0;
    ns += g->orout[g->n_orout] - g->orout[0];
    {
        fg_plan plan;
        fg_state state;
        const sk_size room_sizes = n + 1 + g->n_linear + g->n_orout + 2;
        double *reals = malloc((size_t)(4 * ns + np + g->n_linear + 1) * sizeof(double));
        sk_size *sizes = malloc((size_t)room_sizes * sizeof(sk_size));
        int32_t *ints = malloc((size_t)(3 * ns + np + g->n_linear + 1) * sizeof(int32_t));
        double *deg = reals, *w = deg + ns, *a = w + ns, *ad = a + ns, *pair_score = ad + ns, *bound = pair_score + np;
        int32_t *var = ints, *var_slot = var + ns, *negated = var_slot + ns, *pair_add = negated + ns,
                *relation = pair_add + np;
        sk_size *var_start = sizes, *linear = var_start + n + 1, *orout = linear + g->n_linear + 1, i = 0, s;
        if (reals == NULL || sizes == NULL || ints == NULL) {
            free(reals);
            free(sizes);
            free(ints);
            return FG_NO_MEMORY;
        }
        for (sk_size j = 0; j < K; j++)
            if (number[j] > 0)
                for (sk_size e = g->start[j]; e < g->start[j + 1]; e++) {
                    sk_size k = g->other[e], pair = g->pair[e];
                    if (k < j || number[k] <= 0) continue;
                    for (int sign = 0; sign < 2; sign++) {
                        double given = sign ? -g->minus[pair] : g->plus[pair];
                        if (given == 0.0) continue;
                        var[i] = number[j] - 1;
                        var[np + i] = number[k] - 1;
                        pair_add[i] = (int32_t)i;
                        pair_score[i++] = given;
                    }
                }
        s = 2 * np;
        for (sk_size f = 0; f < g->n_linear; f++) {
            sk_size first = s;
            double b = g->bound[f];
            linear[nl] = s;
            for (sk_size e = g->linear[f]; e < g->linear[f + 1]; e++) {
                sk_size j = g->linear_label[e];
                if (number[j] > 0) {
                    var[s] = number[j] - 1;
                    a[s++] = g->a[e];
                } else if (number[j] == ON)
                    b -= g->a[e];
            }
            if (s == first) continue;
            relation[nl] = g->relation[f];
            bound[nl++] = b;
        }
        linear[nl] = s;
        for (sk_size f = 0; f < g->n_orout; f++) { /* its labels are never decided beforehand */
            orout[no++] = s;
            for (sk_size e = g->orout[f]; e < g->orout[f + 1]; e++) {
                var[s] = number[g->orout_label[e]] - 1;
                negated[s] = g->negated[e];
                a[s++] = e == g->orout[f + 1] - 1 ? -1.0 : 1.0;
            }
        }
        orout[no] = s;
        memset(var_start, 0, (size_t)(n + 1) * sizeof(sk_size));
        for (sk_size t = 0; t < ns; t++) var_start[var[t] + 1]++;
        for (sk_size j = 0; j < n; j++) var_start[j + 1] += var_start[j];
        for (sk_size t = 0; t < ns; t++) var_slot[var_start[var[t]]++] = (int32_t)t;
        for (sk_size j = n; j > 0; j--) var_start[j] = var_start[j - 1];
        var_start[0] = 0;
        for (sk_size t = 0; t < ns; t++) {
            deg[t] = (double)(var_start[var[t] + 1] - var_start[var[t]]);
            w[t] = 1.0 / deg[t];
            if (t >= 2 * np) ad[t] = a[t] * deg[t];
        }
        memset(&plan, 0, sizeof plan);
        plan.n_var = n;
        plan.n_slot = ns;
        plan.n_add = plan.n_pair = np;
        plan.n_linear = nl;
        plan.n_orout = no;
        plan.var = var;
        plan.var_start = var_start;
        plan.var_slot = var_slot;
        plan.deg = deg;
        plan.w = w;
        plan.a = a;
        plan.ad = ad;
        plan.pair_add = pair_add;
        plan.linear = linear;
        plan.relation = relation;
        plan.bound = bound;
        plan.orout = orout;
        plan.negated = negated;
        if (fg_allocate(&plan, &state)) {
            for (sk_size j = 0; j < K; j++)
                if (number[j] > 0) state.eta[number[j] - 1] = score[j];
            memcpy(state.add, pair_score, (size_t)np * sizeof(double));
            status = fg_run(&plan, &state, o);
            *passes = state.n_iter;
            for (sk_size j = 0; j < K; j++)
                if (number[j] > 0) mu[j] = fg_clip(state.mu[number[j] - 1]);
        } else
            status = FG_NO_MEMORY;
        fg_free(&plan, &state);
        free(reals);
        free(sizes);
        free(ints);
    }
    return status;
}

#endif
