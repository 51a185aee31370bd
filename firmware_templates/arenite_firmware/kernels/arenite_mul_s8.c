/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_mul_s8.h"

static int8_t arenite_mul_s8_byte(const arenite_mul_s8_t *p, int32_t a, int32_t b) {
    return arenite_to_byte((a - p->a_zero_point) * (b - p->b_zero_point), p->multiplier, p->shift,
                           p->out_zero_point, p->act_min, p->act_max);
}

void arenite_mul_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_mul_s8_t *p = (const arenite_mul_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, arenite_mul_s8_byte)
}
