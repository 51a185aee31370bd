/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_concatenation_s8.h"

#include <stddef.h>

void arenite_concatenation_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                              int32_t *scratch) {
    const arenite_concatenation_s8_t *p = (const arenite_concatenation_s8_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t r = 0; r < p->repeats; r++) {
        for (int32_t i = 0; i < p->count; i++) {
            if (rows[i] == NULL) {
                continue;
            }
            const int8_t *chunk = rows[i] + (ptrdiff_t)r * p->chunks[i];
            for (int32_t b = 0; b < p->chunks[i]; b++) {
                *out++ = chunk[b];
            }
        }
    }
}
