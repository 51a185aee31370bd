/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_slopes_s16.h"

#include "arenite_fixed_point.h"

void arenite_slopes_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_slopes_s16_t *p = (const arenite_slopes_s16_t *)params;
    (void)step;
    (void)scratch;
    const int16_t *in = (const int16_t *)(const void *)rows[0];
    int16_t *to = (int16_t *)(void *)out;
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t value = in[i] < 0 ? arenite_requantise(in[i], p->below_multiplier, p->below_shift)
                                        : arenite_requantise(in[i], p->above_multiplier, p->above_shift);
        to[i] = (int16_t)arenite_clamp(value, INT16_MIN, INT16_MAX);
    }
}
