/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_maximum_s8.h"

static int8_t arenite_maximum_s8_byte(const arenite_maximum_s8_t *p, int32_t a, int32_t b) {
    (void)p;
    return (int8_t)(a > b ? a : b);
}

void arenite_maximum_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_maximum_s8_t *p = (const arenite_maximum_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, arenite_maximum_s8_byte)
}
