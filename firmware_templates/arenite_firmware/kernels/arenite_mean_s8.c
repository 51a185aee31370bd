/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_mean_s8.h"

#include "arenite_fixed_point.h"
#include "arenite_mean.h"

void arenite_mean_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    const arenite_mean_s8_t *p = (const arenite_mean_s8_t *)params;
    const int32_t count = p->rows * p->width;
    arenite_sum_row(rows[0], p->width, p->channels, step == 0, scratch);
    if (step < p->rows - 1) {
        return;
    }
    for (int32_t c = 0; c < p->channels; c++) {
        out[c] = arenite_to_byte(scratch[c] - p->in_zero_point * count, p->multiplier, p->shift,
                                 p->out_zero_point, INT8_MIN, INT8_MAX);
    }
}
