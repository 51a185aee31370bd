/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of the DSP extension of Armv7E-M and Armv8-M that the kernels named *_dsp use. On any other machine the
 * same functions are plain C, so that a test can run those kernels under a sanitiser. */
#ifndef ARENITE_DSP_H
#define ARENITE_DSP_H

#include <stdint.h>

#include "arenite_fixed_point.h"

#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
#define ARENITE_HAS_DSP 1
#else
#define ARENITE_HAS_DSP 0
#endif

/* Four bytes from any address, the first in the lowest bits. */
static inline uint32_t arenite_dsp_load(const int8_t *from) {
    uint32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

#if ARENITE_HAS_DSP

/* Bytes 0 and 2, or 1 and 3, as a pair of int16. */
static inline uint32_t arenite_sxtb16(uint32_t word) {
    uint32_t pair;
    __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
    return pair;
}

static inline uint32_t arenite_sxtb16_ror8(uint32_t word) {
    uint32_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* acc + both products of two pairs, modulo 2^32. */
static inline uint32_t arenite_smlad(uint32_t a, uint32_t b, uint32_t acc) {
    uint32_t sum;
    __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
    return sum;
}

/* acc + product of the low halves, modulo 2^32. */
static inline uint32_t arenite_smlabb(uint32_t a, uint32_t b, uint32_t acc) {
    uint32_t sum;
    __asm__("smlabb %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
    return sum;
}

/* The low half of a below the low half of b. */
static inline uint32_t arenite_pkhbt(uint32_t a, uint32_t b) {
    uint32_t pair;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}

/* The high half of b below the high half of a. */
static inline uint32_t arenite_pkhtb(uint32_t a, uint32_t b) {
    uint32_t pair;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}

/* A pair of int16, each times two modulo 2^16. */
static inline uint32_t arenite_twice16(uint32_t pair) {
    uint32_t twice;
    __asm__("sadd16 %0, %1, %1" : "=r"(twice) : "r"(pair));
    return twice;
}

/* acc + a * b / 2^32, rounded half up. */
static inline int32_t arenite_smmlar(int32_t a, int32_t b, int32_t acc) {
    int32_t sum;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
    return sum;
}

/* For assembly: the bias, multiplier and shift of the next channel at r10 in r0, r1 and r2, and of the zero point in r11 the
 * rounding in r3; then arenite_dsp_byte of a doubled sum with its bias, to r8 on. */
#define ARENITE_DSP_NEXT_CHANNEL                                                                             \
    "ldmia r10!, {r0, r1, r2}\n\t"                                                                           \
    "lsl r3, r11, r2\n\t"
#define ARENITE_DSP_REQUANTISE(sum)                                                                          \
    "add r3, r3, " sum ", asr #31\n\t"                                                                       \
    "smmlar " sum ", " sum ", r1, r3\n\t"                                                                    \
    "asr " sum ", " sum ", r2\n\t"                                                                           \
    "ssat " sum ", #8, " sum ", asr #1\n\t"                                                                  \
    "strb " sum ", [r8], #1\n\t"

/* value / 2, rounded down, as a byte with saturation. */
static inline int8_t arenite_ssat8_half(int32_t value) {
    int32_t byte;
    __asm__("ssat %0, #8, %1, asr #1" : "=r"(byte) : "r"(value));
    return (int8_t)byte;
}

#else

static inline int32_t arenite_half(uint32_t pair, int32_t which) { return (int16_t)(pair >> (16 * which)); }

static inline uint32_t arenite_pkhbt(uint32_t a, uint32_t b) { return (a & 0xFFFFu) | (b << 16); }

static inline uint32_t arenite_pkhtb(uint32_t a, uint32_t b) { return (a & 0xFFFF0000u) | (b >> 16); }

static inline uint32_t arenite_sxtb16(uint32_t word) {
    return arenite_pkhbt((uint32_t)(int8_t)word, (uint32_t)(int8_t)(word >> 16));
}

static inline uint32_t arenite_sxtb16_ror8(uint32_t word) {
    return arenite_sxtb16((word >> 8) | (word << 24));
}

static inline uint32_t arenite_smlabb(uint32_t a, uint32_t b, uint32_t acc) {
    return acc + (uint32_t)(arenite_half(a, 0) * arenite_half(b, 0));
}

static inline uint32_t arenite_smlad(uint32_t a, uint32_t b, uint32_t acc) {
    return arenite_smlabb(a >> 16, b >> 16, arenite_smlabb(a, b, acc));
}

static inline uint32_t arenite_twice16(uint32_t pair) { return (pair << 1) & 0xFFFEFFFFu; }

static inline int32_t arenite_smmlar(int32_t a, int32_t b, int32_t acc) {
    return acc + (int32_t)(((int64_t)a * b + ((int64_t)1 << 31)) >> 32);
}

static inline int8_t arenite_ssat8_half(int32_t value) {
    const int32_t half = value >> 1;
    return (int8_t)(half < INT8_MIN ? INT8_MIN : (half > INT8_MAX ? INT8_MAX : half));
}

#endif

/* How a channel is requantised: what its weights and the model's multiplier and shift became in the bundle.
 *
 * The reference rounds twice: v = (acc * multiplier + 2^30) >> 31, which is SMMULR of 2 acc, then
 * (v - (v < 0) + 2^(n - 1)) >> n for a right shift n >= 1. SMMLAR adds the second rounding for nothing, and with it the zero
 * point. Whether v is negative is asked of acc: where acc < 0 and v = 0, the one too few changes nothing. Nested floors
 * are one, so the last bit of the shift is left to SSAT. */
typedef struct {
    int32_t twice_bias; /* 2 * (bias - in_zero_point * sum of the channel's weights) */
    int32_t multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t shift;      /* n - 1: 0 .. 20 */
} arenite_dsp_channel_t;

/* twice_acc: 2 * acc, |acc| < 2^30. rounding: 2^(n - 1) and out_zero_point * 2^n. */
static inline int8_t arenite_dsp_byte(int32_t twice_acc, const arenite_dsp_channel_t *channel,
                                      int32_t rounding) {
    const int32_t value = arenite_smmlar(twice_acc, channel->multiplier, rounding + (twice_acc >> 31));
    return arenite_ssat8_half(value >> channel->shift);
}

/* Two neighbouring channels whose weights are mixed, see arenite_conv_2d_s8_dsp.h. point: 2 * out_zero_point + 1. */
static inline void arenite_dsp_pair(uint32_t low, uint32_t mixed, const arenite_dsp_channel_t *channel,
                                    int32_t point, int8_t *out) {
    const int32_t high = (int32_t)(mixed - low) >> 7; /* exactly twice the sum */
    out[0] = arenite_dsp_byte((int32_t)((uint32_t)channel[0].twice_bias + 2u * low), &channel[0],
                              arenite_shift_left(point, channel[0].shift));
    out[1] = arenite_dsp_byte(channel[1].twice_bias + high, &channel[1],
                              arenite_shift_left(point, channel[1].shift));
}

#endif
