/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of arenite_fixed_point.h and products of bytes on 4 lanes of NEON (AArch64). */
#ifndef ARENITE_NEON_H
#define ARENITE_NEON_H

#include <arm_neon.h>
#include <stdint.h>

/* acc[l] += sum of 4 neighbouring products, bytes 4 * l .. 4 * l + 3 of x and w. */
static inline int32x4_t arenite_dot_neon(int32x4_t acc, int8x16_t x, int8x16_t w) {
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(acc, x, w);
#else
    /* A product may be 2^14, so two of them do not fit 16 bits. */
    const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w));
    const int16x8_t high = vmull_s8(vget_high_s8(x), vget_high_s8(w));
    return vaddq_s32(acc, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
#endif
}

/* arenite_doubling_high_mul in each lane. */
static inline int32x4_t arenite_high_mul_neon(int32x4_t a, int32x4_t b) {
    const int64x2_t half = vdupq_n_s64((int64_t)1 << 30);
    const int64x2_t low = vaddq_s64(vmull_s32(vget_low_s32(a), vget_low_s32(b)), half);
    const int64x2_t high = vaddq_s64(vmull_s32(vget_high_s32(a), vget_high_s32(b)), half);
    return vcombine_s32(vshrn_n_s64(low, 31), vshrn_n_s64(high, 31));
}

/* arenite_rounding_shift_right by -shift where shift < 0, else nothing. */
static inline int32x4_t arenite_shift_right_neon(int32x4_t value, int32x4_t shift) {
    const int32x4_t one = vdupq_n_s32(1);
    const int32x4_t moved = vaddq_s32(value, vshrq_n_s32(value, 31));
    const int32x4_t twice = vaddq_s32(vshlq_s32(moved, vaddq_s32(shift, one)), one);
    return vbslq_s32(vcltq_s32(shift, vdupq_n_s32(0)), vshrq_n_s32(twice, 1), value);
}

/* Accumulators of 4 channels to output values, zero point added, not clamped yet. */
static inline int32x4_t arenite_requantise_neon(int32x4_t acc, const int32_t *multiplier, const int8_t *shift,
                                                int32_t zero_point) {
    const int32x4_t shifts = {shift[0], shift[1], shift[2], shift[3]};
    const int32x4_t left = vshlq_s32(acc, vmaxq_s32(shifts, vdupq_n_s32(0)));
    const int32x4_t high = arenite_high_mul_neon(left, vld1q_s32(multiplier));
    return vaddq_s32(arenite_shift_right_neon(high, shifts), vdupq_n_s32(zero_point));
}

/* The first `count` of 16 values, clamped. */
static inline void arenite_store_neon(int8_t *out, const int32x4_t *values, int32_t count, int32_t low,
                                      int32_t high) {
    const int16x8_t first = vcombine_s16(vqmovn_s32(values[0]), vqmovn_s32(values[1]));
    const int16x8_t second = vcombine_s16(vqmovn_s32(values[2]), vqmovn_s32(values[3]));
    const int8x16_t bytes = vcombine_s8(vqmovn_s16(first), vqmovn_s16(second));
    const int8x16_t clamped = vminq_s8(vmaxq_s8(bytes, vdupq_n_s8((int8_t)low)), vdupq_n_s8((int8_t)high));
    if (count >= 16) {
        vst1q_s8(out, clamped);
        return;
    }
    int8_t all[16];
    vst1q_s8(all, clamped);
    for (int32_t i = 0; i < count; i++) {
        out[i] = all[i];
    }
}

/* Accumulators of 16 channels, bias included, to the first `count` output bytes. */
static inline void arenite_finish_neon(int32x4_t *sums, const int32_t *multiplier, const int8_t *shift,
                                       int32_t zero_point, int8_t *out, int32_t count, int32_t low,
                                       int32_t high) {
    for (int q = 0; q < 4; q++) {
        sums[q] = arenite_requantise_neon(sums[q], multiplier + 4 * q, shift + 4 * q, zero_point);
    }
    arenite_store_neon(out, sums, count, low, high);
}

#endif
