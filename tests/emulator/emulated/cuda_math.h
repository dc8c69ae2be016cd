// Mathematical functions and vector types of CUDA that <math.h> does not have.
#pragma once

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }

// arithmetic that the compiler may not contract
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }

// to integers; outside their range a device gives the nearest, the emulation an error
#define SK_EMULATED_ROUNDING(from, to, name)                          \
    inline to name##_rn(from x) { return static_cast<to>(rint(x)); }  \
    inline to name##_rz(from x) { return static_cast<to>(trunc(x)); } \
    inline to name##_rd(from x) { return static_cast<to>(floor(x)); } \
    inline to name##_ru(from x) { return static_cast<to>(ceil(x)); }
SK_EMULATED_ROUNDING(float, int, __float2int)
SK_EMULATED_ROUNDING(float, long long, __float2ll)
SK_EMULATED_ROUNDING(double, int, __double2int)
SK_EMULATED_ROUNDING(double, long long, __double2ll)
#undef SK_EMULATED_ROUNDING

#define SK_EMULATED_EXTREMA(result, left, right)                                                 \
    inline result max(left x, right y) { return result(x) > result(y) ? result(x) : result(y); } \
    inline result min(left x, right y) { return result(x) < result(y) ? result(x) : result(y); }
SK_EMULATED_EXTREMA(int, int, int)
SK_EMULATED_EXTREMA(unsigned, unsigned, unsigned)
SK_EMULATED_EXTREMA(unsigned, int, unsigned)
SK_EMULATED_EXTREMA(unsigned, unsigned, int)
SK_EMULATED_EXTREMA(long, long, long)
using sk_emulated_ulong = unsigned long;
using sk_emulated_ull = unsigned long long;
SK_EMULATED_EXTREMA(sk_emulated_ulong, unsigned long, unsigned long)
SK_EMULATED_EXTREMA(sk_emulated_ulong, long, unsigned long)
SK_EMULATED_EXTREMA(sk_emulated_ulong, unsigned long, long)
using sk_emulated_ll = long long;
SK_EMULATED_EXTREMA(sk_emulated_ll, long long, long long)
SK_EMULATED_EXTREMA(sk_emulated_ull, unsigned long long, unsigned long long)
SK_EMULATED_EXTREMA(sk_emulated_ull, long long, unsigned long long)
SK_EMULATED_EXTREMA(sk_emulated_ull, unsigned long long, long long)
#undef SK_EMULATED_EXTREMA
// as fmax and fmin: a NaN gives way to the other number
inline float max(float x, float y) { return fmaxf(x, y); }
inline float min(float x, float y) { return fminf(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(float x, double y) { return fmax(double(x), y); }
inline double min(float x, double y) { return fmin(double(x), y); }
inline double max(double x, float y) { return fmax(x, double(y)); }
inline double min(double x, float y) { return fmin(x, double(y)); }

#define SK_EMULATED_VECTORS(type, prefix, align2, align4)                \
    struct alignas(align2) prefix##2 { type x, y; };                     \
    struct alignas(align4) prefix##4 { type x, y, z, w; };               \
    inline prefix##2 make_##prefix##2(type x, type y) { return {x, y}; } \
    inline prefix##4 make_##prefix##4(type x, type y, type z, type w) { return {x, y, z, w}; }
#define SK_EMULATED_TRIPLES(type, prefix) \
    struct prefix##3 { type x, y, z; };   \
    inline prefix##3 make_##prefix##3(type x, type y, type z) { return {x, y, z}; }
using sk_emulated_schar = signed char;
using sk_emulated_uchar = unsigned char;
using sk_emulated_ushort = unsigned short;
SK_EMULATED_VECTORS(unsigned, uint, 8, 16)
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
SK_EMULATED_VECTORS(int, int, 8, 16)
SK_EMULATED_VECTORS(float, float, 8, 16)
SK_EMULATED_VECTORS(double, double, 16, 16)
SK_EMULATED_VECTORS(sk_emulated_ll, longlong, 16, 16)
SK_EMULATED_VECTORS(sk_emulated_ull, ulonglong, 16, 16)
SK_EMULATED_VECTORS(short, short, 4, 8)
SK_EMULATED_VECTORS(sk_emulated_ushort, ushort, 4, 8)
SK_EMULATED_VECTORS(sk_emulated_schar, char, 2, 4)
SK_EMULATED_VECTORS(sk_emulated_uchar, uchar, 2, 4)
SK_EMULATED_TRIPLES(int, int)
SK_EMULATED_TRIPLES(float, float)
SK_EMULATED_TRIPLES(double, double)
SK_EMULATED_TRIPLES(sk_emulated_ll, longlong)
#undef SK_EMULATED_TRIPLES
#undef SK_EMULATED_VECTORS
