// Compressed rows times a row-major table: out (n, K) = A V, work split evenly whatever the rows' lengths.
//
// Rows and entries are numbered in one sequence: row i has the number ptr[i] + i, and its entries follow. Each warp
// handles a piece of ``piece`` numbers. The piece that contains a row's number writes the row. Later pieces write their
// part of the row to ``carry`` (one row a piece). A second kernel adds these in the order of the pieces. So empty rows
// and rows of a million entries are both spread evenly, and no sum depends on which warp came first.
#ifndef SK_SPMM_CUH
#define SK_SPMM_CUH

#include "shared/common.cuh"

#ifndef SPMM_LANES  // of a warp for neighbouring columns; the others take further entries: a power of two
#define SPMM_LANES 32
#endif
#ifndef SPMM_COLUMNS  // of the table that a lane has, 32 apart
#define SPMM_COLUMNS 1
#endif
#define SK_SPMM_THREADS 128

namespace spmm {

// the first row whose number is at least ``target``
static __device__ __forceinline__ long long first_row(const long long* __restrict__ ptr, long long n,
                                                      long long target) {
    long long low = 0, high = n;
    while (low < high) {
        const long long middle = (low + high) / 2;
        if (ptr[middle] + middle >= target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// sum over the lanes that share columns
template <typename T>
static __device__ __forceinline__ T over_slots(T x) {
    for (int step = SPMM_LANES; step < SK_WARP; step <<= 1) x += __shfl_xor_sync(SK_WHOLE_WARP, x, step);
    return x;
}

// entries from .. to times their rows of V, to out; the whole warp
template <typename COL, typename VAL, typename T>
static __device__ __forceinline__ void entries(const COL* __restrict__ col, const VAL* __restrict__ val,
                                               const T* __restrict__ V, long long from, long long to,
                                               long long K, long long k, T* __restrict__ out) {
    const int slot = (threadIdx.x % SK_WARP) / SPMM_LANES;
    T sums[SPMM_COLUMNS];
    for (int c = 0; c < SPMM_COLUMNS; c++) sums[c] = T(0);
    for (long long e = from + slot; e < to; e += SK_WARP / SPMM_LANES) {
        const T* v = V + (long long)col[e] * K;
        const T x = (T)val[e];
        for (int c = 0; c < SPMM_COLUMNS; c++)
            if (k + c * SPMM_LANES < K) sums[c] += x * v[k + c * SPMM_LANES];
    }
    for (int c = 0; c < SPMM_COLUMNS; c++) {
        const T sum = over_slots(sums[c]);
        if (slot == 0 && k + c * SPMM_LANES < K) out[k + c * SPMM_LANES] = sum;
    }
}

// this thread's first column: blocks in y share the columns
static __device__ __forceinline__ long long column() {
    return (long long)blockIdx.y * (SPMM_LANES * SPMM_COLUMNS) + threadIdx.x % SPMM_LANES;
}

template <typename COL, typename VAL, typename T>
static __device__ __forceinline__ void rows(const long long* __restrict__ ptr, const COL* __restrict__ col,
                                            const VAL* __restrict__ val, const T* __restrict__ V,
                                            T* __restrict__ out, T* __restrict__ carry, long long n,
                                            long long K, long long piece, long long pieces) {
    const long long mine = (long long)blockIdx.x * (SK_SPMM_THREADS / SK_WARP) + threadIdx.x / SK_WARP;
    if (mine >= pieces) return;  // a whole warp
    const long long low = mine * piece, high = low + piece, k = column();
    long long row = first_row(ptr, n, low);
    // entry e of row i has the number e + i + 1
    long long to = min(ptr[row], high - row);
    if (low - row < to) entries(col, val, V, low - row, to, K, k, carry + mine * K);
    for (; row < n && ptr[row] + row < high; row++) {
        to = min(ptr[row + 1], high - row - 1);
        entries(col, val, V, ptr[row], to, K, k, out + row * K);
    }
}

// block b adds the parts, in pieces b + 1, b + 2, .., of a row that begins in piece b; buffer: THREADS * SPMM_COLUMNS
template <typename T>
static __device__ __forceinline__ void carries(const long long* __restrict__ ptr,
                                               const T* __restrict__ carry, T* __restrict__ out, long long n,
                                               long long K, long long piece, T* buffer) {
    const long long from = (long long)blockIdx.x + 1, low = from * piece, k = column();
    const long long next = first_row(ptr, n, low), end = ptr[next] + next, row = next - 1;
    // the same for all threads of the block
    if (end > low && ptr[row] + row >= low - piece) {
        const int warp = threadIdx.x / SK_WARP, slot = (threadIdx.x % SK_WARP) / SPMM_LANES;
        const int slots = SK_WARP / SPMM_LANES, warps = SK_SPMM_THREADS / SK_WARP;
        T sums[SPMM_COLUMNS];
        for (int c = 0; c < SPMM_COLUMNS; c++) sums[c] = T(0);
        for (long long b = from + warp * slots + slot; b * piece < end; b += warps * slots)
            for (int c = 0; c < SPMM_COLUMNS; c++)
                if (k + c * SPMM_LANES < K) sums[c] += carry[b * K + k + c * SPMM_LANES];
        for (int c = 0; c < SPMM_COLUMNS; c++) {
            const T sum = over_slots(sums[c]);
            if (slot == 0) buffer[(warp * SPMM_COLUMNS + c) * SPMM_LANES + threadIdx.x % SPMM_LANES] = sum;
        }
        __syncthreads();
        if (warp == 0 && slot == 0)
            for (int c = 0; c < SPMM_COLUMNS; c++) {
                if (k + c * SPMM_LANES >= K) continue;
                T sum = T(0);
                for (int w = 0; w < warps; w++) sum += buffer[(w * SPMM_COLUMNS + c) * SPMM_LANES + threadIdx.x % SPMM_LANES];
                out[row * K + k + c * SPMM_LANES] += sum;
            }
    }
}

}  // namespace spmm
#endif
