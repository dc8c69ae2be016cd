#include "shared/common.cuh"
// Products with the curvature of class scores in single precision, and the vector passes around them.
#include "shared/groups.cuh"
#include "shared/spmm.cuh"

extern "C" __global__ void sk_product32(const long long* __restrict__ ptr, const int* __restrict__ col,
                                        const float* __restrict__ val, const float* __restrict__ V,
                                        float* __restrict__ out, float* __restrict__ carry, long long n,
                                        long long K, long long piece, long long pieces) {
    spmm::rows(ptr, col, val, V, out, carry, n, K, piece, pieces);
}

extern "C" __global__ void sk_product32_carry(const long long* __restrict__ ptr,
                                              const float* __restrict__ carry, float* __restrict__ out,
                                              long long n, long long K, long long piece) {
    __shared__ float room[SK_SPMM_THREADS * SPMM_COLUMNS];
    spmm::carries(ptr, carry, out, n, K, piece, room);
}

// All scores are taken relative to the top class, whose own probability never enters: p is zero there.
extern "C" __global__ void sk_curve_scores(float* __restrict__ S, const float* __restrict__ P,
                                           const int* __restrict__ top, const float* __restrict__ weight,
                                           const float* __restrict__ first, long long shifted, long long n,
                                           long long K) {
    __shared__ float room[33];
    const int size = groups::group_size(), lane = threadIdx.x % size, groups = blockDim.x / size;
    for (long long base = (long long)blockIdx.x * groups; base < n; base += (long long)gridDim.x * groups) {
        const long long row = base + threadIdx.x / size, i = row < n ? row : n - 1, c = top[i];
        const bool mine = row < n;  // idle lanes take part in the sums alone
        float* t = S + i * K;
        const float* p = P + i * K;
        // idle lanes must not read what the last row's own lanes write
        const float high = mine ? t[c] + (shifted ? first[c] : 0.0f) : 0.0f;
        float mean = 0.0f, sum = 0.0f;
        if (mine)
            for (long long k = lane; k < K; k += size)
                mean += p[k] * (t[k] + (shifted ? first[k] : 0.0f) - high);
        mean = groups::group_sum(mean, room);
        if (mine)
            for (long long k = lane; k < K; k += size) {
                const float s = weight[i] * p[k] * (t[k] + (shifted ? first[k] : 0.0f) - high - mean);
                t[k] = s;
                sum += s;
            }
        sum = groups::group_sum(sum, room);
        if (mine && c % size == lane) t[c] = -sum;
    }
}

extern "C" __global__ void sk_dot(const real* __restrict__ a, const real* __restrict__ b, long long n,
                                  double* __restrict__ parts) {
    __shared__ double room[33];
    double sum = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) sum += (double)a[i] * b[i];
    sum = sk::block_sum(sum, room);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// The passes of conjugate gradients. Their scalars are quotients of numbers that the passes before left as
// parts, which every block adds up for itself: no launch and no way back to the host between them.
extern "C" __global__ void sk_cg_curve(const float* __restrict__ p, float* __restrict__ Hp, double alpha,
                                       long long penalised, long long n, double* __restrict__ parts) {
    __shared__ double room[33];
    double sum = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        float h = Hp[i];
        if (i < penalised) {
            h += (float)alpha * p[i];
            Hp[i] = h;
        }
        sum += (double)p[i] * h;
    }
    sum = sk::block_sum(sum, room);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

extern "C" __global__ void sk_cg_step(const double* __restrict__ above, long long n_above,
                                      const double* __restrict__ below, long long n_below,
                                      const float* __restrict__ p, const float* __restrict__ Hp,
                                      const float* __restrict__ inverse, float* __restrict__ d,
                                      float* __restrict__ r, long long n, double* __restrict__ parts) {
    __shared__ double room[33];
    const double size = sk::sum_parts(above, n_above, room);
    const double curve = sk::sum_parts(below, n_below, room);
    double sum = 0.0;
    if (curve > 0.0) {
        const float c = (float)(size / curve);
        for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
            d[i] += c * p[i];
            const float left = r[i] - c * Hp[i];
            r[i] = left;
            sum += (double)left * left * inverse[i];
        }
    } else {
        sum = NAN;
    }
    sum = sk::block_sum(sum, room);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

extern "C" __global__ void sk_cg_turn(const double* __restrict__ above, long long n_above,
                                      const double* __restrict__ below, long long n_below,
                                      const float* __restrict__ r, const float* __restrict__ inverse,
                                      float* __restrict__ p, long long n) {
    __shared__ double room[33];
    const double size = sk::sum_parts(above, n_above, room);
    const float beta = (float)(size / sk::sum_parts(below, n_below, room));
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid())
        p[i] = beta * p[i] + r[i] * inverse[i];
}
