#include "shared/common.cuh"
// Compressed rows times a row-major table: out (n, K) = A V, summed in the table's type ``SUM``.
//
// Rows and entries are numbered in one sequence: row i has the number ptr[i] + i, and its entries follow. Each warp
// handles a piece of ``piece`` numbers. The piece that contains a row's number writes the row. Later pieces write their
// part of the row to ``carry`` (one row a piece). A second kernel adds these in the order of the pieces. So empty rows
// and rows of a million entries are both spread evenly, and no sum depends on which warp came first.
//
// ``lanes`` neighbouring lanes of a warp (1 .. 32, a power of two) have a column each, blocks in y further ones. The
// other lanes take further entries.

#ifndef SUM
#define SUM double
#endif

namespace sparse {

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

// This lane's column, and its number among the lanes that share it.
struct Lane {
    long long lanes, slot, k;
    __device__ __forceinline__ Lane(long long lanes_)
        : lanes(lanes_), slot(threadIdx.x % SK_WARP / lanes_), k(blockIdx.y * lanes_ + threadIdx.x % lanes_) {}
    __device__ __forceinline__ long long slots() const { return SK_WARP / lanes; }
    // the sum over the lanes that share a column; the whole warp
    __device__ __forceinline__ SUM sum(SUM x) const {
        for (int step = (int)lanes; step < SK_WARP; step <<= 1) x += __shfl_xor_sync(SK_WHOLE_WARP, x, step);
        return x;
    }
};

// entries from .. to times their rows of V, to out; the whole warp
static __device__ __forceinline__ void entries(Lane L, const index_t* __restrict__ col, const real* __restrict__ val,
                                               const SUM* __restrict__ V, long long from, long long to, long long K,
                                               SUM* __restrict__ out) {
    SUM sum = SUM(0);
    if (L.k < K)
        for (long long e = from + L.slot; e < to; e += L.slots()) sum += (SUM)val[e] * V[(long long)col[e] * K + L.k];
    sum = L.sum(sum);
    if (L.slot == 0 && L.k < K) out[L.k] = sum;
}

}  // namespace sparse

extern "C" __global__ void sk_lines_product(const long long* __restrict__ ptr, const index_t* __restrict__ col,
                                            const real* __restrict__ val, const SUM* __restrict__ V,
                                            SUM* __restrict__ out, SUM* __restrict__ carry, long long n, long long K,
                                            long long lanes, long long piece, long long pieces) {
    const long long mine = sk::thread_of_grid() / SK_WARP;
    if (mine >= pieces) return;  // a whole warp
    const sparse::Lane L(lanes);
    const long long low = mine * piece, high = low + piece;
    long long row = sparse::first_row(ptr, n, low);
    // entry e of row i has the number e + i + 1
    long long to = min(ptr[row], high - row);
    if (low - row < to) sparse::entries(L, col, val, V, low - row, to, K, carry + mine * K);
    for (; row < n && ptr[row] + row < high; row++) {
        to = min(ptr[row + 1], high - row - 1);
        sparse::entries(L, col, val, V, ptr[row], to, K, out + row * K);
    }
}

// A warp for each piece but the last: the parts, in the pieces after it, of a row that begins in it.
extern "C" __global__ void sk_lines_carry(const long long* __restrict__ ptr, const SUM* __restrict__ carry,
                                          SUM* __restrict__ out, long long n, long long K, long long lanes,
                                          long long piece, long long pieces) {
    const long long from = sk::thread_of_grid() / SK_WARP + 1, low = from * piece;
    if (from >= pieces) return;  // a whole warp
    const sparse::Lane L(lanes);
    const long long next = sparse::first_row(ptr, n, low), end = ptr[next] + next, row = next - 1;
    if (end <= low || ptr[row] + row < low - piece) return;
    SUM sum = SUM(0);
    for (long long b = from + L.slot; b * piece < end; b += L.slots())
        if (L.k < K) sum += carry[b * K + L.k];
    sum = L.sum(sum);
    if (L.slot == 0 && L.k < K) out[row * K + L.k] += sum;
}
