/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

/* Neighbouring channels that share the walk over the taps. */
#define LANES 4

/* All taps of LANES neighbouring channels of a pixel whose window lies inside the row. */
static void accumulate_lanes(const arenite_depthwise_conv_2d_s8_t *p, const int8_t *const *rows,
                             int32_t first, int32_t channel, uint32_t *acc) {
    const ptrdiff_t start = (ptrdiff_t)first * p->in_c + channel;
    const ptrdiff_t step = (ptrdiff_t)p->in_c * p->dilation_w;
    const int8_t *w = p->weights + channel;
    uint32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *in = rows[ky] + start;
        for (int32_t kx = p->kernel_w; kx > 0; kx--, in += step, w += p->in_c) {
            a0 = arenite_mac(a0, in[0], w[0]);
            a1 = arenite_mac(a1, in[1], w[1]);
            a2 = arenite_mac(a2, in[2], w[2]);
            a3 = arenite_mac(a3, in[3], w[3]);
        }
    }
    acc[0] = a0;
    acc[1] = a1;
    acc[2] = a2;
    acc[3] = a3;
}

/* The same where taps may lie outside. */
static void accumulate_edge(const arenite_depthwise_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                            int32_t channel, uint32_t *acc) {
    const int32_t end = first + p->kernel_w * p->dilation_w, outside = p->in_zero_point;
    const int8_t *w = p->weights + channel;
    uint32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        for (int32_t x = first; x < end; x += p->dilation_w, w += p->in_c) {
            if (rows[ky] != NULL && x >= 0 && x < p->in_w) {
                const int8_t *in = rows[ky] + (ptrdiff_t)x * p->in_c + channel;
                a0 = arenite_mac(a0, in[0], w[0]);
                a1 = arenite_mac(a1, in[1], w[1]);
                a2 = arenite_mac(a2, in[2], w[2]);
                a3 = arenite_mac(a3, in[3], w[3]);
            } else {
                a0 = arenite_mac(a0, outside, w[0]);
                a1 = arenite_mac(a1, outside, w[1]);
                a2 = arenite_mac(a2, outside, w[2]);
                a3 = arenite_mac(a3, outside, w[3]);
            }
        }
    }
    acc[0] = a0;
    acc[1] = a1;
    acc[2] = a2;
    acc[3] = a3;
}

/* All taps of output channel `channel` of any pixel. */
static uint32_t accumulate(const arenite_depthwise_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                           int32_t channel) {
    const ptrdiff_t out_c = (ptrdiff_t)p->in_c * p->depth_multiplier;
    const int32_t source = channel / p->depth_multiplier;
    const int8_t *w = p->weights + channel;
    uint32_t acc = (uint32_t)p->bias[channel];
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w, w += out_c) {
            const int inside = rows[ky] != NULL && x >= 0 && x < p->in_w;
            acc = arenite_mac(acc, inside ? rows[ky][(ptrdiff_t)x * p->in_c + source] : p->in_zero_point, *w);
        }
    }
    return acc;
}

/* Whether no tap of the pixel that starts at input pixel `first` is outside the input. */
static int is_inside(const arenite_depthwise_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first) {
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        if (rows[ky] == NULL) {
            return 0;
        }
    }
    return first >= 0 && first + (p->kernel_w - 1) * p->dilation_w < p->in_w;
}

static int8_t finish(const arenite_depthwise_conv_2d_s8_t *p, uint32_t acc, int32_t channel) {
    const int32_t entry = p->per_channel ? channel : 0;
    return arenite_to_byte((int32_t)acc, p->multiplier[entry], p->shift[entry], p->out_zero_point, p->act_min,
                           p->act_max);
}

void arenite_depthwise_conv_2d_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                  int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const int32_t out_c = p->in_c * p->depth_multiplier;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w; x++) {
        const int32_t first = x * p->stride_w - p->pad_left;
        int32_t o = 0;
        if (p->depth_multiplier == 1) {
            const int inside = is_inside(p, rows, first);
            for (; o <= out_c - LANES; o += LANES) {
                uint32_t acc[LANES];
                for (int32_t l = 0; l < LANES; l++) {
                    acc[l] = (uint32_t)p->bias[o + l];
                }
                if (inside) {
                    accumulate_lanes(p, rows, first, o, acc);
                } else {
                    accumulate_edge(p, rows, first, o, acc);
                }
                for (int32_t l = 0; l < LANES; l++) {
                    *out++ = finish(p, acc[l], o + l);
                }
            }
        }
        for (; o < out_c; o++) {
            *out++ = finish(p, accumulate(p, rows, first, o), o);
        }
    }
}
