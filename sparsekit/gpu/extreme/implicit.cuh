// Implicit steps of the double-sum softmax for one row, as in _cython/extreme/implicit.h, where the equations are.
//
// A team of threads, a whole block or its first warp, solves for one row. Every thread holds some of the negatives, and
// all threads hold the same u. The initial point is that of the safe solver there: approximate logarithms save no time
// on a GPU.
#include "shared/common.cuh"
#include "omega.h"
#ifndef SK_IMPLICIT_CUH
#define SK_IMPLICIT_CUH

namespace sk_implicit {

constexpr double LAST_STEP = 1e-6;  // last step of Newton's method; its error is the square

using sk::team;

// m negatives of scores z, which b overwrites; q (m) is workspace. Every thread reads and writes its own entries, those
// of rank(), rank() + size(), ... Returns c and sets u in all threads.
static __device__ double many(team t, long long m, double* z, const double* r, const double* rho, double* q,
                              double eta, double s, double rho_y, double u_old, double* u_new) {
    // the root is not negative where u_old is not
    double high_z = -INFINITY, u = u_old, low = u_old >= 0.0 ? 0.0 : -INFINITY, high = INFINITY, c = 0.0;
    for (long long k = t.rank(); k < m; k += t.size()) high_z = z[k] > high_z ? z[k] : high_z;
    high_z = t.max(high_z);
    for (long long k = t.rank(); k < m; k += t.size()) q[k] = s * rho[k] * eta * r[k] * exp(z[k] - high_z);
    for (int i = 0; i < SK_ROOT_STEPS; i++) {
        double P = exp(-u), total = 0.0, slope = 0.0;
        c = u - u_old + eta * (1.0 - P);
        double shift = high_z - s * rho_y * c - u, F = exp(shift);
        for (long long k = t.rank(); k < m; k += t.size()) {
            double a = shift < 600.0 ? sk_lambert(q[k] * F) : sk_omega(shift + log(q[k]));
            z[k] = a / (s * rho[k]);
            total += z[k];
            slope += z[k] / (1.0 + a);
        }
        total = t.sum(total);
        slope = t.sum(slope);
        double g = c - total;
        if (g > 0.0) high = u;
        else low = u;
        double g1 = 1.0 + eta * P, reach = s * rho_y * g1 + 1.0;  // dc/du, and minus d(shift)/du
        double step = -g / (g1 + slope * reach);
        if (fabs(step) * reach < LAST_STEP || i == SK_ROOT_STEPS - 1) {
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
