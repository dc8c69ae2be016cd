// CUDA C for a C++17 compiler: the part of the language that the kernels of sparsekit/gpu use, run by
// the fibers of cuda_engine.h.
//
// cuda_build.py includes this file before a kernel's source and appends one SK_EMULATED_KERNEL for each
// kernel. The overloads are CUDA's own and no more, so that a call that is ambiguous to nvcc is ambiguous
// here.
#pragma once
#include <math.h>
#include <stdlib.h>

#include "cuda_engine.h"

#define SK_EMULATED 1

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("sk_shared"), used))
#define SK_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(sk_emulated::engine.pool)

// threads and blocks

static const uint3& threadIdx = sk_emulated::engine.thread;
static const uint3& blockIdx = sk_emulated::engine.block;
static const dim3& blockDim = sk_emulated::engine.block_dim;
static const dim3& gridDim = sk_emulated::engine.grid_dim;

// barriers and warp collectives; the line is the caller's

inline void __syncthreads(int line = __builtin_LINE()) {
    sk_emulated::wait_for_block(line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    sk_emulated::wait_for_lanes(sk_emulated::syncwarp, mask, 0, 0, 0, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return unsigned(sk_emulated::wait_for_lanes(sk_emulated::ballot, mask, predicate != 0, 0, 0, line));
}

#define SK_EMULATED_SHUFFLE(type, name, operation)                                                 \
    inline type name(unsigned mask, type value, int argument, int line = __builtin_LINE()) {       \
        return sk_emulated::from_bits<type>(                                                       \
            sk_emulated::wait_for_lanes(sk_emulated::operation, mask, sk_emulated::to_bits(value), \
                                        unsigned(argument), int(sizeof(type)), line));             \
    }
#define SK_EMULATED_COLLECTIVES(type)               \
    SK_EMULATED_SHUFFLE(type, __shfl_sync, shfl)    \
    SK_EMULATED_SHUFFLE(type, __shfl_xor_sync, shfl_xor)
SK_EMULATED_COLLECTIVES(int)
SK_EMULATED_COLLECTIVES(unsigned)
SK_EMULATED_COLLECTIVES(long)
SK_EMULATED_COLLECTIVES(unsigned long)
SK_EMULATED_COLLECTIVES(long long)
SK_EMULATED_COLLECTIVES(unsigned long long)
SK_EMULATED_COLLECTIVES(float)
SK_EMULATED_COLLECTIVES(double)
#undef SK_EMULATED_COLLECTIVES
#undef SK_EMULATED_SHUFFLE

// atomics: one fiber runs at a time, so plain code is atomic

#define SK_EMULATED_ATOMIC(name, type, expression) \
    inline type name(type* address, type value) {  \
        const type old = *address;                 \
        *address = static_cast<type>(expression);  \
        return old;                                \
    }
SK_EMULATED_ATOMIC(atomicAdd, int, unsigned(old) + unsigned(value))
SK_EMULATED_ATOMIC(atomicAdd, float, old + value)
SK_EMULATED_ATOMIC(atomicAdd, double, old + value)
SK_EMULATED_ATOMIC(atomicMin, unsigned long long, old < value ? old : value)
#undef SK_EMULATED_ATOMIC

// what <math.h> does not have

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline float __int_as_float(int x) { return sk_emulated::from_bits<float>(sk_emulated::to_bits(x)); }
inline long long max(long long x, long long y) { return x > y ? x : y; }
inline long long min(long long x, long long y) { return x < y ? x : y; }

// one line of the table of kernels, and a launch of one of them: what Python calls

#include "cuda_table.h"
