/* What needs no more than products with the Jacobians of a factor graph: conjugate gradients, derivatives of the
 * marginals in the scores, certificates of infeasibility, Jacobians of pairs at ties. For one thread of a processor, or
 * for the threads of a GPU's block.
 *
 * The including file has closed.h, and the types fg_plan and fg_state. It defines what graph_solve.h asks for, and:
 * FG_TEAM_SUMS(a, b), both sums in place; FG_MULTIPLY(g, t, in, y), y (n_slot) = J (copies of in), and FG_MEAN(g, x,
 * out), out (n_var) = means of the copies of variables in factors, after which all threads wait for each other;
 * FG_SUPPORTS(g, t, rho, size), a thread's part of the largest <rho_f, x_f> of all factors but pairs, where a score of
 * -2 size forbids; FG_TEAM_ENDS(g, t), whether the time is up. */
#ifndef SPARSEKIT_GRAPH_PASSES_H
#define SPARSEKIT_GRAPH_PASSES_H

/* Solves ((1 + eps) I - B) solution = right, (n_var), B = mean J (copies of .), by conjugate gradients until the
 * residual is at most `tol`. With eps = 0 the matrix is singular: `right` is in its range, and the solution has least
 * norm. */
FG_SHARED void fg_cg(FG_TEAM const fg_plan *g, const fg_state *t, double eps, const double *right, double tol,
                     double *solution) {
    const fg_count n = (fg_count)g->n_var;
    double *r = t->cg, *p = r + n, *ap = p + n, rr = 0.0;
    FG_SHARE(j, n) {
        solution[j] = ap[j] = 0.0;
        /* variables in no factor are left out */
        r[j] = p[j] = g->var_start[j] < g->var_start[j + 1] ? right[j] : 0.0;
        rr += r[j] * r[j];
    }
    rr = FG_TEAM_SUM(rr);
    for (fg_count it = 0; it < 2 * n + 50 && rr > tol * tol && !FG_TEAM_ENDS(g, t); it++) {
        double curvature = 0.0, square = 0.0, step, next = 0.0;
        FG_MULTIPLY(g, t, p, t->z);
        FG_MEAN(g, t->z, ap);
        FG_SHARE(j, n) {
            ap[j] = (1.0 + eps) * p[j] - ap[j];
            curvature += p[j] * ap[j];
            square += p[j] * p[j];
        }
        FG_TEAM_SUMS(curvature, square);
        /* the remainder is in the null space, where products are rounding */
        if (!(curvature > 1e-9 * square)) break;
        step = rr / curvature;
        FG_SHARE(j, n) {
            solution[j] += step * p[j];
            r[j] -= step * ap[j];
            next += r[j] * r[j];
        }
        next = FG_TEAM_SUM(next);
        FG_SHARE(j, n) p[j] = r[j] + next / rr * p[j];
        rr = next;
        FG_TEAM_WAIT;
    }
}

/* d (n_var) becomes J' d = J d, the limit of Algorithm 2. It is the projection on the fixed points of B, d - (I - B)^+
 * (I - B) d, by conjugate gradients. */
FG_SHARED void fg_project_direction(FG_TEAM const fg_plan *g, const fg_state *t, double *d) {
    const fg_count n = (fg_count)g->n_var;
    double *right = t->cg + 3 * n, *y = right + n, size = 0.0;
    FG_MULTIPLY(g, t, d, t->z);
    FG_SHARE(j, n) {
        right[j] = d[j];
        size += d[j] * d[j];
    }
    size = FG_TEAM_SUM(size);
    FG_MEAN(g, t->z, right);
    if (!g->is_separate) { /* else B is the projection itself */
        FG_SHARE(j, n) right[j] = d[j] - right[j];
        FG_TEAM_WAIT;
        /* a smaller residual is rounding, which directions of little curvature amplify */
        fg_cg(FG_SAME_TEAM g, t, 0.0, right, 1e-13 * sqrt(size), y);
    }
    FG_SHARE(j, n) {
        const int is_held = g->var_start[j] == g->var_start[j + 1] && !FG_FREE(t->mu[j]);
        d[j] = is_held ? 0.0 : (g->is_separate ? right[j] : d[j] - y[j]);
    }
    FG_TEAM_WAIT;
}

/* to_add (n_add): derivatives in the pairs' scores, from those in the variables' */
FG_SHARED void fg_vjp_pairs(const fg_plan *g, const fg_state *t, const double *to_eta, double *to_add) {
    FG_SHARE(i, g->n_pair) {
        const fg_count o = (fg_count)g->n_pair + i;
        to_add[g->pair_add[i]] = t->n1[i] * g->w[i] * to_eta[g->var[i]] + t->n2[i] * g->w[o] * to_eta[g->var[o]];
    }
}

/* Whether the vector r over the slots, of mean 0 over each variable's copies, certifies infeasibility. Any mu has <r,
 * copies of mu> = 0, so the factors' maxima of <r_f, x_f> must sum to at least 0. Overwrites s. */
FG_SHARED int fg_is_infeasible(FG_TEAM const fg_plan *g, const fg_state *t, const double *r) {
    const fg_count np = (fg_count)g->n_pair;
    double total = 0.0, size = 0.0, *rho = t->s;
    FG_SHARE(s, g->n_slot) size += fabs(g->w[s] * r[s]);
    size = FG_TEAM_SUM(size);
    FG_SHARE(s, g->n_slot) {
        /* Forbidden variables are 0 in every mu, so r is arbitrary there. A loss just above the possible gain of all
         * others costs no digits. */
        double x = t->off[g->var[s]] ? -2.0 * size : g->w[s] * r[s];
        if (s < 2 * np && g->negated[s]) { /* of 1 - x: subtract the constant */
            total += x;
            x = -x;
        }
        rho[s] = x;
    }
    FG_TEAM_WAIT;
    FG_SHARE(i, np) {
        const double a = rho[i] > 0.0 ? rho[i] : 0.0, b = rho[np + i] > 0.0 ? rho[np + i] : 0.0;
        total += t->off_add[g->pair_add[i]] ? (a > b ? a : b) : a + b;
    }
    total += FG_SUPPORTS(g, t, rho, size);
    return FG_TEAM_SUM(total) < -1e-9 * size;
}

/* The Jacobians of pairs become those of their smallest faces: x = y or x = 1 - y. With a score of 0 they are not
 * tied. */
FG_SHARED void fg_complete_pairs(const fg_plan *g, const fg_state *t) {
    FG_SHARE(i, g->n_pair) {
        const fg_count o = (fg_count)g->n_pair + i;
        const double way_a = g->negated[i] ? -1.0 : 1.0, way_b = g->negated[o] ? -1.0 : 1.0;
        const double a = g->negated[i] ? 1.0 - t->x[i] : t->x[i], b = g->negated[o] ? 1.0 - t->x[o] : t->x[o];
        const double share = g->deg[i] * g->deg[o] / (g->deg[i] + g->deg[o]);
        const int turn = t->c[i] < 0.0;
        if (t->c[i] != 0.0 && FG_INSIDE(a) && fabs(a - (turn ? 1.0 - b : b)) <= FG_TIED) {
            t->f[i] = t->f[o] = 0.0;
            t->e[i] = way_a;
            t->e[o] = turn ? -way_b : way_b;
            t->coef[i] = share;
            t->n1[i] = turn ? 0.0 : way_a * share;
            t->n2[i] = turn ? 0.0 : way_b * share;
            continue;
        }
        if (!FG_INSIDE(a)) t->f[i] = t->n1[i] = t->coef[i] = 0.0;
        if (!FG_INSIDE(b)) t->f[o] = t->n2[i] = t->coef[i] = 0.0;
    }
}

#endif
