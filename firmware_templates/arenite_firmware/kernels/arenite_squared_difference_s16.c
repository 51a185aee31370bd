/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_squared_difference_s16.h"

static int32_t grid(int32_t value, int32_t multiplier, int32_t right_shift) {
    return arenite_rounding_shift_right(arenite_doubling_high_mul(value, multiplier), right_shift);
}

static int16_t element(const arenite_squared_difference_s16_t *p, int32_t a, int32_t b) {
    const int32_t difference =
        grid(a, p->a_multiplier, p->a_right_shift) - grid(b, p->b_multiplier, p->b_right_shift);
    const int32_t value = arenite_requantise(difference * difference, p->multiplier, p->shift);
    return (int16_t)arenite_clamp(value, INT16_MIN, INT16_MAX);
}

void arenite_squared_difference_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                    int32_t *scratch) {
    const arenite_squared_difference_s16_t *p = (const arenite_squared_difference_s16_t *)params;
    int16_t *to = (int16_t *)(void *)out;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW_OF(int16_t, p, rows, to, element)
}
