/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_sub_s8.h"

#include "arenite_binary.h"

static int8_t arenite_sub_s8_byte(const arenite_sub_s8_t *p, int32_t a, int32_t b) {
    const int32_t difference = arenite_add_s8_grid(a - p->a_zero_point, p->a_multiplier, p->a_right_shift) -
                               arenite_add_s8_grid(b - p->b_zero_point, p->b_multiplier, p->b_right_shift);
    const int32_t value = arenite_rounding_shift_right(
        arenite_doubling_high_mul(difference, p->out_multiplier), p->out_right_shift);
    return (int8_t)arenite_clamp(value + p->out_zero_point, p->act_min, p->act_max);
}

void arenite_sub_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_sub_s8_t *p = (const arenite_sub_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, arenite_sub_s8_byte)
}
