// The face that a factor's answer lies in, where scores tie: Jacobians become those of the smallest faces. The GPU
// version of _cython/factor_graph/factor_face.h, whose comments say why. One thread works at a Dense factor, with its
// own workspace, and one thread or a warp at a closed form. A second call changes nothing.
#ifndef SK_FACTOR_FACE_CUH
#define SK_FACTOR_FACE_CUH

#include "factor_graph/factor_passes.cuh"

namespace factors {

// differences that are rounding, of answers and of scores; weights that are none; structures that depend on others
static constexpr double TIED = 1e-9, TIED_SCORE = 3e-9, NO_WEIGHT = 1e-10, DEPENDENT = 1e-9;

static __device__ __forceinline__ bool is_inside(double x) { return x > TIED && x < 1.0 - TIED; }

static __device__ __forceinline__ void complete_linear(Lanes lanes, int d, const double* x, const double* a,
                                                       const double* ad, double b, double* f, double* e, double* coef) {
    double miss = 0.0, size = 0.0, slope = 0.0;
    SK_LANES(k, d) {
        miss += a[k] * x[k];
        size += fabs(a[k] * x[k]);
        f[k] = is_inside(x[k]) ? 1.0 : 0.0;
        e[k] = f[k] * ad[k];
        slope += f[k] * a[k] * ad[k];
    }
    miss = lanes.sum(miss) - b;
    size = lanes.sum(size) + fabs(b) + 1.0;
    slope = lanes.sum(slope);
    if (lanes.lane() == 0) *coef = (fabs(miss) <= TIED * size || *coef != 0.0) && slope > 0.0 ? -1.0 / slope : 0.0;
}

// y: what is negated turned
static __device__ __forceinline__ void complete_orout(Lanes lanes, int d, const double* x, const double* a,
                                                      const double* ad, const double* w, const int* negated, double* y,
                                                      double* f, double* e, double* coef) {
    double total = 0.0, weight = 0.0, out = 0.0;
    SK_LANES(k, d) {
        y[k] = negated[k] ? 1.0 - x[k] : x[k];
        if (k == d - 1) out = y[k];
        else total += y[k];
    }
    out = lanes.of(out, d - 1);
    total = lanes.sum(total);
    if (lanes.lane() == 0) *coef = 0.0;
    if (fabs(total - out) <= TIED * (1.0 + total)) complete_linear(lanes, d, y, a, ad, 0.0, f, e, coef);
    else {
        SK_LANES(k, d) {
            e[k] = is_inside(out) && fabs(y[k] - out) <= TIED ? 1.0 : 0.0;
            f[k] = e[k] == 0.0 && is_inside(y[k]) ? 1.0 : 0.0;
            weight += e[k] * w[k];
        }
        weight = lanes.sum(weight);
        if (lanes.lane() == 0) *coef = weight > 0.0 ? 1.0 / weight : 0.0;
    }
    SK_LANES(k, d) if (negated[k]) e[k] = -e[k];
}

static __device__ __forceinline__ void complete_pair(const Plan& g, const State& t, int i) {
    const int o = g.n_pair + i;
    const bool turn = t.c[i] < 0.0;
    const double a = g.negated[i] ? 1.0 - t.x[i] : t.x[i], b = g.negated[o] ? 1.0 - t.x[o] : t.x[o];
    const double way_a = g.negated[i] ? -1.0 : 1.0, way_b = g.negated[o] ? -1.0 : 1.0;
    if (t.c[i] != 0.0 && is_inside(a) && fabs(a - (turn ? 1.0 - b : b)) <= TIED) {
        const double share = g.deg[i] * g.deg[o] * g.q[i];
        t.f[i] = t.f[o] = 0.0;
        t.e[i] = way_a;
        t.e[o] = turn ? -way_b : way_b;
        t.coef[i] = share;
        t.n1[i] = turn ? 0.0 : way_a * share;
        t.n2[i] = turn ? 0.0 : way_b * share;
        return;
    }
    if (!is_inside(a)) t.f[i] = t.n1[i] = t.coef[i] = 0.0;
    if (!is_inside(b)) t.f[o] = t.n2[i] = t.coef[i] = 0.0;
}

#ifdef FACTORS_DENSE
// The search for a Dense factor's face.
struct Face {
    Active t, q;                // its structures, and storage for those with weights
    const double *w, *c;        // (d), (n_add)
    double *x, *g, *r, *y, *v;  // (d)
    double level, size;         // what the face's structures have under the scores g, c
    unsigned long long seed;

    __device__ __forceinline__ double inv() const { return t.head[4]; }
    __device__ __forceinline__ int extra() const { return (int)t.head[3]; }
    __device__ __forceinline__ double noise() {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        return (double)(seed >> 33) / 1073741824.0 - 1.0;
    }
    __device__ __forceinline__ double gap(const Active& a, int k) const { return level - a.score(k, g, c, inv()); }
    __device__ __forceinline__ void set_level() {
        level = 0.0;
        for (int k = 0; k < t.count() - extra(); k++) level += t.p[k] * t.score(k, g, c, inv());
        size = 1.0 + fabs(level);
    }
    // Structures tied with the best join, until none is outside the hull on one side of a random plane through it.
    __device__ __noinline__ void collect() {
        const double scale = inv();
        for (;;) {
            const int d = t.d, m = t.count();
            double most = 0.0, base, step;
            bool found = false;
            if (m >= t.most - 1) return; // as many as can be independent
            t.set_ones();
            for (int i = 0; i < d; i++) y[i] = noise(), v[i] = w[i] * y[i];
            t.jvp(v, nullptr, r);
            for (int i = 0; i < d; i++) {
                r[i] = y[i] - r[i];
                most = fabs(r[i]) > most ? fabs(r[i]) : most;
            }
            if (most < 1e-7) return;
            for (int i = 0; i < d; i++) r[i] *= w[i];
            base = t.score(0, r, nullptr, 0.0);
            step = 1e-5 * size / (double)t.K;
            for (int trial = 0; trial < 40; trial++) {
                for (int i = 0; i < d; i++) y[i] = g[i] + step * r[i];
                t.ask(y, [&](int k) { return c[k] * scale; });
                const double loss = gap(t, m), rho = t.score(m, r, nullptr, 0.0) - base;
                if (loss <= TIED_SCORE * size) {
                    found = rho > 1e-9 && t.row(w) > DEPENDENT;
                    break;
                }
                if (step * rho <= loss) break;
                step = 0.5 * loss / rho;
            }
            if (!found) return;
            t.p[m] = 0.0;
            t.head[0] = m + 1;
            t.head[3] += 1.0;
        }
    }
    // q becomes the structures of t that have weights
    __device__ __forceinline__ void set_in_use() {
        q.head[0] = q.head[1] = q.head[3] = 0.0;
        for (int k = 0; k < t.count() - extra(); k++) {
            for (int i = 0; i < t.K; i++) q.on[k * t.K + i] = t.on[k * t.K + i];
            q.bonus[k] = t.bonus[k];
            q.row(w);
            q.p[k] = t.p[k];
            q.head[0] = k + 1;
        }
    }
    // Whether the answer can move away from the structures that joined. If not, there is a direction of the scores
    // along which the answer stays. Then g moves along it, and tied structures no longer leave.
    __device__ __noinline__ bool move_away() {
        const int d = t.d, m = t.count(), used = m - extra();
        double *e = r, most = 0.0;
        for (int i = 0; i < d; i++) e[i] = -x[i];
        for (int k = used; k < m; k++) t.add(k, 1.0 / (double)(m - used), e);
        for (int i = 0; i < d; i++) most = fabs(e[i]) > most ? fabs(e[i]) : most;
        for (double step = 1e-3; step > 1e-8; step *= 0.1) {
            double miss = 0.0, loss = 0.0, least = MOST_DOUBLE, top = -MOST_DOUBLE;
            set_in_use();
            for (int i = 0; i < d; i++) v[i] = x[i] + g[i] / w[i] - step * e[i];
            q.solve(v, w, c, inv(), 2000, y);
            for (int i = 0; i < d; i++) {
                const double by = fabs(y[i] - x[i] + step * e[i]);
                miss = by > miss ? by : miss;
            }
            if (miss <= 1e-3 * step * most) return true;
            // a step too large meets other structures, or gives up some in use
            for (int k = 0; k < q.count(); k++) loss = gap(q, k) > loss ? gap(q, k) : loss;
            for (int i = 0; i < d; i++) v[i] = w[i] * (v[i] - y[i]);
            for (int k = 0; k < used; k++) {
                const double value = t.score(k, v, c, inv());
                least = value < least ? value : least;
                top = value > top ? value : top;
            }
            if (loss > TIED_SCORE * size || top - least > 1e-4 * step * most) continue;
            for (int i = 0; i < d; i++) g[i] = v[i];
            set_level();
            for (int k = m - 1; k >= used; k--)
                if (gap(t, k) > TIED_SCORE * size) {
                    t.leave(k);
                    t.head[3] -= 1.0;
                }
            break;
        }
        if (extra() < m - used) return false;
        t.head[0] = used; // no step was small enough: leave it at what was in use
        t.head[3] = 0.0;
        return true;
    }
    // structures for the answer to scores `of`, c become those of its smallest face
    __device__ __forceinline__ void complete(const double* of) {
        const int d = t.d;
        double sum = 0.0;
        t.forget_extra();
        for (int k = t.count() - 1; k >= 0 && t.count() > 1; k--)
            if (t.p[k] <= NO_WEIGHT) t.leave(k);
        for (int k = 0; k < t.count(); k++) sum += t.p[k];
        for (int k = 0; k < t.count(); k++) t.p[k] /= sum;
        for (int i = 0; i < d; i++) x[i] = 0.0;
        for (int k = 0; k < t.count(); k++) t.add(k, t.p[k], x);
        for (int i = 0; i < d; i++) g[i] = w[i] * (of[i] - x[i]);
        set_level();
        for (int round = 0; round <= 2 * d; round++) {
            collect();
            if (extra() == 0 || move_away()) break;
        }
        t.set_ones();
    }
};
#endif

// All factors' Jacobians become those of their smallest faces. `buffer`: (dense_size + 5 n_slot), of Dense factors alone.
// Ends with a barrier.
static __device__ __forceinline__ void complete_all(const Plan& g, const State& t, double* buffer) {
    const Lanes lanes = {g.lanes};
    const int team = threadIdx.x / g.lanes, teams = blockDim.x / g.lanes;
    SK_SHARE(i, g.n_pair) complete_pair(g, t, i);
    for (int i = team; i < g.n_linear + g.n_orout; i += teams) {
        const bool line = i < g.n_linear;
        const int* start = line ? g.linear + i : g.orout + (i - g.n_linear);
        const int lo = start[0], d = start[1] - lo;
        double *f = t.f + lo, *e = t.e + lo, *coef = t.coef + g.n_pair + i;
        if (line) complete_linear(lanes, d, t.x + lo, g.a + lo, g.ad + lo, g.bound[i], f, e, coef);
        else complete_orout(lanes, d, t.x + lo, g.a + lo, g.ad + lo, g.w + lo, g.negated + lo,
                            t.y + (lo - 2 * g.n_pair), f, e, coef);
    }
#ifdef FACTORS_DENSE
    SK_SHARE(i, g.n_dense) {
        const int *of = g.dense + 8 * i, lo = of[D_SLOT], d = of[D_SIZE];
        const Active active(g, t, i);
        double* own = buffer + g.dense_size + 5 * lo;
        if (active.head[2] == 0.0) continue;
        Face face = {active, Active(g, buffer, i), g.w + lo, t.add + of[D_ADD], own, own + d, own + 2 * d, own + 3 * d,
                     own + 4 * d, 0.0, 1.0, 1ull};
        face.complete(t.v + lo);
    }
#endif
    __syncthreads();
}

}  // namespace factors
#endif
