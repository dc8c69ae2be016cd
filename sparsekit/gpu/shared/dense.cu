#include "shared/common.cuh"

#ifndef SK_COLUMNS
#define SK_COLUMNS 1  // of a thread, in sk_dense_hessian
#endif

// out = A v for A (n, p) in C order; a warp takes four rows at once, so that v is read once for them
extern "C" __global__ void sk_dense_matvec(const real* __restrict__ A, const double* __restrict__ v, long long n,
                                           long long p, double* __restrict__ out) {
    const int lane = threadIdx.x % SK_WARP;
    const long long warps = sk::threads_of_grid() / SK_WARP;
    for (long long i = 4 * (sk::thread_of_grid() / SK_WARP); i < n; i += 4 * warps) {
        // rows past the end are the last one again, and not written
        const real* a = A + i * p;
        const real* b = A + min(i + 1, n - 1) * p;
        const real* c = A + min(i + 2, n - 1) * p;
        const real* e = A + min(i + 3, n - 1) * p;
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        for (long long j = lane; j < p; j += SK_WARP) {
            const double x = v[j];
            s0 += a[j] * x;
            s1 += b[j] * x;
            s2 += c[j] * x;
            s3 += e[j] * x;
        }
        s0 = sk::warp_sum(s0);
        s1 = sk::warp_sum(s1);
        s2 = sk::warp_sum(s2);
        s3 = sk::warp_sum(s3);
        if (lane == 0) {
            out[i] = s0;
            if (i + 1 < n) out[i + 1] = s1;
            if (i + 2 < n) out[i + 2] = s2;
            if (i + 3 < n) out[i + 3] = s3;
        }
    }
}

// part (rows of the grid, p): sums over a part of the rows of u_i A[i, j], or of u_i A[i, j]^2. A block takes
// ``width`` columns (a divisor of its threads); blockIdx.x is the place of the columns, blockIdx.y the part.
extern "C" __global__ void sk_dense_columns(const real* __restrict__ A, const double* __restrict__ u, long long n,
                                            long long p, long long width, long long square, double* part) {
    __shared__ double room[256];
    const long long line = threadIdx.x / width, lines = blockDim.x / width;
    const long long j = blockIdx.x * width + threadIdx.x % width;
    const long long first = n * blockIdx.y / gridDim.y, last = n * (blockIdx.y + 1) / gridDim.y;
    double s0 = 0.0, s1 = 0.0;
    if (j < p) {
        long long i = first + line;
        for (; i + lines < last; i += 2 * lines) {
            const double x = A[i * p + j], y = A[(i + lines) * p + j];
            s0 += (square ? x * x : x) * u[i];
            s1 += (square ? y * y : y) * u[i + lines];
        }
        if (i < last) {
            const double x = A[i * p + j];
            s0 += (square ? x * x : x) * u[i];
        }
    }
    room[threadIdx.x] = s0 + s1;
    __syncthreads();
    if (line == 0 && j < p) {
        double total = 0.0;
        for (long long k = threadIdx.x; k < blockDim.x; k += width) total += room[k];
        part[blockIdx.y * p + j] = total;
    }
}

// out[j] = sum over the rows of part (blocks, size) in their order, plus ridge * diagonal * v
extern "C" __global__ void sk_dense_finish(const double* part, long long blocks, long long size, double ridge,
                                           const double* __restrict__ diagonal, const double* __restrict__ v,
                                           double* __restrict__ out) {
    for (long long j = sk::thread_of_grid(); j < size; j += sk::threads_of_grid()) {
        double a = 0.0, b = 0.0;
        long long k = 0;
        for (; k + 1 < blocks; k += 2) {
            a += part[k * size + j];
            b += part[(k + 1) * size + j];
        }
        if (k < blocks) a += part[k * size + j];
        a += b;
        out[j] = ridge != 0.0 ? a + ridge * diagonal[j] * v[j] : a;
    }
}

// A^T diag(d) A v by one pass: A (n, m) in C order, or [A, 1]; part (blocks, m + intercept). A block holds four
// rows in registers between their product with v and their share of the result; a thread has SK_COLUMNS columns.
extern "C" __global__ void __launch_bounds__(512, 1) sk_dense_hessian(const real* __restrict__ A, const double* __restrict__ d,
                                            const double* __restrict__ v, long long n, long long m,
                                            long long intercept, double* part) {
    __shared__ double room[4][32];
    const int lane = threadIdx.x % SK_WARP, warp = threadIdx.x / SK_WARP, warps = blockDim.x / SK_WARP;
    const double v0 = intercept ? v[m] : 0.0;
    double x[SK_COLUMNS], out[SK_COLUMNS], last = 0.0;
    for (int k = 0; k < SK_COLUMNS; k++) {
        const long long j = threadIdx.x + (long long)k * blockDim.x;
        x[k] = j < m ? v[j] : 0.0;
        out[k] = 0.0;
    }
    for (long long i = 4 * (long long)blockIdx.x; i < n; i += 4 * (long long)gridDim.x) {
        real a[4][SK_COLUMNS];
        double t[4];
        for (int r = 0; r < 4; r++)
            for (int k = 0; k < SK_COLUMNS; k++) {
                const long long j = threadIdx.x + (long long)k * blockDim.x;
                a[r][k] = i + r < n && j < m ? A[(i + r) * m + j] : real(0);
            }
        for (int r = 0; r < 4; r++) {
            t[r] = 0.0;
            for (int k = 0; k < SK_COLUMNS; k++) t[r] += a[r][k] * x[k];
            t[r] = sk::warp_sum(t[r]);
            if (lane == 0) room[r][warp] = t[r];
        }
        __syncthreads();
        for (int r = 0; r < 4; r++) {
            double sum = v0;
            for (int w = 0; w < warps; w++) sum += room[r][w];
            t[r] = i + r < n ? d[i + r] * sum : 0.0;
            last += t[r];
            for (int k = 0; k < SK_COLUMNS; k++) out[k] += t[r] * a[r][k];
        }
        __syncthreads();
    }
    double* mine = part + blockIdx.x * (m + intercept);
    for (int k = 0; k < SK_COLUMNS; k++) {
        const long long j = threadIdx.x + (long long)k * blockDim.x;
        if (j < m) mine[j] = out[k];
    }
    if (intercept && threadIdx.x == 0) mine[m] = last;
}
