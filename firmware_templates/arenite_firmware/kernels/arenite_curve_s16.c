/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_curve_s16.h"

void arenite_curve_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch) {
    const arenite_curve_s16_t *p = (const arenite_curve_s16_t *)params;
    const int16_t *in = (const int16_t *)(const void *)rows[0];
    int16_t *to = (int16_t *)(void *)out;
    (void)step;
    (void)scratch;
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t x = arenite_curve_input(in[i], p->multiplier, p->right_shift);
        to[i] = p->is_tanh ? arenite_tanh_16(p->table, x) : arenite_logistic_16(p->table, x);
    }
}
