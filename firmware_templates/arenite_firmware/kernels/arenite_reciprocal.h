/* SPDX-License-Identifier: Apache-2.0 */
/* Reciprocals in fixed point, as the reference's library computes them. */
#ifndef ARENITE_RECIPROCAL_H
#define ARENITE_RECIPROCAL_H

#include "arenite_fixed_point.h"

static inline int32_t arenite_saturating_shift_left(int32_t value, int32_t shift) {
    int64_t wide = (int64_t)value * ((int64_t)1 << shift);
    return wide > INT32_MAX ? INT32_MAX : (wide < INT32_MIN ? INT32_MIN : (int32_t)wide);
}

/* 1 / (1 + a) in Q0.31 for a in Q0.31, 0 <= a < 1: three steps of Newton's method in Q2.29 from 48/17 - 32/17 d, where
 * d = (1 + a) / 2. */
static inline int32_t arenite_one_over_one_plus(int32_t a) {
    const int32_t half_denominator = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2);
    int32_t x = 1515870810 + arenite_doubling_high_mul(half_denominator, -1010580540);
    for (int i = 0; i < 3; i++) {
        int32_t rest = (1 << 29) - arenite_doubling_high_mul(half_denominator, x);
        x += arenite_saturating_shift_left(arenite_doubling_high_mul(x, rest), 2);
    }
    return arenite_saturating_shift_left(x, 1);
}

/* Zero bits above the highest set one; 32 for 0. */
static inline int32_t arenite_leading_zeros(uint32_t value) {
    int32_t count = 0;
    while (count < 32 && !(value & 0x80000000u)) {
        value <<= 1;
        count++;
    }
    return count;
}

#endif
