/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_select.h"

#include <stddef.h>

void arenite_select(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_select_t *p = (const arenite_select_t *)params;
    (void)step;
    (void)scratch;
    const ptrdiff_t bytes = p->element_bytes;
    for (int32_t x = 0; x < p->width; x++) {
        const int8_t *which = rows[0] + (ptrdiff_t)x * p->which_pixel_step;
        const int8_t *a = rows[1] + bytes * x * p->a_pixel_step;
        const int8_t *b = rows[2] + bytes * x * p->b_pixel_step;
        for (int32_t c = 0; c < p->channels; c++) {
            const int8_t *from = *which ? a : b;
            for (ptrdiff_t i = 0; i < bytes; i++) {
                out[i] = from[i];
            }
            out += bytes;
            which += p->which_channel_step;
            a += bytes * p->a_channel_step;
            b += bytes * p->b_channel_step;
        }
    }
}
