/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_max_pool_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

static int8_t window(const arenite_pool_s8_t *p, const int8_t *const *rows, int32_t begin, int32_t end,
                     int32_t c) {
    int32_t greatest = INT8_MIN;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        for (int32_t i = begin; rows[ky] != NULL && i < end; i++) {
            int32_t value = rows[ky][(ptrdiff_t)i * p->channels + c];
            greatest = value > greatest ? value : greatest;
        }
    }
    return (int8_t)arenite_clamp(greatest, p->act_min, p->act_max);
}

void arenite_max_pool_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch) {
    const arenite_pool_s8_t *p = (const arenite_pool_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_POOL_ROW(p, rows, out, window)
}
