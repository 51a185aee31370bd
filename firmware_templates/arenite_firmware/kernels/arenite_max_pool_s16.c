/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_max_pool_s16.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

static int16_t window(const arenite_pool_s8_t *p, const int8_t *const *rows, int32_t begin, int32_t end,
                      int32_t c) {
    int32_t greatest = INT16_MIN;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int16_t *row = (const int16_t *)(const void *)rows[ky];
        for (int32_t i = begin; row != NULL && i < end; i++) {
            const int32_t value = row[(ptrdiff_t)i * p->channels + c];
            greatest = value > greatest ? value : greatest;
        }
    }
    return (int16_t)arenite_clamp(greatest, p->act_min, p->act_max);
}

void arenite_max_pool_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                          int32_t *scratch) {
    const arenite_pool_s8_t *p = (const arenite_pool_s8_t *)params;
    int16_t *to = (int16_t *)(void *)out;
    (void)step;
    (void)scratch;
    ARENITE_POOL_ROW(p, rows, to, window)
}
