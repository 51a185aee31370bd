/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_transpose_s8.h"

#include <stddef.h>

void arenite_transpose_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                          int32_t *scratch) {
    const arenite_transpose_s8_t *p = (const arenite_transpose_s8_t *)params;
    const int8_t *row = rows[0] + (ptrdiff_t)step * p->row_step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++) {
        const int8_t *pixel = row + (ptrdiff_t)x * p->pixel_step;
        for (int32_t c = 0; c < p->channels; c++) {
            *out++ = pixel[(ptrdiff_t)c * p->channel_step];
        }
    }
}
