// Implicit steps of the double-sum softmax for one row, as in _cython/implicit.h, where the equations are.
//
// A team of threads, a whole block or its first warp, solves for one row: every thread holds some of the
// negatives, and all of them the same u. The start is that of the safe solver there: a device has no use
// for rough logarithms.
#include "common.cuh"
#ifndef SK_IMPLICIT_CUH
#define SK_IMPLICIT_CUH

namespace sk_implicit {

constexpr double STEP_TOL = 2e-4;  // a Householder step of third order below this leaves its cube
constexpr double LAST_STEP = 1e-6;  // of Newton's method, whose square is left
constexpr int ROOT_STEPS = 80;

// All threads of a block, or, without ``room`` (33 doubles of shared memory), those of its first warp.
struct team {
    double* room;
    __device__ __forceinline__ long long rank() const { return threadIdx.x; }
    __device__ __forceinline__ long long size() const { return room ? (long long)blockDim.x : SK_WARP; }
    __device__ __forceinline__ double sum(double x) const {
        return room ? sk::block_sum(x, room) : sk::warp_sum(x);
    }
    __device__ __forceinline__ double max(double x) const {
        return room ? sk::block_max(x, room) : sk::warp_max(x);
    }
};

// a with a exp(a) = w, for w >= 0 (inf and NaN pass)
static __device__ __forceinline__ double lambert(double w) {
    double a;
    if (w < 0.01)  // the series; the first term left out is below 2e-14 w
        return w * (1.0 + w * (-1.0 + w * (1.5 + w * (-8.0 / 3.0 + w * (125.0 / 24.0 + w * (-54.0 / 5.0
               + w * (16807.0 / 720.0 - w * (16384.0 / 315.0))))))));
    if (w < 3.0) {  // a Pade approximant of the same series
        a = w * (1.0 + w * (4.0 / 3.0)) / (1.0 + w * (7.0 / 3.0 + w * (5.0 / 6.0)));
    } else {
        double l = log(w), ll = log(l > 1.0 ? l : 1.0);
        a = l - ll + ll / l;
        if (!(a < 1e300)) return a;
    }
    for (int i = 0; i < 2; i++) {  // Fritsch, Shafer and Crowley (1973): fourth order
        double r = log(w / a) - a, q = 2.0 * (1.0 + a) * (1.0 + a + r * (2.0 / 3.0));
        a *= 1.0 + r / (1.0 + a) * (q - r) / (q - 2.0 * r);
    }
    return a;
}

// the same of exp(x), which may overflow
static __device__ __forceinline__ double omega(double x) {
    if (x < 600.0) return lambert(exp(x));
    double a = x - log(x);
    for (int i = 0; i < 2; i++) {
        double r = x - log(a) - a, q = 2.0 * (1.0 + a) * (1.0 + a + r * (2.0 / 3.0));
        a *= 1.0 + r / (1.0 + a) * (q - r) / (q - 2.0 * r);
    }
    return a;
}

// One negative: Halley's method for v = log(b / eta), guarded as in _cython/implicit.h. Returns b.
static __device__ double one(double z, double log_r, double eta, double sigma, double u_old, double* u_new) {
    double top = z + log_r, v = top - u_old, high = INFINITY, u = u_old;
    double reach = sigma * eta, E = 0.0, w = INFINITY;
    if (v < 600.0) {
        E = exp(v);
        w = reach * E;
    }
    if (w > 0.25) {  // not small: start from the exact b for the old u
        v -= w < 1e250 ? lambert(w) : omega(v + log(reach));
        E = exp(v);
    }
    if (v > 0.0) {  // eta exp(v) = u - u_old + eta (1 - exp(-u)), and u <= log(1 + r exp(z))
        double most = (top > 0.0 ? top : 0.0) + log1p(exp(-fabs(top))) - u_old;
        high = log1p((most > 0.0 ? most : 0.0) / eta);
        if (v > high) {
            v = high;
            E = exp(v);
        }
    }
    for (int i = 0; i < ROOT_STEPS; i++) {
        w = reach * E;
        u = top - v - w;
        double P = exp(-u);
        double g = u - u_old + eta * (1.0 - P - E);
        // derivatives by v: u' = -1 - w, u'' = -w, P' = -u' P
        double g1 = -(1.0 + w) * (1.0 + eta * P) - eta * E;
        double g2 = -w * (1.0 + eta * P) - eta * (1.0 + w) * (1.0 + w) * P - eta * E;
        double ratio = g / g1;
        double step = -ratio / (1.0 - 0.5 * ratio * g2 / g1);
        if (fabs(step) * (1.0 + w) < STEP_TOL && P < 1e100) {  // beyond, g2 may overflow
            double b = E * (1.0 + step * (1.0 + step * (0.5 + step * (1.0 / 6.0))));
            *u_new = top - v - step - reach * b;
            return eta * b;
        }
        if (!(fabs(step) * (1.0 + w) < 1.0)) {
            double zero = top - omega(top + log(reach));  // u(zero) = 0, and the optimal u >= 0
            step = g < 0.0 ? -ratio : step;
            if (!(fabs(step) < 1e300)) step = 0.0;
            high = zero < high ? zero : high;
            if (g > 0.0 && !(v + step < high && step > 0.0)) step = high - v;
        }
        v += step;
        E = exp(v);
    }
    *u_new = u;
    return eta * E;
}

// m negatives of scores z, which b overwrites; q (m) is room. Every thread reads and writes its own entries,
// those of rank(), rank() + size(), ... Returns c and sets u in all threads.
static __device__ double many(team t, long long m, double* z, const double* r, const double* rho, double* q,
                              double eta, double s, double rho_y, double u_old, double* u_new) {
    // the root is not negative where u_old is not
    double high_z = -INFINITY, u = u_old, low = u_old >= 0.0 ? 0.0 : -INFINITY, high = INFINITY, c = 0.0;
    for (long long k = t.rank(); k < m; k += t.size()) high_z = z[k] > high_z ? z[k] : high_z;
    high_z = t.max(high_z);
    for (long long k = t.rank(); k < m; k += t.size()) q[k] = s * rho[k] * eta * r[k] * exp(z[k] - high_z);
    for (int i = 0; i < ROOT_STEPS; i++) {
        double P = exp(-u), total = 0.0, slope = 0.0;
        c = u - u_old + eta * (1.0 - P);
        double shift = high_z - s * rho_y * c - u, F = exp(shift);
        for (long long k = t.rank(); k < m; k += t.size()) {
            double a = shift < 600.0 ? lambert(q[k] * F) : omega(shift + log(q[k]));
            z[k] = a / (s * rho[k]);
            total += z[k];
            slope += z[k] / (1.0 + a);
        }
        total = t.sum(total);
        slope = t.sum(slope);
        double g = c - total;
        if (g > 0.0) high = u;
        else low = u;
        double g1 = 1.0 + eta * P, reach = s * rho_y * g1 + 1.0;  // c', and how fast the a's move with u
        double step = -g / (g1 + slope * reach);
        if (fabs(step) * reach < LAST_STEP || i == ROOT_STEPS - 1) {
            // b to first order in the last step: what is left is its square
            u += step;
            c = 0.0;
            for (long long k = t.rank(); k < m; k += t.size()) {
                z[k] *= 1.0 - step * reach / (1.0 + s * rho[k] * z[k]);
                c += z[k];
            }
            c = t.sum(c);
            break;
        }
        if (!(u + step > low && u + step < high)) {
            if (low > -INFINITY && high < INFINITY) step = 0.5 * (low + high) - u;
            else step = g > 0.0 ? -1.0 - fabs(u) : 1.0 + fabs(u);
        }
        u += step;
    }
    *u_new = u;
    return c;
}

}  // namespace sk_implicit
#endif
