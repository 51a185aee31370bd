/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_reduce_sum_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

static void add_row(const arenite_reduce_sum_s8_t *p, const int8_t *row, int32_t *sums) {
    for (int32_t x = 0; x < p->width; x++) {
        int32_t *sum = sums + (ptrdiff_t)x * p->out_pixel_step;
        for (int32_t c = 0; c < p->channels; c++) {
            *sum += *row++;
            sum += p->out_channel_step;
        }
    }
}

void arenite_reduce_sum_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                           int32_t *scratch) {
    const arenite_reduce_sum_s8_t *p = (const arenite_reduce_sum_s8_t *)params;
    const int32_t row = p->rows > 1 ? step : 0;
    if (row == 0) {
        for (int32_t i = 0; i < p->outputs; i++) {
            scratch[i] = p->offset;
        }
    }
    add_row(p, rows[0], scratch);
    if (row < p->rows - 1) {
        return;
    }
    for (int32_t i = 0; i < p->outputs; i++) {
        out[i] = arenite_to_byte(scratch[i], p->multiplier, p->shift, p->out_zero_point, INT8_MIN, INT8_MAX);
    }
}
