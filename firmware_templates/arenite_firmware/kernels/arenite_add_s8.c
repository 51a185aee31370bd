/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s8.h"

#include <stddef.h>

void arenite_add_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++) {
        const int8_t *a = rows[0] + (ptrdiff_t)x * p->a_pixel_step;
        const int8_t *b = rows[1] + (ptrdiff_t)x * p->b_pixel_step;
        for (int32_t c = 0; c < p->channels; c++) {
            *out++ = arenite_add_s8_byte(p, *a, *b);
            a += p->a_channel_step;
            b += p->b_channel_step;
        }
    }
}
