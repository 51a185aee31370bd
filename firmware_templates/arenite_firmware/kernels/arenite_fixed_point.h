/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-point arithmetic of the TFLite reference kernels (gemmlowp double rounding), free of undefined behaviour. */
#ifndef ARENITE_FIXED_POINT_H
#define ARENITE_FIXED_POINT_H

#include <stdint.h>

/* value * 2^shift modulo 2^32, shift 0 .. 30. */
static inline int32_t arenite_shift_left(int32_t value, int32_t shift) {
    return (int32_t)((uint32_t)value << shift);
}

/* Cores that multiply 32 by 32 bits to 32 bits only would call a function for 64. */
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
#define ARENITE_NO_LONG_MULTIPLY
#endif

/* Cores without a carry flag. */
#if defined(__riscv)
#define ARENITE_NO_CARRY
#endif

/* High 32 bits of 2ab, rounded half away from zero, b > INT32_MIN (so that nothing can overflow).
 * The reference adds 2^30 to a product >= 0 and 1 - 2^30 to a negative one, then divides by 2^31 towards zero, which is
 * the floor of (product + 2^30) / 2^31 in both cases: for a negative product the truncation adds back the 2^31 - 1 that
 * the smaller nudge left out. */
#ifdef ARENITE_NO_CARRY
/* floor((low + 2^30) / 2^31) = floor((floor(low / 2^30) + 1) / 2). */
static inline int32_t arenite_doubling_high_mul(int32_t a, int32_t b) {
    const int64_t product = (int64_t)a * b;
    const uint32_t high = (uint32_t)(product >> 32), low = (uint32_t)product;
    return (int32_t)((high << 1) + (((low >> 30) + 1u) >> 1));
}
#elif !defined(ARENITE_NO_LONG_MULTIPLY)
static inline int32_t arenite_doubling_high_mul(int32_t a, int32_t b) {
    return (int32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}
#else
static inline int32_t arenite_doubling_high_mul(int32_t a, int32_t b) {
    const uint32_t low_a = (uint32_t)a & 0xFFFFu, low_b = (uint32_t)b & 0xFFFFu;
    const int32_t high_a = a >> 16, high_b = b >> 16;
    const uint32_t low = low_a * low_b;
    const int32_t left = high_a * (int32_t)low_b, right = (int32_t)low_a * high_b;
    const uint32_t middle = (low >> 16) + ((uint32_t)left & 0xFFFFu) + ((uint32_t)right & 0xFFFFu);
    const uint32_t high =
        (uint32_t)(high_a * high_b) + (uint32_t)(left >> 16) + (uint32_t)(right >> 16) + (middle >> 16);
    const uint32_t low_word = (middle << 16) | (low & 0xFFFFu);
    const uint32_t rounded = low_word + ((uint32_t)1 << 30);
    return (int32_t)(((high + (rounded < low_word)) << 1) | (rounded >> 31));
}
#endif

/* value / 2^exponent rounded half away from zero, value > INT32_MIN, exponent 0 .. 31.
 * Half a unit is added after all bits but one are gone, so it cannot overflow; a negative value is first moved by one so
 * that its halves round down. */
static inline int32_t arenite_rounding_shift_right(int32_t value, int32_t exponent) {
    if (exponent == 0) {
        return value;
    }
    return (((value + (value >> 31)) >> (exponent - 1)) + 1) >> 1;
}

/* value * multiplier * 2^(shift - 31) with the reference's two roundings; shift -31 .. 30. */
static inline int32_t arenite_requantise(int32_t value, int32_t multiplier, int32_t shift) {
    int32_t left = shift > 0 ? shift : 0;
    int32_t right = shift > 0 ? 0 : -shift;
    return arenite_rounding_shift_right(
        arenite_doubling_high_mul(arenite_shift_left(value, left), multiplier), right);
}

/* acc + a * b modulo 2^32. Biases hold folded sums modulo 2^32, so an accumulator may pass the ends of int32 on its way. */
static inline uint32_t arenite_mac(uint32_t acc, int32_t a, int32_t b) { return acc + (uint32_t)(a * b); }

static inline int32_t arenite_clamp(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : (value > high ? high : value);
}

/* An accumulator as an output byte: requantised, moved to the zero point modulo 2^32, clamped. */
static inline int8_t arenite_to_byte(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero_point,
                                     int32_t low, int32_t high) {
    const uint32_t moved = (uint32_t)arenite_requantise(acc, multiplier, shift) + (uint32_t)zero_point;
    return (int8_t)arenite_clamp((int32_t)moved, low, high);
}

#endif
