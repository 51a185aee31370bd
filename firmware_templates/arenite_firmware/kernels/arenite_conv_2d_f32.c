/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_f32.h"

#include <stddef.h>

/* The products of one row of the window, added one by one to what there is. */
static float add_row(const arenite_conv_2d_f32_t *p, const float *row, const float *w, int32_t x, float sum) {
    for (int32_t kx = 0; kx < p->kernel_w; kx++, w += p->group_in) {
        const int32_t from = x * p->stride_w - p->pad_left + kx * p->dilation_w;
        if (from < 0 || from >= p->in_w) {
            continue;
        }
        const float *in = row + (ptrdiff_t)from * p->in_c;
        for (int32_t i = 0; i < p->group_in; i++) {
            sum += in[i] * w[i];
        }
    }
    return sum;
}

static float pixel(const arenite_conv_2d_f32_t *p, const int8_t *const *rows, int32_t x, int32_t channel) {
    const ptrdiff_t span = (ptrdiff_t)p->kernel_w * p->group_in;
    const ptrdiff_t first = (ptrdiff_t)(channel / p->group_out) * p->group_in;
    const float *w = p->weights + channel * p->kernel_h * span;
    float sum = 0.0f;
    for (int32_t k = 0; k < p->kernel_h; k++, w += span) {
        if (rows[k] != NULL) {
            sum = add_row(p, (const float *)(const void *)rows[k] + first, w, x, sum);
        }
    }
    return arenite_clamp_real(sum + p->bias[channel], p->act_min, p->act_max);
}

void arenite_conv_2d_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch) {
    const arenite_conv_2d_f32_t *p = (const arenite_conv_2d_f32_t *)params;
    (void)step;
    (void)scratch;
    float *to = (float *)(void *)out;
    for (int32_t x = 0; x < p->out_w; x++) {
        for (int32_t o = 0; o < p->out_c; o++) {
            *to++ = pixel(p, rows, x, o);
        }
    }
}
