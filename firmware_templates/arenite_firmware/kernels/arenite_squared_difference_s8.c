/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_squared_difference_s8.h"

#define LEFT_SHIFT 7

static int32_t grid(int32_t value, int32_t multiplier, int32_t right_shift) {
    return arenite_rounding_shift_right(arenite_doubling_high_mul(value * (1 << LEFT_SHIFT), multiplier),
                                        right_shift);
}

static int8_t arenite_squared_difference_s8_byte(const arenite_squared_difference_s8_t *p, int32_t a,
                                                 int32_t b) {
    const int32_t difference = grid(a - p->a_zero_point, p->a_multiplier, p->a_right_shift) -
                               grid(b - p->b_zero_point, p->b_multiplier, p->b_right_shift);
    return arenite_to_byte(difference * difference, p->multiplier, p->shift, p->out_zero_point, INT8_MIN,
                           INT8_MAX);
}

void arenite_squared_difference_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                   int32_t *scratch) {
    const arenite_squared_difference_s8_t *p = (const arenite_squared_difference_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, arenite_squared_difference_s8_byte)
}
