/* SPDX-License-Identifier: Apache-2.0 */
/* ADD, int8, one output row a call, with broadcasts over pixels and channels by steps of 0.
 * Authority: TFLM reference_integer_ops::Add: both sides are brought to a shared grid of 2^-20 and added there, so the sum is
 * rounded once. */
#ifndef ARENITE_ADD_S8_H
#define ARENITE_ADD_S8_H

#include <stdint.h>

#include "arenite_binary.h"
#include "arenite_fixed_point.h"

typedef struct {
    ARENITE_BINARY_STEPS;
    int32_t a_multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t b_multiplier;
    int32_t out_multiplier;
    int8_t a_right_shift; /* 0 .. 31 */
    int8_t b_right_shift;
    int8_t out_right_shift;
    int16_t a_zero_point; /* -128 .. 127, as the model has it (not negated) */
    int16_t b_zero_point;
    int16_t out_zero_point;
    int16_t act_min;
    int16_t act_max;
} arenite_add_s8_t;

#define ARENITE_ADD_S8_LEFT_SHIFT 20

static inline int32_t arenite_add_s8_grid(int32_t value, int32_t multiplier, int32_t right_shift) {
    return arenite_rounding_shift_right(
        arenite_doubling_high_mul(value * (1 << ARENITE_ADD_S8_LEFT_SHIFT), multiplier), right_shift);
}

/* The sum of two bytes. */
static inline int8_t arenite_add_s8_byte(const arenite_add_s8_t *p, int32_t a, int32_t b) {
    const int32_t sum = arenite_add_s8_grid(a - p->a_zero_point, p->a_multiplier, p->a_right_shift) +
                        arenite_add_s8_grid(b - p->b_zero_point, p->b_multiplier, p->b_right_shift);
    const int32_t value =
        arenite_rounding_shift_right(arenite_doubling_high_mul(sum, p->out_multiplier), p->out_right_shift);
    return (int8_t)arenite_clamp(value + p->out_zero_point, p->act_min, p->act_max);
}

/* rows: one row of each side. out: width * channels bytes; it may start at or before a side that is not broadcast. */
void arenite_add_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch);

#endif
