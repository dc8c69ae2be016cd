#include "shared/common.cuh"
// Kernels of the multinomial loss: products with several right-hand sides, softmax of rows and its losses.
#include "shared/groups.cuh"
#include "shared/spmm.cuh"

namespace multinomial {

// The largest score and its first place. A row of NaN has the place 0, so that nothing is read outside.
static __device__ __forceinline__ long long first_largest(const double* __restrict__ z, long long K, int lane,
                                                          double* room, double* high) {
    double best = -INFINITY;
    for (long long k = lane; k < K; k += groups::group_size()) best = z[k] > best ? z[k] : best;
    best = groups::group_max(best, room);
    // places are exact in double precision; the first is the largest of their negatives
    double place = -INFINITY;
    for (long long k = lane; k < K; k += groups::group_size())
        if (z[k] == best) {
            place = -(double)k;
            break;
        }
    place = groups::group_max(place, room);
    *high = best;
    return place == -INFINITY ? 0 : (long long)-place;
}

}  // namespace multinomial

extern "C" __global__ void sk_matmat(const long long* __restrict__ ptr, const index_t* __restrict__ col,
                                     const real* __restrict__ val, const double* __restrict__ W,
                                     double* __restrict__ Z, double* __restrict__ carry, long long n,
                                     long long K, long long piece, long long pieces) {
    spmm::rows(ptr, col, val, W, Z, carry, n, K, piece, pieces);
}

extern "C" __global__ void sk_matmat_carry(const long long* __restrict__ ptr, const double* __restrict__ carry,
                                           double* __restrict__ Z, long long n, long long K, long long piece) {
    __shared__ double room[SK_SPMM_THREADS * SPMM_COLUMNS];
    spmm::carries(ptr, carry, Z, n, K, piece, room);
}

// What the other classes weigh is summed without the row's own class: 1 - p loses all digits where p is
// close to one.
extern "C" __global__ void sk_multinomial_value(const double* __restrict__ Z, const int* __restrict__ codes,
                                                const double* __restrict__ s, long long weighted,
                                                double* __restrict__ U, double* __restrict__ parts,
                                                long long n, long long K) {
    __shared__ double room[33];
    const int size = groups::group_size(), lane = threadIdx.x % size, groups = blockDim.x / size;
    double total = 0.0;
    for (long long base = (long long)blockIdx.x * groups; base < n; base += (long long)gridDim.x * groups) {
        const long long row = base + threadIdx.x / size, i = row < n ? row : n - 1;
        const bool mine = row < n;  // idle lanes work on the last row, for the sake of the sums, and keep quiet
        const double* z = Z + i * K;
        double* u = U + i * K;
        const double weight = weighted ? s[i] : 1.0;
        const long long c = codes[i];
        double high, own = 0.0, rest = 0.0;
        const long long top = multinomial::first_largest(z, K, lane, room, &high);
        for (long long k = lane; k < K; k += size) {
            const double e = exp(z[k] - high);
            if (k == c)
                own = e;
            else
                rest += e;
        }
        own = groups::group_sum(own, room);
        rest = groups::group_sum(rest, room);
        const double scale = weight / (rest + own);
        if (mine)
            for (long long k = lane; k < K; k += size) u[k] = k == c ? -rest * scale : exp(z[k] - high) * scale;
        if (mine && lane == 0 && weight > 0.0)
            total += weight * (top == c ? log1p(rest) : log(rest + own) + (high - z[c]));
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

extern "C" __global__ void sk_multinomial_targets(const double* __restrict__ Z, const double* __restrict__ Q,
                                                  const double* __restrict__ s, double* __restrict__ U,
                                                  double* __restrict__ parts, long long n, long long K) {
    __shared__ double room[33];
    const int size = groups::group_size(), lane = threadIdx.x % size, groups = blockDim.x / size;
    double total = 0.0;
    for (long long base = (long long)blockIdx.x * groups; base < n; base += (long long)gridDim.x * groups) {
        const long long row = base + threadIdx.x / size, i = row < n ? row : n - 1;
        const bool mine = row < n;
        const double *z = Z + i * K, *q = Q + i * K;
        double* u = U + i * K;
        double high = -INFINITY, sum = 0.0, mean = 0.0;
        for (long long k = lane; k < K; k += size) high = z[k] > high ? z[k] : high;
        high = groups::group_max(high, room);
        for (long long k = lane; k < K; k += size) {
            sum += exp(z[k] - high);
            mean += q[k] * (z[k] - high);
        }
        sum = groups::group_sum(sum, room);
        mean = groups::group_sum(mean, room);
        const double weight = s[i], inverse = 1.0 / sum;
        if (mine)
            for (long long k = lane; k < K; k += size) u[k] = weight * (exp(z[k] - high) * inverse - q[k]);
        if (mine && lane == 0 && weight > 0.0) total += weight * (log(sum) - mean);
    }
    total = sk::block_sum(total, room);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// With ``raised`` the scores other than the largest are raised by radius[i], at most to it.
extern "C" __global__ void sk_multinomial_model(const double* __restrict__ Z, const double* __restrict__ radius,
                                                long long raised, double* __restrict__ P,
                                                double* __restrict__ rest, int* __restrict__ top, long long n,
                                                long long K) {
    __shared__ double room[33];
    const int size = groups::group_size(), lane = threadIdx.x % size, groups = blockDim.x / size;
    for (long long base = (long long)blockIdx.x * groups; base < n; base += (long long)gridDim.x * groups) {
        const long long row = base + threadIdx.x / size, i = row < n ? row : n - 1;
        const bool mine = row < n;
        const double* z = Z + i * K;
        double* p = P + i * K;
        double high, sum = 0.0;
        const long long c = multinomial::first_largest(z, K, lane, room, &high);
        const double shift = raised ? radius[i] : 0.0;
        // not fmin where nothing is raised: it would make a zero of NaN
        for (long long k = lane; k < K; k += size)
            if (k != c) sum += exp(raised ? fmin(z[k] - high + shift, 0.0) : z[k] - high);
        sum = groups::group_sum(sum, room);
        const double inverse = 1.0 / (1.0 + sum);
        if (mine) {
            for (long long k = lane; k < K; k += size)
                p[k] = k == c ? 0.0 : exp(raised ? fmin(z[k] - high + shift, 0.0) : z[k] - high) * inverse;
            if (lane == 0) {
                rest[i] = sum * inverse;
                top[i] = (int)c;
            }
        }
    }
}
