#include "shared/common.cuh"

// The Gram matrix of the pairs of L-BFGS. W (n, c) is in C order: row i holds the entries i of all s, then of all y.
namespace pairs {

constexpr int TILE = 32;    // side of the part of a Gram matrix that a block sums
constexpr int DEPTH = 16;   // rows that it holds in shared memory
constexpr int BLOCK = 256;  // its threads, each with 2 x 2 entries

}  // namespace pairs

// The Gram matrix of the rows that enter minus that of the rows that leave. If at least as many rows change as are
// free, it is that of all free rows. changes = (rows entering or leaving, free rows). Blocks (k, tile): tiles of the
// lower triangle in the order (0, 0), (1, 0), (1, 1), (2, 0) ...; part (blocks, tiles, TILE, TILE).
extern "C" __global__ void sk_pairs_gram(long long n, long long c, const double* __restrict__ W,
                                         const unsigned char* __restrict__ fresh,
                                         const unsigned char* __restrict__ free, const double* __restrict__ changes,
                                         double* part) {
    __shared__ double left[pairs::DEPTH][pairs::TILE], right[pairs::DEPTH][pairs::TILE];
    __shared__ int found[pairs::BLOCK], counts[pairs::BLOCK / SK_WARP];
    const bool whole = changes[0] >= changes[1];
    const int t = threadIdx.x, lane = t % SK_WARP, warp = t / SK_WARP;
    long long tile = blockIdx.y, above = 0;
    while (tile > above) tile -= ++above;
    const long long j0 = above * pairs::TILE, k0 = tile * pairs::TILE;
    const int j = 2 * (t / (pairs::TILE / 2)), k = 2 * (t % (pairs::TILE / 2));
    double sums[2][2] = {{0.0, 0.0}, {0.0, 0.0}};
    for (long long lo = (long long)blockIdx.x * pairs::BLOCK; lo < n; lo += (long long)gridDim.x * pairs::BLOCK) {
        // which of the next rows count, and with what sign
        const long long i = lo + t;
        int sign = 0;
        if (i < n) sign = (fresh[i] ? 1 : 0) - (!whole && free[i] ? 1 : 0);
        const unsigned members = __ballot_sync(SK_WHOLE_WARP, sign != 0);
        if (lane == 0) counts[warp] = __popc(members);
        __syncthreads();
        int at = __popc(members & ((1u << lane) - 1u)), total = 0;
        for (int other = 0; other < pairs::BLOCK / SK_WARP; other++) {
            if (other < warp) at += counts[other];
            total += counts[other];
        }
        if (sign) found[at] = sign > 0 ? t : -t - 1;
        __syncthreads();
        for (int first = 0; first < total; first += pairs::DEPTH) {
            for (int e = t; e < pairs::DEPTH * pairs::TILE; e += pairs::BLOCK) {
                const int r = e / pairs::TILE, column = e % pairs::TILE;
                double a = 0.0, b = 0.0;
                if (first + r < total) {
                    const int row = found[first + r];
                    const double* w = W + (lo + (row >= 0 ? row : -row - 1)) * c;
                    if (j0 + column < c) a = row >= 0 ? w[j0 + column] : -w[j0 + column];
                    if (k0 + column < c) b = w[k0 + column];
                }
                left[r][column] = a;
                right[r][column] = b;
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < pairs::DEPTH; r++)
                for (int e = 0; e < 4; e++) sums[e / 2][e % 2] += left[r][j + e / 2] * right[r][k + e % 2];
            __syncthreads();
        }
    }
    double* mine = part + ((long long)blockIdx.x * gridDim.y + blockIdx.y) * pairs::TILE * pairs::TILE;
    for (int e = 0; e < 4; e++) mine[(j + e / 2) * pairs::TILE + k + e % 2] = sums[e / 2][e % 2];
}
