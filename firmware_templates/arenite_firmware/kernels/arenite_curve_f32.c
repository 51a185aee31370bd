/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_curve_f32.h"

/* The reference's own cuts: beyond them the float answer no longer changes, or is the exponential. */
static float logistic(float x) {
    if (x > 16.619047164916992188f) {
        return 1.0f;
    }
    if (x < -9.0f) {
        return arenite_exp(x);
    }
    return 1.0f / (1.0f + arenite_exp(-x));
}

void arenite_curve_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch) {
    const arenite_curve_f32_t *p = (const arenite_curve_f32_t *)params;
    (void)step;
    (void)scratch;
    const float *in = (const float *)(const void *)rows[0];
    float *to = (float *)(void *)out;
    for (int32_t i = 0; i < p->count; i++) {
        switch (p->curve) {
        case ARENITE_LOGISTIC_F32:
            to[i] = logistic(in[i]);
            break;
        case ARENITE_TANH_F32:
            to[i] = arenite_tanh(in[i]);
            break;
        default:
            to[i] = arenite_clamp_real(in[i], p->low, p->high);
            break;
        }
    }
}
