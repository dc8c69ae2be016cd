// Compressed rows times a table (spmm.cuh), in the type ``SUM`` of the table.
#include "shared/spmm.cuh"

#ifndef SUM
#define SUM double
#endif

extern "C" __global__ void sk_spmm(const long long* __restrict__ ptr, const index_t* __restrict__ col,
                                   const real* __restrict__ val, const SUM* __restrict__ V,
                                   SUM* __restrict__ out, SUM* __restrict__ carry, long long n, long long K,
                                   long long piece, long long pieces) {
    spmm::rows(ptr, col, val, V, out, carry, n, K, piece, pieces);
}

extern "C" __global__ void sk_spmm_carry(const long long* __restrict__ ptr, const SUM* __restrict__ carry,
                                         SUM* __restrict__ out, long long n, long long K, long long piece) {
    __shared__ SUM buffer[SK_SPMM_THREADS * SPMM_COLUMNS];
    spmm::carries(ptr, carry, out, n, K, piece, buffer);
}
