/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_mul_s16.h"

static int16_t element(const arenite_mul_s8_t *p, int32_t a, int32_t b) {
    return (int16_t)arenite_clamp(arenite_requantise(a * b, p->multiplier, p->shift), p->act_min, p->act_max);
}

void arenite_mul_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    const arenite_mul_s8_t *p = (const arenite_mul_s8_t *)params;
    int16_t *to = (int16_t *)(void *)out;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW_OF(int16_t, p, rows, to, element)
}
