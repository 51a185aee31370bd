/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_pad_s8.h"

#include <stddef.h>

static int8_t *fill(int8_t *out, int16_t value, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        *out++ = (int8_t)value;
    }
    return out;
}

void arenite_pad_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_pad_s8_t *p = (const arenite_pad_s8_t *)params;
    const int32_t out_c = p->before + p->in_c + p->after;
    const int8_t *in = rows[0];
    (void)step;
    (void)scratch;
    if (in == NULL) {
        fill(out, p->value, (p->left + p->in_w + p->right) * out_c);
        return;
    }
    out = fill(out, p->value, p->left * out_c);
    for (int32_t x = 0; x < p->in_w; x++) {
        out = fill(out, p->value, p->before);
        for (int32_t c = 0; c < p->in_c; c++) {
            *out++ = *in++;
        }
        out = fill(out, p->value, p->after);
    }
    fill(out, p->value, p->right * out_c);
}
