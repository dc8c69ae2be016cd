#include "common.cuh"

// Passes over the pairs of L-BFGS, W (n, c) in C order: row i holds the entries i of all s and then of all y.
namespace pairs {

constexpr int TILE = 32;    // side of the part of a Gram matrix that a block sums
constexpr int DEPTH = 16;   // rows that it holds in shared memory
constexpr int BLOCK = 256;  // its threads, each with 2 x 2 entries

// whether p leaves the box at once
static __device__ __forceinline__ bool leaves(double x, double p, double l, double u) {
    return (x <= l && p < 0.0) || (x >= u && p > 0.0);
}

// Sums over the threads of a block that have the same column, t % width, in the order of t; the threads
// below ``width`` get them. ``room`` holds a value a thread.
static __device__ __forceinline__ double column_sum(double mine, int width, int height, double* room) {
    const int t = threadIdx.x;
    double total = 0.0;
    room[t] = mine;
    __syncthreads();
    if (t < width)
        for (int r = 0; r < height; r++) total += room[r * width + t];
    __syncthreads();
    return total;
}

}  // namespace pairs

// s = x_new - x times of_s and y = g_new - g times of_y into columns a and b of W
extern "C" __global__ void sk_pairs_put(long long n, long long c, double* __restrict__ W, long long a, long long b,
                                        const double* __restrict__ x, const double* __restrict__ x_new,
                                        const double* __restrict__ g, const double* __restrict__ g_new, double of_s,
                                        double of_y) {
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        W[i * c + a] = of_s * (x_new[i] - x[i]);
        W[i * c + b] = of_y * (g_new[i] - g[i]);
    }
}

// part (blocks, 4, c): products of columns a and b with all columns over the free rows, then over the others.
// Blocks (k, tile) take ``width`` columns; thread t column t % width of every height-th row.
extern "C" __global__ void sk_pairs_products(long long n, long long c, const double* __restrict__ W, long long a,
                                             long long b, const unsigned char* __restrict__ free, long long width,
                                             double* part) {
    __shared__ double room[256];
    const int w = (int)width, height = (int)blockDim.x / w, t = threadIdx.x;
    const long long column = (long long)blockIdx.y * w + t % w;
    const bool works = t < w * height && column < c;
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    if (works)
        for (long long i = (long long)blockIdx.x * height + t / w; i < n; i += (long long)gridDim.x * height) {
            const double* row = W + i * c;
            const double mine = row[column], s = row[a] * mine, y = row[b] * mine;
            const bool on = free[i] != 0;
            sums[0] += on ? s : 0.0;
            sums[1] += on ? y : 0.0;
            sums[2] += on ? 0.0 : s;
            sums[3] += on ? 0.0 : y;
        }
    for (int k = 0; k < 4; k++) {
        const double total = pairs::column_sum(sums[k], w, height, room);
        if (t < w && column < c) part[((long long)blockIdx.x * 4 + k) * c + column] = total;
    }
}

// part (blocks, c): W^T g over the free rows; blocks and threads as above
extern "C" __global__ void sk_pairs_times(long long n, long long c, const double* __restrict__ W,
                                          const unsigned char* __restrict__ free, const double* __restrict__ g,
                                          long long width, double* part) {
    __shared__ double room[256];
    const int w = (int)width, height = (int)blockDim.x / w, t = threadIdx.x;
    const long long column = (long long)blockIdx.y * w + t % w;
    const bool works = t < w * height && column < c;
    double sum = 0.0;
    if (works)
        for (long long i = (long long)blockIdx.x * height + t / w; i < n; i += (long long)gridDim.x * height)
            if (free[i]) sum += g[i] * W[i * c + column];
    sum = pairs::column_sum(sum, w, height, room);
    if (t < w && column < c) part[blockIdx.x * c + column] = sum;
}

// p_i = -(g_i + w_i . v) / theta on the free rows, 0 elsewhere; a warp a row
extern "C" __global__ void sk_pairs_direction(long long n, long long c, const double* __restrict__ W,
                                              const unsigned char* __restrict__ free, const double* __restrict__ g,
                                              const double* __restrict__ v, double theta, double* __restrict__ p) {
    const int lane = threadIdx.x % SK_WARP;
    const double scale = -1.0 / theta;
    for (long long i = sk::thread_of_grid() / SK_WARP; i < n; i += sk::threads_of_grid() / SK_WARP) {
        const bool moves = free[i] != 0;
        double t = 0.0;
        if (moves)
            for (long long j = lane; j < c; j += SK_WARP) t += W[i * c + j] * v[j];
        t = sk::warp_sum(t);
        if (lane == 0) p[i] = moves ? scale * (g[i] + t) : 0.0;
    }
}

// part (blocks, 2): variables that enter or leave, and those that are free afterwards
extern "C" __global__ void sk_pairs_changes(long long n, const unsigned char* __restrict__ fresh,
                                            const unsigned char* __restrict__ free, double* part) {
    __shared__ double room[33];
    double changed = 0.0, count = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        changed += (fresh[i] != 0) != (free[i] != 0) ? 1.0 : 0.0;
        count += fresh[i] ? 1.0 : 0.0;
    }
    changed = sk::block_sum(changed, room);
    count = sk::block_sum(count, room);
    if (threadIdx.x == 0) {
        part[2 * blockIdx.x] = changed;
        part[2 * blockIdx.x + 1] = count;
    }
}

// fresh (n) becomes the free variables without those at a bound that p would leave; part as above
extern "C" __global__ void sk_pairs_correct(long long n, const double* __restrict__ x, const double* __restrict__ p,
                                            const double* __restrict__ l, const double* __restrict__ u,
                                            const unsigned char* __restrict__ free,
                                            unsigned char* __restrict__ fresh, double* part) {
    __shared__ double room[33];
    double changed = 0.0, count = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const bool was = free[i] != 0, goes = was && pairs::leaves(x[i], p[i], l[i], u[i]);
        fresh[i] = was && !goes;
        changed += goes ? 1.0 : 0.0;
        count += was && !goes ? 1.0 : 0.0;
    }
    changed = sk::block_sum(changed, room);
    count = sk::block_sum(count, room);
    if (threadIdx.x == 0) {
        part[2 * blockIdx.x] = changed;
        part[2 * blockIdx.x + 1] = count;
    }
}

// The Gram matrix of the rows that enter minus that of the rows that leave; of all free rows where these are
// no more than those, changes = (entering or leaving, free). Blocks (k, tile): tiles of the lower triangle
// in the order (0, 0), (1, 0), (1, 1), (2, 0) ...; part (blocks, tiles, TILE, TILE).
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

// out (size): sums of the columns of part (blocks, size); 8 columns a block, its other threads share the rows
extern "C" __global__ void sk_pairs_total(const double* __restrict__ part, long long blocks, long long size,
                                          double* __restrict__ out) {
    __shared__ double room[256];
    const int t = threadIdx.x, height = (int)blockDim.x / 8;
    const long long column = (long long)blockIdx.x * 8 + t % 8;
    double sum = 0.0;
    if (column < size)
        for (long long b = t / 8; b < blocks; b += height) sum += part[b * size + column];
    sum = pairs::column_sum(sum, 8, height, room);
    if (t < 8 && column < size) out[column] = sum;
}

// B(g) of (3.4) and its complement: free[i] = 1 where variable i is not bound; part: how many are free
extern "C" __global__ void sk_box_free(long long n, const double* __restrict__ x, const double* __restrict__ g,
                                       const double* __restrict__ l, const double* __restrict__ u,
                                       unsigned char* __restrict__ free, double* part) {
    __shared__ double room[33];
    double count = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const bool bound = (x[i] <= l[i] && g[i] >= 0.0) || (x[i] >= u[i] && g[i] <= 0.0);
        free[i] = !bound;
        count += bound ? 0.0 : 1.0;
    }
    count = sk::block_sum(count, room);
    if (threadIdx.x == 0) part[blockIdx.x] = count;
}

// T(x, p) of (3.3) into out; part: its slope g . T(x, p)
extern "C" __global__ void sk_box_part(long long n, const double* __restrict__ x, const double* __restrict__ p,
                                       const double* __restrict__ g, const double* __restrict__ l,
                                       const double* __restrict__ u, double* __restrict__ out, double* part) {
    __shared__ double room[33];
    double slope = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double t = pairs::leaves(x[i], p[i], l[i], u[i]) ? 0.0 : p[i];
        out[i] = t;
        slope += g[i] * t;
    }
    slope = sk::block_sum(slope, room);
    if (threadIdx.x == 0) part[blockIdx.x] = slope;
}

extern "C" __global__ void sk_box_slope(long long n, const double* __restrict__ x, const double* __restrict__ p,
                                        const double* __restrict__ g, const double* __restrict__ l,
                                        const double* __restrict__ u, double* part) {
    __shared__ double room[33];
    double slope = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid())
        slope += pairs::leaves(x[i], p[i], l[i], u[i]) ? 0.0 : g[i] * p[i];
    slope = sk::block_sum(slope, room);
    if (threadIdx.x == 0) part[blockIdx.x] = slope;
}

// part: max |T(x, -g)|; NaN is not larger than anything, as on the CPU
extern "C" __global__ void sk_box_optimality(long long n, const double* __restrict__ x, const double* __restrict__ g,
                                             const double* __restrict__ l, const double* __restrict__ u,
                                             double* part) {
    __shared__ double room[33];
    double most = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double t = pairs::leaves(x[i], -g[i], l[i], u[i]) ? 0.0 : fabs(g[i]);
        most = t > most ? t : most;
    }
    most = sk::block_max(most, room);
    if (threadIdx.x == 0) part[blockIdx.x] = most;
}

// P(x + alpha p) into out
extern "C" __global__ void sk_box_trial(long long n, const double* __restrict__ x, const double* __restrict__ p,
                                        double alpha, const double* __restrict__ l, const double* __restrict__ u,
                                        double* __restrict__ out) {
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        double t = x[i] + alpha * p[i];
        t = t < l[i] ? l[i] : t;
        out[i] = t > u[i] ? u[i] : t;
    }
}

// part: the largest alpha that moves some variable before it reaches its bound; p = T(x, p)
extern "C" __global__ void sk_box_longest(long long n, const double* __restrict__ x, const double* __restrict__ p,
                                          const double* __restrict__ l, const double* __restrict__ u, double* part) {
    __shared__ double room[33];
    double most = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double way = p[i] > 0.0 ? u[i] - x[i] : x[i] - l[i];
        const double t = p[i] != 0.0 ? way / fabs(p[i]) : 0.0;
        most = t > most ? t : most;
    }
    most = sk::block_max(most, room);
    if (threadIdx.x == 0) part[blockIdx.x] = most;
}

// part (blocks, 3): s.y, s.s and y.y of the next pair
extern "C" __global__ void sk_pair_norms(long long n, const double* __restrict__ x, const double* __restrict__ x_new,
                                         const double* __restrict__ g, const double* __restrict__ g_new,
                                         double* part) {
    __shared__ double room[33];
    double sy = 0.0, ss = 0.0, yy = 0.0;
    for (long long i = sk::thread_of_grid(); i < n; i += sk::threads_of_grid()) {
        const double s = x_new[i] - x[i], y = g_new[i] - g[i];
        sy += s * y;
        ss += s * s;
        yy += y * y;
    }
    sy = sk::block_sum(sy, room);
    ss = sk::block_sum(ss, room);
    yy = sk::block_sum(yy, room);
    if (threadIdx.x == 0) {
        part[3 * blockIdx.x] = sy;
        part[3 * blockIdx.x + 1] = ss;
        part[3 * blockIdx.x + 2] = yy;
    }
}
