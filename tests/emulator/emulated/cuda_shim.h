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
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("sk_shared"), used))
#define SK_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(sk_emulated::engine.pool)

// threads and blocks

static const uint3& threadIdx = sk_emulated::engine.thread;
static const uint3& blockIdx = sk_emulated::engine.block;
static const dim3& blockDim = sk_emulated::engine.block_dim;
static const dim3& gridDim = sk_emulated::engine.grid_dim;
static constexpr int warpSize = 32;

// barriers and warp collectives; the line is the caller's

inline void __syncthreads(int line = __builtin_LINE()) {
    sk_emulated::wait_for_block(sk_emulated::syncthreads, 0, line);
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
    return int(sk_emulated::wait_for_block(sk_emulated::syncthreads_or, predicate, line));
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
    return int(sk_emulated::wait_for_block(sk_emulated::syncthreads_and, predicate, line));
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
    return int(sk_emulated::wait_for_block(sk_emulated::syncthreads_count, predicate, line));
}
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    sk_emulated::wait_for_lanes(sk_emulated::syncwarp, mask, 0, 0, 32, 0, line);
}
inline unsigned __activemask(int line = __builtin_LINE()) { return sk_emulated::wait_for_active(line); }
inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return unsigned(sk_emulated::wait_for_lanes(sk_emulated::ballot, mask, predicate != 0, 0, 32, 0, line));
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return int(sk_emulated::wait_for_lanes(sk_emulated::any_lane, mask, predicate != 0, 0, 32, 0, line));
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return int(sk_emulated::wait_for_lanes(sk_emulated::all_lanes, mask, predicate != 0, 0, 32, 0, line));
}

#define SK_EMULATED_SHUFFLE(type, name, operation, argument_type)                                  \
    inline type name(unsigned mask, type value, argument_type argument, int width = 32,            \
                     int line = __builtin_LINE()) {                                                \
        return sk_emulated::from_bits<type>(                                                       \
            sk_emulated::wait_for_lanes(sk_emulated::operation, mask, sk_emulated::to_bits(value), \
                                        unsigned(argument), width, int(sizeof(type)), line));      \
    }
#define SK_EMULATED_COLLECTIVES(type)                                                                    \
    SK_EMULATED_SHUFFLE(type, __shfl_sync, shfl, int)                                                    \
    SK_EMULATED_SHUFFLE(type, __shfl_up_sync, shfl_up, unsigned)                                         \
    SK_EMULATED_SHUFFLE(type, __shfl_down_sync, shfl_down, unsigned)                                     \
    SK_EMULATED_SHUFFLE(type, __shfl_xor_sync, shfl_xor, int)                                            \
    inline unsigned __match_any_sync(unsigned mask, type value, int line = __builtin_LINE()) {           \
        return unsigned(sk_emulated::wait_for_lanes(                                                     \
            sk_emulated::match_any, mask, sk_emulated::to_bits(value), 0, 32, int(sizeof(type)), line)); \
    }
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

// atomics and fences: one fiber runs at a time, so plain code is atomic

#define SK_EMULATED_ATOMIC(name, type, expression) \
    inline type name(type* address, type value) {  \
        const type old = *address;                 \
        *address = static_cast<type>(expression);  \
        return old;                                \
    }
#define SK_EMULATED_INTEGER_ATOMICS(type)                          \
    SK_EMULATED_ATOMIC(atomicMax, type, old > value ? old : value) \
    SK_EMULATED_ATOMIC(atomicMin, type, old < value ? old : value) \
    SK_EMULATED_ATOMIC(atomicAnd, type, old& value)                \
    SK_EMULATED_ATOMIC(atomicOr, type, old | value)                \
    SK_EMULATED_ATOMIC(atomicXor, type, old ^ value)
#define SK_EMULATED_CAS(type)                                        \
    inline type atomicCAS(type* address, type compare, type value) { \
        const type old = *address;                                   \
        if (old == compare) {                                        \
            *address = value;                                        \
            sk_emulated::engine.current->spins = 0;                  \
        } else {                                                     \
            sk_emulated::give_way("atomicCAS");                      \
        }                                                            \
        return old;                                                  \
    }
SK_EMULATED_ATOMIC(atomicAdd, int, unsigned(old) + unsigned(value))
SK_EMULATED_ATOMIC(atomicAdd, unsigned, old + value)
SK_EMULATED_ATOMIC(atomicAdd, unsigned long long, old + value)
SK_EMULATED_ATOMIC(atomicAdd, float, old + value)
SK_EMULATED_ATOMIC(atomicAdd, double, old + value)
SK_EMULATED_ATOMIC(atomicSub, int, unsigned(old) - unsigned(value))
SK_EMULATED_ATOMIC(atomicSub, unsigned, old - value)
SK_EMULATED_ATOMIC(atomicExch, int, value)
SK_EMULATED_ATOMIC(atomicExch, unsigned, value)
SK_EMULATED_ATOMIC(atomicExch, unsigned long long, value)
SK_EMULATED_ATOMIC(atomicExch, float, value)
SK_EMULATED_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
SK_EMULATED_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
SK_EMULATED_INTEGER_ATOMICS(int)
SK_EMULATED_INTEGER_ATOMICS(unsigned)
SK_EMULATED_INTEGER_ATOMICS(unsigned long long)
SK_EMULATED_INTEGER_ATOMICS(long long)
SK_EMULATED_CAS(int)
SK_EMULATED_CAS(unsigned)
SK_EMULATED_CAS(unsigned long long)
#undef SK_EMULATED_CAS
#undef SK_EMULATED_INTEGER_ATOMICS
#undef SK_EMULATED_ATOMIC

inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_block() { asm volatile("" ::: "memory"); }
inline void __nanosleep(unsigned) { sk_emulated::give_way("__nanosleep"); }
inline void __trap() { sk_emulated::fail("__trap"); }
#define __builtin_assume(condition) \
    ((condition) ? (void)0 : sk_emulated::fail("__builtin_assume(%s) is wrong", #condition))
#define assert(condition) ((condition) ? (void)0 : sk_emulated::fail("assert(%s) fails", #condition))

// loads and stores with a hint for the caches

#define SK_EMULATED_LOAD(name)                \
    template <class Value>                    \
    inline Value name(const Value* address) { \
        return *address;                      \
    }
#define SK_EMULATED_STORE(name)                     \
    template <class Value>                          \
    inline void name(Value* address, Value value) { \
        *address = value;                           \
    }
SK_EMULATED_LOAD(__ldg)
SK_EMULATED_LOAD(__ldca)
SK_EMULATED_LOAD(__ldcg)
SK_EMULATED_LOAD(__ldcs)
SK_EMULATED_LOAD(__ldlu)
SK_EMULATED_LOAD(__ldcv)
SK_EMULATED_STORE(__stwb)
SK_EMULATED_STORE(__stcg)
SK_EMULATED_STORE(__stcs)
SK_EMULATED_STORE(__stwt)
#undef SK_EMULATED_LOAD
#undef SK_EMULATED_STORE

// bits

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; ++i) y |= (x >> i & 1u) << (31 - i);
    return y;
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}
inline int __float_as_int(float x) { return sk_emulated::from_bits<int>(sk_emulated::to_bits(x)); }
inline unsigned __float_as_uint(float x) { return sk_emulated::from_bits<unsigned>(sk_emulated::to_bits(x)); }
inline float __int_as_float(int x) { return sk_emulated::from_bits<float>(sk_emulated::to_bits(x)); }
inline float __uint_as_float(unsigned x) { return sk_emulated::from_bits<float>(sk_emulated::to_bits(x)); }
inline long long __double_as_longlong(double x) { return (long long)sk_emulated::to_bits(x); }
inline double __longlong_as_double(long long x) { return sk_emulated::from_bits<double>(uint64_t(x)); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned((uint64_t)x * y >> 32); }
inline int __mulhi(int x, int y) { return int((long long)x * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }

#include "cuda_math.h"

// one line of the table of kernels, and a launch of one of them: what Python calls

#include "cuda_table.h"
