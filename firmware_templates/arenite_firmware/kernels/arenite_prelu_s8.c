/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_prelu_s8.h"

static int8_t arenite_prelu_s8_byte(const arenite_prelu_s8_t *p, int32_t a, int32_t b) {
    const int32_t value = a - p->a_zero_point;
    if (value >= 0) {
        return arenite_to_byte(value, p->positive_multiplier, p->positive_shift, p->out_zero_point, INT8_MIN,
                               INT8_MAX);
    }
    return arenite_to_byte(value * (b - p->b_zero_point), p->negative_multiplier, p->negative_shift,
                           p->out_zero_point, INT8_MIN, INT8_MAX);
}

void arenite_prelu_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                      int32_t *scratch) {
    const arenite_prelu_s8_t *p = (const arenite_prelu_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, arenite_prelu_s8_byte)
}
