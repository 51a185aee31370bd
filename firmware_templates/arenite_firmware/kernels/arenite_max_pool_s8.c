/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_max_pool_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

void arenite_max_pool_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch) {
    const arenite_pool_s8_t *p = (const arenite_pool_s8_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w; x++) {
        int32_t begin, end;
        arenite_pool_window(p, x, &begin, &end);
        for (int32_t c = 0; c < p->channels; c++) {
            int32_t greatest = INT8_MIN;
            for (int32_t ky = 0; ky < p->kernel_h; ky++) {
                for (int32_t i = begin; rows[ky] != NULL && i < end; i++) {
                    int32_t value = rows[ky][(ptrdiff_t)i * p->channels + c];
                    greatest = value > greatest ? value : greatest;
                }
            }
            *out++ = (int8_t)arenite_clamp(greatest, p->act_min, p->act_max);
        }
    }
}
