/* Instruction sets. A function that gains from wider registers is compiled once a level. The level is chosen
 * when its module is loaded, so one build serves every processor:
 *
 *     SK_MULTI(double, sk_sum, (const double *restrict a, sk_size n), (a, n)) { ... }
 *
 * defines sk_sum(a, n). Levels are those of the x86-64 psABI: "baseline" (SSE2), "x86-64-v3" (AVX2, FMA)
 * and "x86-64-v4" (AVX-512). The environment variable SPARSEKIT_SIMD names the highest that may be used.
 * Elsewhere there is one level, what the compiler makes of that machine's baseline (NEON on arm64).
 *
 * Own code and not GCC's target_clones: those exist on ELF only, a user cannot choose among them, and
 * clang has its own. */
#ifndef SPARSEKIT_SIMD_H
#define SPARSEKIT_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef ptrdiff_t sk_size;

/* _FAR: into the second cache, which allows more requests at once: twice as many random reads a second from
 * weights far larger than the caches. */
#if defined(__GNUC__) || defined(__clang__)
#define SK_INLINE static inline __attribute__((always_inline))
#define SK_PREFETCH(p) __builtin_prefetch(p)
#define SK_PREFETCH_FAR(p) __builtin_prefetch(p, 0, 2)
#elif defined(_MSC_VER)
#define SK_INLINE static __forceinline
#define SK_PREFETCH(p) (void)(p)
#define SK_PREFETCH_FAR(p) (void)(p)
#else
#define SK_INLINE static inline
#define SK_PREFETCH(p) (void)(p)
#define SK_PREFETCH_FAR(p) (void)(p)
#endif

/* Leave to reorder a sum, without which no compiler vectorises it: SK_SIMD_WITH(reduction(+ : sum)) before
 * the loop. MSVC's OpenMP has no simd. */
#if defined(_MSC_VER) && !defined(__clang__)
#define SK_SIMD
#define SK_SIMD_WITH(...)
#define SK_SIMD_MAX(...)
#else
#define SK_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define SK_SIMD SK_PRAGMA(omp simd)
#define SK_SIMD_WITH(...) SK_PRAGMA(omp simd __VA_ARGS__)
/* A loop with a maximum. Clang starts each lane at the lowest finite number, not at -inf. Rows of only -inf
 * (masks) or NaN would get a wrong maximum. */
#if defined(__clang__)
#define SK_SIMD_MAX(...)
#else
#define SK_SIMD_MAX(...) SK_SIMD_WITH(__VA_ARGS__)
#endif
#endif

enum { SK_BASELINE, SK_X86_64_V3, SK_X86_64_V4 };
static int sk_level = SK_BASELINE;

#if (defined(__x86_64__) || defined(_M_X64)) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>

#define SK_AT_V3 __attribute__((noinline, target("avx2,bmi,bmi2,f16c,fma,lzcnt,movbe")))
#define SK_AT_V4                                                                                 \
    __attribute__((noinline, target("avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,"                        \
                                    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")))

#define SK_MULTI(TYPE, NAME, PARAMS, ARGS)                                                       \
    SK_INLINE TYPE NAME##_body PARAMS;                                                           \
    SK_AT_V4 static TYPE NAME##_v4 PARAMS { return NAME##_body ARGS; }                           \
    SK_AT_V3 static TYPE NAME##_v3 PARAMS { return NAME##_body ARGS; }                           \
    __attribute__((noinline)) static TYPE NAME##_v1 PARAMS { return NAME##_body ARGS; }          \
    SK_INLINE TYPE NAME PARAMS {                                                                 \
        return sk_level == SK_X86_64_V3   ? NAME##_v3 ARGS                                       \
               : sk_level == SK_X86_64_V4 ? NAME##_v4 ARGS                                       \
                                          : NAME##_v1 ARGS;                                      \
    }                                                                                            \
    SK_INLINE TYPE NAME##_body PARAMS

/* What the processor and the operating system have: the registers must also be saved when threads change. */
static int sk_highest_level(void) {
    const unsigned fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const unsigned bmi = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5;
    const unsigned first = fma | movbe | osxsave | avx | f16c, seventh = bmi | avx2 | bmi2;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW, VL */
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return SK_BASELINE;
    if (!__get_cpuid(0x80000001u, &a, &b, &c, &d) || !(c & lzcnt)) return SK_BASELINE;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x6) != 0x6) return SK_BASELINE;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & seventh) != seventh) return SK_BASELINE;
    return (b & avx512) == avx512 && (low & 0xe6) == 0xe6 ? SK_X86_64_V4 : SK_X86_64_V3;
}

/* Unknown names are refused in sparsekit/_cython/__init__.py, where that can be said. */
__attribute__((constructor)) static void sk_choose_level(void) {
    const char *asked = getenv("SPARSEKIT_SIMD");
    sk_level = sk_highest_level();
    if (asked == NULL || *asked == 0) return;
    if (strcmp(asked, "baseline") == 0) sk_level = SK_BASELINE;
    if (strcmp(asked, "x86-64-v3") == 0 && sk_level > SK_X86_64_V3) sk_level = SK_X86_64_V3;
}
#else
#define SK_MULTI(TYPE, NAME, PARAMS, ARGS) static TYPE NAME PARAMS
static int sk_highest_level(void) { return SK_BASELINE; }
#endif
#endif
