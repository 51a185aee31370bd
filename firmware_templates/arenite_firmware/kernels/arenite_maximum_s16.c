/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_maximum_s16.h"

static int16_t element(const arenite_maximum_s16_t *p, int32_t a, int32_t b) {
    (void)p;
    return (int16_t)(a > b ? a : b);
}

void arenite_maximum_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch) {
    const arenite_maximum_s16_t *p = (const arenite_maximum_s16_t *)params;
    int16_t *to = (int16_t *)(void *)out;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW_OF(int16_t, p, rows, to, element)
}
