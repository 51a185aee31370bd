/* SPDX-License-Identifier: Apache-2.0 */
/* What ADD and SUB of int16 share: as for int8, but on a grid of 2^-15. */
#ifndef ARENITE_SUM_S16_H
#define ARENITE_SUM_S16_H

#include "arenite_add_s8.h"

#define ARENITE_SUM_S16_LEFT_SHIFT 15

static inline int32_t arenite_sum_s16_grid(int32_t value, int32_t multiplier, int32_t right_shift) {
    return arenite_rounding_shift_right(
        arenite_doubling_high_mul(value * (1 << ARENITE_SUM_S16_LEFT_SHIFT), multiplier), right_shift);
}

static inline int16_t arenite_sum_s16_output(const arenite_add_s8_t *p, int32_t sum) {
    const int32_t value =
        arenite_rounding_shift_right(arenite_doubling_high_mul(sum, p->out_multiplier), p->out_right_shift);
    return (int16_t)arenite_clamp(value + p->out_zero_point, p->act_min, p->act_max);
}

#endif
