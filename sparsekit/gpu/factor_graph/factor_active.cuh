// SparseMAP of Dense factors, by the active set method, and its Jacobian. The GPU version of
// _cython/factor_graph/factor_active.h, whose comments say why. One thread works at a factor. Structures in use are
// affinely independent. So the variables bound their number, and the size of a factor's workspace. The longer functions
// are not inlined: this halves the time of compilation and saves registers.
#ifndef SK_FACTOR_ACTIVE_CUH
#define SK_FACTOR_ACTIVE_CUH

#include "factor_graph/factor_graph.cuh"

namespace factors {

// what a plan says of a Dense factor: eight integers
enum { D_SLOT, D_SIZE, D_ADD, D_N_ADD, D_VARIABLES, D_MOST, D_STATE, D_TABLE };

struct Active {
    int d, n_add, K, most;        // variables; joint assignments; variables of several values; structures at most
    const int *sizes, *offsets;   // (K): values of each, and where their indicators begin
    // number of structures; shift; whether the last call ended since no structure is better. Then the number of last
    // structures without weight (factor_face.cuh), and the last call's `inv`.
    double* head;
    double *p, *ones, *target, *L;
    double *u, *wu;               // (d)
    int *on, *bonus;              // (most, K), (most)

    __device__ __forceinline__ Active(const Plan& g, const State& t, int i) : Active(g, t.dense, i) {}
    __device__ __forceinline__ Active(const Plan& g, double* buffer, int i) {
        const int* f = g.dense + 8 * i;
        d = f[D_SIZE];
        n_add = f[D_N_ADD];
        K = f[D_VARIABLES];
        most = f[D_MOST];
        sizes = g.dense + f[D_TABLE];
        offsets = sizes + K;
        head = buffer + f[D_STATE];
        p = head + 5;
        ones = p + most;
        target = ones + most;
        L = target + most;
        u = L + most * most;
        wu = u + d;
        on = reinterpret_cast<int*>(wu + d);
        bonus = on + most * K;
    }
    __device__ __forceinline__ int count() const { return (int)head[0]; }

    // score of structure k by u, and by c times inv unless that is null
    __device__ __forceinline__ double score(int k, const double* by, const double* c, double inv) const {
        double s = 0.0;
        for (int i = 0; i < K; i++) s += by[on[k * K + i]];
        return c == nullptr ? s : s + c[bonus[k]] * inv;
    }
    __device__ __forceinline__ void add(int k, double weight, double* to) const {
        for (int i = 0; i < K; i++) to[on[k * K + i]] += weight;
    }
    __device__ __forceinline__ void forward(int m, double* x) const {
        for (int i = 0; i < m; i++) {
            double s = x[i];
            for (int j = 0; j < i; j++) s -= L[i * most + j] * x[j];
            x[i] = s / L[i * most + i];
        }
    }
    __device__ __forceinline__ void backward(int m, double* x) const {
        for (int i = m - 1; i >= 0; i--) {
            x[i] /= L[i * most + i];
            for (int j = 0; j < i; j++) x[j] -= L[i * most + j] * x[i];
        }
    }
    __device__ __noinline__ void set_ones() const {
        for (int k = 0; k < count(); k++) ones[k] = 1.0;
        forward(count(), ones);
        backward(count(), ones);
    }
    __device__ __forceinline__ void forget_extra() const {
        head[0] -= head[3];
        head[3] = 0.0;
    }
    // target = K^-1 target on what sums to 0
    __device__ __noinline__ void project() const {
        const int m = count();
        double total = 0.0, sum = 0.0;
        forward(m, target);
        backward(m, target);
        for (int k = 0; k < m; k++) total += target[k], sum += ones[k];
        for (int k = 0; k < m; k++) target[k] -= total / sum * ones[k];
    }
    // take structure `gone` out; rotations bring back the triangle
    __device__ __noinline__ void leave(int gone) {
        const int m = count();
        for (int i = gone; i < m - 1; i++) {
            p[i] = p[i + 1];
            for (int j = 0; j < i + 2; j++) L[i * most + j] = L[(i + 1) * most + j];
            for (int j = 0; j < K; j++) on[i * K + j] = on[(i + 1) * K + j];
            bonus[i] = bonus[i + 1];
        }
        for (int j = gone; j < m - 1; j++) {
            const double a = L[j * most + j], b = L[j * most + j + 1], r = sqrt(a * a + b * b), c = a / r, s = b / r;
            for (int i = j; i < m - 1; i++) {
                const double x = c * L[i * most + j] + s * L[i * most + j + 1];
                L[i * most + j + 1] = c * L[i * most + j + 1] - s * L[i * most + j];
                L[i * most + j] = x;
            }
        }
        head[0] = m - 1;
    }
    // row of L for the structure in slot m: its pivot's square relative to its own
    __device__ __noinline__ double row(const double* w) {
        const int m = count();
        double *at = L + m * most, own = 0.0, pivot;
        for (int i = 0; i < d; i++) wu[i] = 0.0;
        for (int i = 0; i < K; i++) {
            wu[on[m * K + i]] = w[on[m * K + i]];
            own += w[on[m * K + i]];
        }
        if (head[1] == 0.0) head[1] = own > 0.0 ? own : 1.0;
        own += head[1];
        for (int k = 0; k < m; k++) at[k] = score(k, wu, nullptr, 0.0) + head[1];
        forward(m, at);
        pivot = own;
        for (int k = 0; k < m; k++) pivot -= at[k] * at[k];
        at[m] = sqrt(pivot > 0.0 ? pivot : 0.0);
        return pivot / own;
    }
    // best structure for u and the scores of joint assignments, c(index), into slot m; its score
    template <class Score>
    __device__ __forceinline__ double ask(const double* by, Score c) {
        int* values = on + count() * K;
        double best = -INFINITY;
        int found = 0;
        for (int at = 0; at < n_add; at++) {
            double s = c(at);
            for (int k = K - 1, rest = at; k >= 0; rest /= sizes[k], k--) s += by[offsets[k] + rest % sizes[k]];
            if (s > best) best = s, found = at;
        }
        bonus[count()] = found;
        for (int k = K - 1, rest = found; k >= 0; rest /= sizes[k], k--) values[k] = offsets[k] + rest % sizes[k];
        return best;
    }
    __device__ __forceinline__ bool is_known() const {
        for (int k = 0; k < count(); k++)
            if (bonus[k] == bonus[count()]) return true;
        return false;
    }
    // the weights of least loss among those of sum 1; what falls to 0 on the way leaves
    __device__ __noinline__ double least(const double* v, const double* w, const double* c, double inv) {
        for (int i = 0; i < d; i++) u[i] = w[i] * v[i];
        for (;;) {
            const int m = count();
            int gone = -1;
            double step = 1.0, total = 0.0, sum = 0.0, level;
            for (int k = 0; k < m; k++) target[k] = score(k, u, c, inv);
            forward(m, target);
            backward(m, target);
            set_ones();
            for (int k = 0; k < m; k++) total += target[k], sum += ones[k];
            level = (total - 1.0) / sum;
            for (int k = 0; k < m; k++) {
                target[k] -= level * ones[k];
                if (target[k] <= 0.0) {
                    const double s = p[k] > 0.0 ? p[k] / (p[k] - target[k]) : 0.0;
                    if (gone < 0 || s < step) gone = k, step = s;
                }
            }
            if (gone < 0 || m == 1) {
                for (int k = 0; k < m; k++) p[k] = m == 1 ? 1.0 : target[k];
                return level + head[1];
            }
            for (int k = 0; k < m; k++) p[k] += step * (target[k] - p[k]);
            leave(gone);
        }
    }
    // x (d) becomes the solution for v, w (d), c (n_add) times inv, after at most `rounds` calls of the oracle
    __device__ __noinline__ void solve(const double* v, const double* w, const double* c, double inv, int rounds,
                                          double* x) {
        bool lost = false;
        forget_extra();
        head[2] = 0.0;
        head[4] = inv;
        if (count() == 0) {
            for (int i = 0; i < d; i++) u[i] = w[i] * v[i];
            ask(u, [&](int k) { return c[k] * inv; });
            head[1] = 0.0;
            row(w);
            p[0] = 1.0;
            head[0] = 1.0;
        }
        for (int round = 0; round <= rounds; round++) {
            const double level = least(v, w, c, inv);
            for (int i = 0; i < d; i++) x[i] = 0.0;
            for (int k = 0; k < count(); k++) add(k, p[k], x);
            if (round == rounds || lost) break;
            for (int i = 0; i < d; i++) u[i] = w[i] * (v[i] - x[i]);
            const double best = ask(u, [&](int k) { return c[k] * inv; });
            if (!(best > level + 1e-13 * (1.0 + fabs(level) + fabs(best))) || is_known()) {
                head[2] = 1.0;
                break;
            }
            const int m = count();
            // where rounding takes more structures for independent than there can be, one is exchanged as well
            if (row(w) > 1e-9 && m < most - 1) {
                p[m] = 0.0;
                head[0] = m + 1;
                continue;
            }
            double step = MOST_DOUBLE;
            int gone = -1;
            for (int k = 0; k < m; k++) target[k] = L[m * most + k];
            backward(m, target);
            for (int k = 0; k < m; k++)
                if (target[k] > 1e-12 && p[k] < step * target[k]) gone = k, step = p[k] / target[k];
            if (gone < 0) break;
            for (int k = 0; k < m; k++) p[k] -= step * target[k];
            p[m] = step;
            head[0] = m + 1; // its row is of no use, but moves with the others
            leave(gone);
            head[0] = m - 1;
            if (row(w) > 1e-11) head[0] = m;
            else { // nearly dependent on the rest as well: do without it
                for (int k = 0; k < m - 1; k++) p[k] /= 1.0 - step;
                lost = true;
            }
        }
    }
    // x = J (u, c): what the marginals move by with w u (d), or with c (n_add), one of which is null
    __device__ __forceinline__ void jvp(const double* weighted, const double* c, double* x) const {
        for (int k = 0; k < count(); k++) target[k] = weighted != nullptr ? score(k, weighted, nullptr, 0.0) : c[bonus[k]];
        project();
        for (int i = 0; i < d; i++) x[i] = 0.0;
        for (int k = 0; k < count(); k++) add(k, target[k], x);
    }
    // c (n_add) = J_N' of what is in `weighted` = w x
    __device__ __forceinline__ void vjp(const double* weighted, double* c) const {
        for (int k = 0; k < count(); k++) target[k] = score(k, weighted, nullptr, 0.0);
        project();
        for (int k = 0; k < n_add; k++) c[k] = 0.0;
        for (int k = 0; k < count(); k++) c[bonus[k]] += target[k];
    }
};

}  // namespace factors
#endif
