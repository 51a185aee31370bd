/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_slice.h"

#include <stddef.h>
#include <string.h>

void arenite_slice(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                   int32_t *scratch) {
    const arenite_slice_t *p = (const arenite_slice_t *)params;
    const ptrdiff_t bytes = p->element_bytes;
    /* Neighbours move together. */
    const int32_t together = p->channel_step == 1 ? p->channels : 1;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++) {
        const int8_t *in = rows[0] + bytes * (p->first + (ptrdiff_t)x * p->pixel_step);
        for (int32_t c = 0; c < p->channels; c += together) {
            memcpy(out, in, (size_t)(bytes * together));
            in += bytes * p->channel_step;
            out += bytes * together;
        }
    }
}
