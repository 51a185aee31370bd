/* SPDX-License-Identifier: Apache-2.0 */
/* The logistic function and the hyperbolic tangent of int16, by a table of 256 entries and a line between them.
 * Authority: TFLM reference_integer_ops::Logistic and Tanh for int16.
 *
 * A caller brings its input x to 1/12288 of a unit: arenite_curve_input(x, multiplier, right_shift). */
#ifndef ARENITE_CURVE_16_H
#define ARENITE_CURVE_16_H

#include <stdint.h>

/* (x * multiplier) / 2^right_shift, rounded half up; the product is within int32. */
static inline int32_t arenite_curve_input(int32_t x, int32_t multiplier, int32_t right_shift) {
    const int32_t half = right_shift > 0 ? 1 << (right_shift - 1) : 0;
    return (x * multiplier + half) >> right_shift;
}

/* table[i] * 2^bits at i = x / 2^bits, between its entries by lines; from entry 255 on it is `most`. */
static inline int32_t arenite_curve_line(const uint16_t *table, int32_t x, int32_t bits, int32_t most) {
    const int32_t entry = x >> bits, rest = x & ((1 << bits) - 1);
    return entry >= 255 ? most : (table[entry] << bits) + rest * (table[entry + 1] - table[entry]);
}

/* Logistic in Q0.15. table: 2^16 / (1 + exp(-i / 24)), i = 0 .. 255. */
static inline int16_t arenite_logistic_16(const uint16_t *table, int32_t x) {
    const int32_t line = arenite_curve_line(table, x < 0 ? -x : x, 9, 0x7FFF << 10);
    return (int16_t)((x >= 0 ? line + (1 << 9) : (1 << 25) - line + (1 << 9) - 1) >> 10);
}

/* Hyperbolic tangent in Q0.15: 2 logistic(2x) - 1. */
static inline int16_t arenite_tanh_16(const uint16_t *table, int32_t x) {
    const int32_t line = arenite_curve_line(table, x < 0 ? -x : x, 8, 0xFFFF << 8);
    return (int16_t)((x >= 0 ? line - (1 << 23) + (1 << 7) : -line + (1 << 23) + (1 << 7) - 1) >> 8);
}

#endif
