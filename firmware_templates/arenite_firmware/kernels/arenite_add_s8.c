/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

#define LEFT_SHIFT 20

static inline int32_t to_shared_grid(int32_t value, int32_t multiplier, int32_t right_shift) {
    return arenite_rounding_shift_right(arenite_doubling_high_mul(value * (1 << LEFT_SHIFT), multiplier),
                                        right_shift);
}

void arenite_add_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++) {
        const int8_t *a = rows[0] + (ptrdiff_t)x * p->a_pixel_step;
        const int8_t *b = rows[1] + (ptrdiff_t)x * p->b_pixel_step;
        for (int32_t c = 0; c < p->channels; c++) {
            int32_t sum = to_shared_grid(*a - p->a_zero_point, p->a_multiplier, p->a_right_shift) +
                          to_shared_grid(*b - p->b_zero_point, p->b_multiplier, p->b_right_shift);
            int32_t value = arenite_rounding_shift_right(arenite_doubling_high_mul(sum, p->out_multiplier),
                                                         p->out_right_shift);
            *out++ = (int8_t)arenite_clamp(value + p->out_zero_point, p->act_min, p->act_max);
            a += p->a_channel_step;
            b += p->b_channel_step;
        }
    }
}
