/* What the headers of this folder begin with. They are compiled by C for the processor (after simd.h) and pasted into
 * the CUDA sources for a GPU: functions of single numbers, written once. */
#ifndef SPARSEKIT_HOST_DEVICE_H
#define SPARSEKIT_HOST_DEVICE_H

#ifdef SK_INLINE
#define SK_BOTH SK_INLINE
typedef uint64_t sk_word;
typedef int64_t sk_int;
#else
#define SK_BOTH __device__ __forceinline__ /* not static: nvcc warns of what a file does not use */
typedef unsigned long long sk_word; /* not uint64_t, which nvcc's system headers take for another type */
typedef long long sk_int;
#endif

#endif
