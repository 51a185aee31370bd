/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_reduce_extreme_s8.h"

#include <stddef.h>

static void merge_row(const arenite_reduce_extreme_s8_t *p, const int8_t *row, int8_t *found) {
    for (int32_t x = 0; x < p->width; x++) {
        int8_t *best = found + (ptrdiff_t)x * p->out_pixel_step;
        for (int32_t c = 0; c < p->channels; c++) {
            const int8_t value = (int8_t)(*row++ ^ p->flip);
            *best = value > *best ? value : *best;
            best += p->out_channel_step;
        }
    }
}

void arenite_reduce_extreme_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                               int32_t *scratch) {
    const arenite_reduce_extreme_s8_t *p = (const arenite_reduce_extreme_s8_t *)params;
    int8_t *found = (int8_t *)scratch;
    const int32_t row = p->rows > 1 ? step : 0;
    if (row == 0) {
        for (int32_t i = 0; i < p->outputs; i++) {
            found[i] = INT8_MIN;
        }
    }
    merge_row(p, rows[0], found);
    if (row < p->rows - 1) {
        return;
    }
    for (int32_t i = 0; i < p->outputs; i++) {
        out[i] = (int8_t)(found[i] ^ p->flip);
    }
}
