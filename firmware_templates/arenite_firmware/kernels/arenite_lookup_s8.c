/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_lookup_s8.h"

void arenite_lookup_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch) {
    const arenite_lookup_s8_t *p = (const arenite_lookup_s8_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t i = 0; i < p->count; i++) {
        out[i] = p->table[(uint8_t)rows[0][i]];
    }
}
