/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_average_pool_global_s8.h"

#include "arenite_fixed_point.h"
#include "arenite_mean.h"

void arenite_average_pool_global_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                    int32_t *scratch) {
    const arenite_average_pool_global_s8_t *p = (const arenite_average_pool_global_s8_t *)params;
    arenite_sum_row(rows[0], p->width, p->channels, step == 0, scratch);
    if (step < p->rows - 1) {
        return;
    }
    for (int32_t c = 0; c < p->channels; c++) {
        int32_t mean = arenite_rounded_mean(scratch[c], p->rows * p->width);
        out[c] = (int8_t)arenite_clamp(mean, p->act_min, p->act_max);
    }
}
