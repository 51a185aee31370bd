/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_quantise.h"

#include "arenite_fixed_point.h"
/* To the nearest integer, half away from zero; far numbers and what is no number to the ends. */
static int32_t nearest(float value) {
    const float limit = 1073741824.0f;
    if (!(value > -limit)) {
        return -1073741824;
    }
    const float near = value < limit ? value : limit;
    const int32_t whole = (int32_t)near;
    const float rest = near - (float)whole;
    return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
}

void arenite_quantise(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                      int32_t *scratch) {
    const arenite_quantise_t *p = (const arenite_quantise_t *)params;
    (void)step;
    (void)scratch;
    const float *from = (const float *)(const void *)rows[0];
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t value = nearest(from[i] / p->scale) + p->zero_point;
        arenite_store_int(out, p->to, i, arenite_clamp(value, p->low, p->high));
    }
}
