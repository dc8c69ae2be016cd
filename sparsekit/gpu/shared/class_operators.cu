// The multinomial model's Hessian: its factors, and the ends of its products (spmm.cuh has their middle).
#include "shared/common.cuh"

#ifndef OUT
#define OUT float
#endif
#ifndef GROUP
#define GROUP 32
#endif

// Rows start .. start + rows of U = s^(1/2) x p and V = (s p (1 - p))^(1/2) x for each of m variables; those
// of feature f are first[f] .. first[f + 1], variable v in column at[v]. A block a row; its entries are of
// different columns.
extern "C" __global__ void sk_class_factors(const long long* __restrict__ indptr,
                                            const int* __restrict__ indices, const real* __restrict__ data,
                                            const double* __restrict__ P, const double* __restrict__ rest,
                                            const int* __restrict__ top, const double* __restrict__ s,
                                            const int* __restrict__ first, const int* __restrict__ classes,
                                            const int* __restrict__ at, long long F, long long intercept,
                                            long long K, long long start, long long m, OUT* __restrict__ U,
                                            OUT* __restrict__ V) {
    const long long i = start + blockIdx.x;
    OUT *u = U + blockIdx.x * m, *v = V + blockIdx.x * m;
    for (long long j = threadIdx.x; j < m; j += blockDim.x) u[j] = v[j] = OUT(0);
    __syncthreads();
    const double root = sqrt(s[i]), miss = rest[i];
    const long long stop = indptr[i + 1] + intercept;
    // four threads an entry, which share the variables of its feature
    for (long long e = indptr[i] + threadIdx.x / 4; e < stop; e += blockDim.x / 4) {
        const bool last = e == indptr[i + 1];
        const long long f = last ? F : (long long)indices[e];
        const OUT x = last ? OUT(1) : (OUT)data[e];
        for (int w = first[f] + threadIdx.x % 4; w < first[f + 1]; w += 4) {
            const int c = classes[w];
            const double p = c == top[i] ? 1.0 - miss : P[i * K + c], q = c == top[i] ? miss : 1.0 - p;
            u[at[w]] = x * (OUT)(root * p);
            v[at[w]] = x * (OUT)(root * sqrt(p * q));
        }
    }
}

// The largest |v| of each block; NaN is passed over.
extern "C" __global__ void sk_class_largest(const double* __restrict__ v, long long m,
                                            double* __restrict__ largest) {
    __shared__ double room[33];
    double high = 0.0;
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid()) {
        const double a = fabs(v[j]);
        high = a > high ? a : high;
    }
    high = sk::block_max(high, room);
    if (threadIdx.x == 0) largest[blockIdx.x] = high;
}

// table[place] = v / scale, scale the largest |v|: float32 has little room for very small steps.
extern "C" __global__ void sk_class_load(const double* __restrict__ v, long long m,
                                         const long long* __restrict__ place,
                                         const double* __restrict__ largest, long long n_largest,
                                         float* __restrict__ table, double* __restrict__ scale) {
    __shared__ double room[33];
    double high = 0.0;
    for (long long j = threadIdx.x; j < n_largest; j += blockDim.x)
        high = largest[j] > high ? largest[j] : high;
    high = sk::block_max(high, room);
    if (high == 0.0) high = 1.0;
    if (blockIdx.x == 0 && threadIdx.x == 0) *scale = high;
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid())
        table[place[j]] = (float)(v[j] / high);
}

// T = curvature of the scores A V by rows, K <= GROUP classes: GROUP lanes a row, a class each. Row F of V
// belongs to the intercepts.
extern "C" __global__ void sk_class_rows(const long long* __restrict__ indptr,
                                         const int* __restrict__ indices, const float* __restrict__ data,
                                         const float* __restrict__ P, const int* __restrict__ top,
                                         const float* __restrict__ weight, const float* __restrict__ V,
                                         long long n, long long F, long long K, long long intercept,
                                         float* __restrict__ T) {
    const int k = threadIdx.x % GROUP;
    const long long i = sk::thread_of_grid() / GROUP;
    const bool counts = i < n, here = counts && k < K;
    float t = here && intercept ? V[F * K + k] : 0.0f;
    if (here)
        for (long long e = indptr[i]; e < indptr[i + 1]; e++) t += data[e] * V[indices[e] * K + k];
    const float p = here ? P[i * K + k] : 0.0f;
    const int high = counts ? top[i] : 0;
    t -= __shfl_sync(SK_WHOLE_WARP, t, high, GROUP);
    const float mean = sk::lanes_sum<GROUP>(p * t);
    t = counts ? weight[i] * p * (t - mean) : 0.0f;
    const float sum = sk::lanes_sum<GROUP>(t);
    if (here) T[i * K + k] = k == high ? -sum : t;
}

// out = H v from the sums (features + 1, K), the last row for the intercepts.
extern "C" __global__ void sk_class_store(const float* __restrict__ sums, const long long* __restrict__ place,
                                          long long m, const double* __restrict__ scale,
                                          const double* __restrict__ v, const double* __restrict__ diagonal,
                                          double ridge, double* __restrict__ out) {
    for (long long j = sk::thread_of_grid(); j < m; j += sk::threads_of_grid())
        out[j] = (double)sums[place[j]] * *scale + ridge * diagonal[j] * v[j];
}
