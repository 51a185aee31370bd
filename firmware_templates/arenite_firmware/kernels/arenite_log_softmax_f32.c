/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_log_softmax_f32.h"

static void log_softmax_pixel(const arenite_log_softmax_f32_t *p, const float *in, float *out) {
    float greatest = in[0], sum = 0.0f;
    for (int32_t c = 1; c < p->channels; c++) {
        greatest = in[c] > greatest ? in[c] : greatest;
    }
    for (int32_t c = 0; c < p->channels; c++) {
        sum += arenite_exp(in[c] - greatest);
    }
    const float log_sum = arenite_log(sum);
    for (int32_t c = 0; c < p->channels; c++) {
        out[c] = in[c] - greatest - log_sum;
    }
}

void arenite_log_softmax_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch) {
    const arenite_log_softmax_f32_t *p = (const arenite_log_softmax_f32_t *)params;
    (void)step;
    (void)scratch;
    const float *in = (const float *)(const void *)rows[0];
    float *to = (float *)(void *)out;
    for (int32_t x = 0; x < p->width; x++) {
        log_softmax_pixel(p, in + x * p->channels, to + x * p->channels);
    }
}
