/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_s8_host.h"

#include <stddef.h>

#include "arenite_add_run.h"

void arenite_add_s8_host(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch) {
    const arenite_add_s8_t *p = (const arenite_add_s8_t *)params;
    const int8_t *a = rows[0], *b = rows[1];
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++, out += p->channels) {
        arenite_add_run(p, a, b, out, p->channels);
        a += p->a_pixel_step;
        b += p->b_pixel_step;
    }
}
