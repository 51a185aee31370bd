/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_average_pool_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"
#include "arenite_mean.h"

static int8_t window(const arenite_pool_s8_t *p, const int8_t *const *rows, int32_t begin, int32_t end,
                     int32_t c) {
    int32_t sum = 0, count = 0;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        if (rows[ky] == NULL) {
            continue;
        }
        for (int32_t i = begin; i < end; i++) {
            sum += rows[ky][(ptrdiff_t)i * p->channels + c];
        }
        count += end - begin;
    }
    return (int8_t)arenite_clamp(arenite_rounded_mean(sum, count), p->act_min, p->act_max);
}

void arenite_average_pool_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch) {
    const arenite_pool_s8_t *p = (const arenite_pool_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_POOL_ROW(p, rows, out, window)
}
