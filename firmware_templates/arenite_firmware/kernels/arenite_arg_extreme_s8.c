/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_arg_extreme_s8.h"

#include <stddef.h>

static void merge_row(const arenite_arg_extreme_s8_t *p, const int8_t *row, int32_t first, int32_t *positions,
                      int8_t *best) {
    for (int32_t x = 0; x < p->width; x++) {
        ptrdiff_t i = (ptrdiff_t)x * p->out_pixel_step;
        int32_t position = first + x * p->pixel_index;
        for (int32_t c = 0; c < p->channels; c++) {
            const int8_t value = (int8_t)(*row++ ^ p->flip);
            if (positions[i] < 0 || value > best[i]) {
                best[i] = value;
                positions[i] = position;
            }
            i += p->out_channel_step;
            position += p->channel_index;
        }
    }
}

void arenite_arg_extreme_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_arg_extreme_s8_t *p = (const arenite_arg_extreme_s8_t *)params;
    int8_t *best = (int8_t *)(scratch + p->outputs);
    const int32_t row = p->rows > 1 ? step : 0;
    if (row == 0) {
        for (int32_t i = 0; i < p->outputs; i++) {
            scratch[i] = -1;
        }
    }
    merge_row(p, rows[0], row * p->row_index, scratch, best);
    if (row < p->rows - 1) {
        return;
    }
    for (int32_t i = 0; i < p->outputs; i++) {
        for (int32_t b = 0; b < 32; b += 8) {
            *out++ = (int8_t)(uint8_t)((uint32_t)scratch[i] >> b);
        }
    }
}
