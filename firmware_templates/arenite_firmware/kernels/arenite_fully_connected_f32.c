/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_fully_connected_f32.h"

void arenite_fully_connected_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch) {
    const arenite_fully_connected_f32_t *p = (const arenite_fully_connected_f32_t *)params;
    (void)step;
    (void)scratch;
    const float *x = (const float *)(const void *)rows[0], *w = p->weights;
    float *to = (float *)(void *)out;
    for (int32_t o = 0; o < p->out_c; o++, w += p->in_c) {
        float sum = 0.0f;
        for (int32_t i = 0; i < p->in_c; i++) {
            sum += x[i] * w[i];
        }
        to[o] = arenite_clamp_real(sum + p->bias[o], p->act_min, p->act_max);
    }
}
