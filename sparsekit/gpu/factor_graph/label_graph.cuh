// Marginals of labels with pair scores, and factors over them if there are any, for one row of scores. Bounds decide
// some labels before any iteration; a graph of the others is solved. The GPU version of
// _cython/factor_graph/label_graph.h.
#ifndef SK_LABEL_GRAPH_CUH
#define SK_LABEL_GRAPH_CUH

#include "factor_graph/factor_map.cuh"

namespace labels {

using factors::clip;
using factors::Options;
using factors::Plan;
using factors::Report;
using factors::State;
using factors::Team;

enum { OFF = -2, ON = -1, OPEN = 0 }; // what was decided; > 0: number in the graph that is left

struct Labels {
    int n_labels, n_linear, n_orout, n_entries; // entries: of linear factors, then of OrOut
    const int *start, *other, *pair;            // pairs of a label are other, pair [start .. next)
    const double *plus, *minus;                 // (n_pairs): score = plus - minus, both >= 0
    const double *gain, *loss;                  // (n_labels): sums of plus and of minus over a label's pairs
    const int *alone;                           // whether no factor holds a label
    const int *may_fall, *may_rise;             // whether no factor minds a label being less, or more
    const int *linear, *orout;                  // (+ 1): entries of a factor
    const int *entry_label, *negated;           // (n_entries)
    const int *relation;                        // (n_linear)
    const int *held_start, *held;               // entries of a label are held [start .. next)
    const double *a;                            // (n_entries)
    const double* bound;                        // (n_linear)
};

static __device__ __forceinline__ void assign_buffers(Labels& g, const long long* counts, const int* ints, const double* reals) {
    const int K = g.n_labels = (int)counts[0];
    g.n_linear = (int)counts[1];
    g.n_orout = (int)counts[2];
    g.n_entries = (int)counts[3];
    g.alone = ints, ints += K;
    g.may_fall = ints, ints += K;
    g.may_rise = ints, ints += K;
    g.linear = ints, ints += g.n_linear + 1;
    g.orout = ints, ints += g.n_orout + 1;
    g.entry_label = ints, ints += g.n_entries;
    g.negated = ints, ints += g.n_entries;
    g.relation = ints, ints += g.n_linear;
    g.held_start = ints, ints += K + 1;
    g.held = ints;
    g.a = reals, reals += g.n_entries;
    g.bound = reals;
}

// what a row's labels are known by
struct Row {
    double *score, *up, *down;  // (n_labels): score with pairs that are settled; what others add, and take
    int *decided, *news, *next;   // (n_labels): decisions; which of them are new
    int *first;                 // (n_labels): pairs of the labels before
    int *kept, *slots, *number; // (n_linear): entries left, slots before, number among those left
    int *slot;                  // (n_entries)
    int *pair_slot;            // (n_pairs): number of a pair's first score among those left
};

// doubles that it takes, but for pair_slot
static __device__ __forceinline__ long long assign_buffers(Row& r, const Labels& g, double* at) {
    const int K = g.n_labels;
    r.score = at;
    r.up = r.score + K;
    r.down = r.up + K;
    r.decided = reinterpret_cast<int*>(r.down + K);
    r.news = r.decided + K;
    r.next = r.news + K;
    r.first = r.next + K;
    r.kept = r.first + K;
    r.slots = r.kept + g.n_linear;
    r.number = r.slots + g.n_linear;
    r.slot = r.number + g.n_linear;
    return 3LL * K + (4LL * K + 3LL * g.n_linear + g.n_entries + 1) / 2;
}

static __device__ __forceinline__ int decision(const Labels& g, const Row& r, int j, double enough) {
    if (g.may_fall[j] && r.score[j] + r.up[j] <= 0.0) return OFF;
    return g.may_rise[j] && r.score[j] - r.down[j] >= enough ? ON : OPEN;
}

// Decide labels whose score has one sign whatever the others are, then labels that this decides, in rounds. Bounds only
// tighten, so the order does not matter. A warp works at a label. Ends with a barrier.
static __device__ __forceinline__ void decide(Team& team, const Labels& g, const Row& r, const double* eta,
                                              double enough) {
    const int lane = threadIdx.x % SK_WARP, warps = blockDim.x / SK_WARP;
    double any = 0.0;
    int *news = r.news, *next = r.next;
    SK_SHARE(j, g.n_labels) {
        r.score[j] = eta[j];
        r.up[j] = g.gain[j];
        r.down[j] = g.loss[j];
        r.decided[j] = decision(g, r, j, enough);
        news[j] = r.decided[j] != OPEN;
        any = news[j] ? 1.0 : any;
    }
    while (team.most(any) > 0.0) {
        any = 0.0;
        for (int j = threadIdx.x / SK_WARP; j < g.n_labels; j += warps) {
            double score = 0.0, up = 0.0, down = 0.0;
            const bool open = r.decided[j] == OPEN;
            if (open)
                for (int e = g.start[j] + lane; e < g.start[j + 1]; e += SK_WARP) {
                    const int k = g.other[e];
                    if (!news[k]) continue;
                    const double plus = g.plus[g.pair[e]], minus = g.minus[g.pair[e]];
                    up += plus;
                    down += minus;
                    if (r.decided[k] == ON) score += plus - minus;
                }
            score = sk::warp_sum(score);
            up = sk::warp_sum(up);
            down = sk::warp_sum(down);
            if (lane) continue;
            next[j] = 0;
            if (!open || (up == 0.0 && down == 0.0)) continue;
            r.score[j] += score;
            r.up[j] -= up;
            r.down[j] -= down;
            next[j] = decision(g, r, j, enough); // decided is read by the others until all are done
            any = next[j] ? 1.0 : any;
        }
        __syncthreads();
        SK_SHARE(j, g.n_labels) {
            if (next[j]) r.decided[j] = next[j];
            news[j] = 0;
        }
        int* swap = news;
        news = next;
        next = swap;
        __syncthreads();
    }
}

// Numbers those left, sets mu of the others; news[j]: scores of pairs that label j has, next[j]: those of them with
// labels after it. Ends with a barrier.
static __device__ __forceinline__ void number(Team& team, const Labels& g, const Row& r, double* mu, int& n, int& np) {
    const int lane = threadIdx.x % SK_WARP, warps = blockDim.x / SK_WARP;
    for (int j = threadIdx.x / SK_WARP; j < g.n_labels; j += warps) {
        int all = 0, after = 0, neighbours = 0;
        if (r.decided[j] == OPEN)
            for (int e = g.start[j] + lane; e < g.start[j + 1]; e += SK_WARP) {
                const int k = g.other[e], p = g.pair[e];
                if (r.decided[k] != OPEN) continue;
                const int scores = (g.plus[p] > 0.0) + (g.minus[p] > 0.0);
                neighbours++;
                all += scores;
                after += k > j ? scores : 0;
            }
        neighbours = sk::warp_sum(neighbours);
        all = sk::warp_sum(all);
        after = sk::warp_sum(after);
        if (lane == 0) {
            r.news[j] = all;
            r.next[j] = after;
            // without anything else that is open it is alone in its graph
            r.first[j] = r.decided[j] == OPEN && (!g.alone[j] || neighbours > 0);
        }
    }
    __syncthreads();
    n = np = 0;
    for (int base = 0; base < g.n_labels; base += blockDim.x) {
        const int j = base + threadIdx.x;
        const bool inside = j < g.n_labels;
        const bool member = inside && r.first[j];
        int count = member, pairs = inside ? r.next[j] : 0, count_before, pairs_before;
        team.before(count, pairs, count_before, pairs_before);
        if (inside) {
            if (!member) mu[j] = r.decided[j] == OPEN ? clip(r.score[j]) : (double)(r.decided[j] == ON);
            if (member) r.decided[j] = 1 + n + count_before;
            else if (r.decided[j] == OPEN) r.decided[j] = OFF;
            r.first[j] = np + pairs_before;
        }
        n += count;
        np += pairs;
    }
    __syncthreads();
}

// Which entries of linear factors are left; how many factors and slots there are. Ends with a barrier.
static __device__ __forceinline__ void count_entries(Team& team, const Labels& g, const Row& r, int& n_linear, int& n_slots) {
    n_linear = n_slots = 0;
    for (int base = 0; base < g.n_linear; base += blockDim.x) {
        const int f = base + threadIdx.x;
        int left = 0, used, used_before, left_before;
        if (f < g.n_linear) {
            for (int e = g.linear[f]; e < g.linear[f + 1]; e++) left += r.decided[g.entry_label[e]] > 0;
            r.kept[f] = left;
        }
        used = left > 0;
        team.before(used, left, used_before, left_before);
        if (f < g.n_linear) {
            r.number[f] = n_linear + used_before;
            r.slots[f] = n_slots + left_before;
        }
        n_linear += used;
        n_slots += left;
    }
    __syncthreads();
}

// The graph that is left, into the arrays of `plan` and `state`, whose counts are known. Ends with a barrier.
static __device__ __forceinline__ void build(Team& team, const Labels& g, const Row& r, const Plan& plan, int* ints,
                                             double* reals, const State& state) {
    const int np = plan.n_pair, ns = plan.n_slot;
    int *var = ints, *var_start = var + ns, *var_slot = var_start + plan.n_var + 1, *pair_add = var_slot + ns,
        *linear = pair_add + np, *relation = linear + plan.n_linear + 1, *orout = relation + plan.n_linear,
        *negated = orout + plan.n_orout + 1;
    double *deg = reals, *w = deg + ns, *a = w + ns, *ad = a + ns, *q = ad + ns, *bound = q + np;
    const int last = ns - (g.n_orout ? g.orout[g.n_orout] - g.orout[0] : 0); // where OrOut's slots begin
    SK_SHARE(f, g.n_linear) {
        int s = 2 * np + r.slots[f];
        double b = g.bound[f];
        if (r.kept[f]) linear[r.number[f]] = s;
        for (int e = g.linear[f]; e < g.linear[f + 1]; e++) {
            const int j = g.entry_label[e];
            if (r.decided[j] > 0) {
                var[s] = r.decided[j] - 1;
                a[s] = g.a[e];
                negated[s] = 0;
                r.slot[e] = s++;
            } else if (r.decided[j] == ON)
                b -= g.a[e];
        }
        if (r.kept[f]) {
            relation[r.number[f]] = g.relation[f];
            bound[r.number[f]] = b;
        }
    }
    SK_SHARE(f, g.n_orout + 1) orout[f] = last + g.orout[f] - g.orout[0]; // none of their labels is decided beforehand
    for (int e = g.orout[0] + threadIdx.x; e < g.orout[g.n_orout]; e += blockDim.x) {
        const int s = last + e - g.orout[0];
        var[s] = r.decided[g.entry_label[e]] - 1;
        negated[s] = g.negated[e];
        a[s] = g.a[e];
        r.slot[e] = s;
    }
    if (threadIdx.x == 0) linear[plan.n_linear] = last;
    int total = 0;
    for (int base = 0; base < g.n_labels; base += blockDim.x) { // slots of the variables before
        const int j = base + threadIdx.x;
        const bool member = j < g.n_labels && r.decided[j] > 0;
        int degree = member ? r.news[j] + g.held_start[j + 1] - g.held_start[j] : 0, none = 0, before, none_before;
        team.before(degree, none, before, none_before);
        if (member) {
            const int me = r.decided[j] - 1;
            int i = r.first[j];
            var_start[me] = total + before;
            state.eta[me] = r.score[j];
            for (int e = g.start[j]; e < g.start[j + 1]; e++) {
                const int k = g.other[e], p = g.pair[e];
                if (k < j || r.decided[k] <= 0) continue;
                r.pair_slot[p] = i;
                for (int sign = 0; sign < 2; sign++) {
                    const double given = sign ? -g.minus[p] : g.plus[p];
                    if (given == 0.0) continue;
                    var[i] = me;
                    var[np + i] = r.decided[k] - 1;
                    pair_add[i] = i;
                    negated[i] = negated[np + i] = 0;
                    a[i] = a[np + i] = 0.0;
                    state.add[i++] = given;
                }
            }
        }
        total += degree;
    }
    if (threadIdx.x == 0) var_start[plan.n_var] = total;
    __syncthreads();
    SK_SHARE(j, g.n_labels) {
        if (r.decided[j] <= 0) continue;
        int at = var_start[r.decided[j] - 1];
        for (int e = g.start[j]; e < g.start[j + 1]; e++) {
            const int k = g.other[e], p = g.pair[e];
            if (r.decided[k] <= 0) continue;
            const int scores = (g.plus[p] > 0.0) + (g.minus[p] > 0.0), first = r.pair_slot[p] + (k < j ? np : 0);
            for (int i = 0; i < scores; i++) var_slot[at++] = first + i;
        }
        for (int e = g.held_start[j]; e < g.held_start[j + 1]; e++) var_slot[at++] = r.slot[g.held[e]];
    }
    SK_SHARE(s, ns) {
        const int d = var_start[var[s] + 1] - var_start[var[s]];
        deg[s] = (double)d;
        w[s] = 1.0 / deg[s];
        ad[s] = a[s] * deg[s];
    }
    __syncthreads();
    SK_SHARE(i, np) q[i] = 1.0 / (deg[i] + deg[np + i]);
    __syncthreads();
}

}  // namespace labels
#endif
