/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_row.h"

#include "arenite_fixed_point.h"
#include "arenite_host_isa.h"

/* All taps of one channel of the output pixel that starts at input pixel `first`; `w` are its weights in the first group
 * of rows. */
static uint32_t accumulate(const arenite_depthwise_row_t *r, int32_t first, int32_t channel,
                           const int8_t *w) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    uint32_t acc = (uint32_t)p->bias[channel];
    for (int32_t kx = 0; kx < p->kernel_w; kx++) {
        for (int32_t ky = 0; ky < p->kernel_h; ky++) {
            const int32_t group = kx * r->groups + ky / ARENITE_GROUP;
            const int8_t weight = w[group * ARENITE_BLOCK * ARENITE_GROUP + ky % ARENITE_GROUP];
            const int8_t *pixel = arenite_depthwise_pixel(r, ky, first + kx * p->dilation_w);
            acc = arenite_mac(acc, pixel[channel], weight);
        }
    }
    return acc;
}

static void row_plain(const arenite_depthwise_row_t *r) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    const ptrdiff_t pitch = (ptrdiff_t)p->kernel_w * r->groups * ARENITE_BLOCK * ARENITE_GROUP;
    int8_t *out = r->out;
    for (int32_t x = 0; x < p->out_w; x++) {
        for (int32_t c = 0; c < p->in_c; c++) {
            const int8_t *w = p->weights + c / ARENITE_BLOCK * pitch + c % ARENITE_BLOCK * ARENITE_GROUP;
            const int32_t acc = (int32_t)accumulate(r, x * p->stride_w - p->pad_left, c, w);
            *out++ = arenite_to_byte(acc, p->multiplier[c], p->shift[c], p->out_zero_point, p->act_min,
                                     p->act_max);
        }
    }
}

void arenite_depthwise_row(const arenite_depthwise_row_t *r) {
#if defined(__x86_64__)
    const int32_t isa = arenite_host_isa();
    if (isa == ARENITE_ISA_AVX512) {
        arenite_depthwise_row_avx512(r);
        return;
    }
    if (isa >= ARENITE_ISA_AVX2) {
        arenite_depthwise_row_avx2(r);
        return;
    }
#elif defined(__aarch64__)
    if (arenite_host_isa() == ARENITE_ISA_NEON) {
        arenite_depthwise_row_neon(r);
        return;
    }
#endif
    row_plain(r);
}
