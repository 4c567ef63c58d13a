// Blocks separated by blank lines; a source gets those that it uses. Prefix sw_ for functions and types, SW_ for
// macros.

#include <stdbool.h>
#define SW_INLINE static inline __attribute__((always_inline))

#define SW_UNROLL _Pragma("GCC unroll 16")

#if defined(__clang__)
#define SW_VECTOR _Pragma("clang loop vectorize(enable)")
#else
#define SW_VECTOR _Pragma("GCC ivdep")
#endif

// Floats of 16 and 8 bits are held as bits, and computed in f32.
typedef unsigned short sw_f16;

typedef unsigned short sw_bf16;

typedef unsigned char sw_f8e4m3fn;

typedef unsigned char sw_f8e5m2;

// Without branches, so that loops vectorise.
SW_INLINE float sw_f16_to_f32(sw_f16 x) {
    unsigned int magnitude = x & 0x7fffu, sign = (unsigned int)(x & 0x8000u) << 16;
    float scaled = sw_bits_f32(magnitude << 13) * 0x1p112f;  // also right for subnormals
    unsigned int bits = magnitude >= 0x7c00u ? magnitude << 13 | 0x7f800000u : (unsigned int)sw_bitcast_f32_i32(scaled);
    return sw_bits_f32(bits | sign);
}

SW_INLINE sw_f16 sw_f32_to_f16(float x) {
    unsigned int bits = (unsigned int)sw_bitcast_f32_i32(x), magnitude = bits & 0x7fffffffu;
    // Normal: drop 13 bits, to nearest even. Subnormal: an addition rounds where the ulp of the sum is f16's least.
    unsigned int normal = (magnitude + 0xfffu + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
    unsigned int small = (unsigned int)sw_bitcast_f32_i32(sw_bits_f32(magnitude) + 0.5f) - 0x3f000000u;
    unsigned int finite = magnitude < 0x38800000u ? small : normal;
    unsigned int kept = magnitude > 0x7f800000u ? 0x7e00u : magnitude >= 0x477ff000u ? 0x7c00u : finite;
    return (sw_f16)(kept | (bits >> 16 & 0x8000u));
}

SW_INLINE float sw_bf16_to_f32(sw_bf16 x) { return sw_bits_f32((unsigned int)x << 16); }

SW_INLINE sw_bf16 sw_f32_to_bf16(float x) {
    unsigned int bits = (unsigned int)sw_bitcast_f32_i32(x);
    unsigned int rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (sw_bf16)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
}
