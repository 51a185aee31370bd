/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s16.h"

#include "arenite_sum_s16.h"

static int16_t element(const arenite_add_s8_t *p, int32_t a, int32_t b) {
    return arenite_sum_s16_output(p, arenite_sum_s16_grid(a, p->a_multiplier, p->a_right_shift) +
                                         arenite_sum_s16_grid(b, p->b_multiplier, p->b_right_shift));
}

void arenite_add_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    int16_t *to = (int16_t *)(void *)out;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW_OF(int16_t, p, rows, to, element)
}
