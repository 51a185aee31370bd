/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s8.h"

void arenite_add_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, arenite_add_s8_byte)
}
