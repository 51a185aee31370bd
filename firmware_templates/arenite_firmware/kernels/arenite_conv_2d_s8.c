/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8.h"

#include <stddef.h>

#include "arenite_fixed_point.h"

/* Output channels whose weights are interleaved: one load of an input byte serves all of them. Together with a second
 * pixel, which shares the loads of the weights, that makes 6 loads for 8 multiply-accumulates. */
#define LANES ARENITE_CONV_2D_S8_LANES

/* acc[l] += sum of x[i] * w[i * LANES + l]. */
static void dot_lanes(const int8_t *x, const int8_t *w, int32_t count, uint32_t *acc) {
    uint32_t a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3];
    for (const int8_t *end = x + count; x < end; x++, w += LANES) {
        int32_t value = *x;
        a0 = arenite_mac(a0, value, w[0]);
        a1 = arenite_mac(a1, value, w[1]);
        a2 = arenite_mac(a2, value, w[2]);
        a3 = arenite_mac(a3, value, w[3]);
    }
    acc[0] = a0;
    acc[1] = a1;
    acc[2] = a2;
    acc[3] = a3;
}

/* The same for two pixels, x into a and x + distance into b. */
static void dot_pair(const int8_t *x, ptrdiff_t distance, const int8_t *w, int32_t count, uint32_t *a,
                     uint32_t *b) {
    uint32_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    uint32_t b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
    for (const int8_t *end = x + count; x < end; x++, w += LANES) {
        int32_t left = *x, right = x[distance], weight = w[0];
        a0 = arenite_mac(a0, left, weight);
        b0 = arenite_mac(b0, right, weight);
        weight = w[1];
        a1 = arenite_mac(a1, left, weight);
        b1 = arenite_mac(b1, right, weight);
        weight = w[2];
        a2 = arenite_mac(a2, left, weight);
        b2 = arenite_mac(b2, right, weight);
        weight = w[3];
        a3 = arenite_mac(a3, left, weight);
        b3 = arenite_mac(b3, right, weight);
    }
    a[0] = a0;
    a[1] = a1;
    a[2] = a2;
    a[3] = a3;
    b[0] = b0;
    b[1] = b1;
    b[2] = b2;
    b[3] = b3;
}

/* acc[l] += sum of x[i] * w[i * lanes + l], lanes being LANES or 1. */
static void dot(const int8_t *x, const int8_t *w, int32_t count, int32_t lanes, uint32_t *acc) {
    if (lanes == LANES) {
        dot_lanes(x, w, count, acc);
        return;
    }
    uint32_t a = *acc;
    for (int32_t i = 0; i < count; i++) {
        a = arenite_mac(a, x[i], w[i]);
    }
    *acc = a;
}

/* acc[l] += zero_point * sum of w[i * lanes + l]: what lies outside the input. */
static void dot_outside(int32_t zero_point, const int8_t *w, int32_t count, int32_t lanes, uint32_t *acc) {
    for (int32_t i = 0; i < count; i++) {
        for (int32_t l = 0; l < lanes; l++) {
            acc[l] = arenite_mac(acc[l], zero_point, *w++);
        }
    }
}

/* Whether every tap of the output pixel that starts at input pixel `first` is inside the row, and one run of bytes. */
static int is_run(const arenite_conv_2d_s8_t *p, int32_t first) {
    return first >= 0 && first + (p->kernel_w - 1) * p->dilation_w < p->in_w &&
           (p->dilation_w == 1 || p->kernel_w == 1);
}

/* All taps of one output pixel, for `lanes` channels whose weights start at w. */
static void accumulate(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                       const int8_t *w, int32_t lanes, uint32_t *acc) {
    const int32_t span = p->kernel_w * p->in_c;
    const int run = is_run(p, first);
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        if (rows[ky] == NULL) {
            dot_outside(p->in_zero_point, w, span, lanes, acc);
            w += span * lanes;
        } else if (run) {
            dot(rows[ky] + (ptrdiff_t)first * p->in_c, w, span, lanes, acc);
            w += span * lanes;
        } else {
            for (int32_t x = first; x < first + p->kernel_w * p->dilation_w; x += p->dilation_w) {
                if (x >= 0 && x < p->in_w) {
                    dot(rows[ky] + (ptrdiff_t)x * p->in_c, w, p->in_c, lanes, acc);
                } else {
                    dot_outside(p->in_zero_point, w, p->in_c, lanes, acc);
                }
                w += p->in_c * lanes;
            }
        }
    }
}

/* The same for two neighbouring output pixels whose taps are runs, and LANES channels. */
static void accumulate_pair(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                            const int8_t *w, uint32_t *a, uint32_t *b) {
    const int32_t span = p->kernel_w * p->in_c;
    const ptrdiff_t distance = (ptrdiff_t)p->stride_w * p->in_c;
    for (int32_t ky = 0; ky < p->kernel_h; ky++, w += span * LANES) {
        if (rows[ky] == NULL) {
            dot_outside(p->in_zero_point, w, span, LANES, a);
            dot_outside(p->in_zero_point, w, span, LANES, b);
        } else {
            dot_pair(rows[ky] + (ptrdiff_t)first * p->in_c, distance, w, span, a, b);
        }
    }
}

static void finish(const arenite_conv_2d_s8_t *p, const uint32_t *acc, int32_t channel, int32_t lanes,
                   int8_t *out) {
    for (int32_t l = 0; l < lanes; l++) {
        const int32_t entry = p->per_channel ? channel + l : 0;
        out[l] = arenite_to_byte((int32_t)acc[l], p->multiplier[entry], p->shift[entry], p->out_zero_point,
                                 p->act_min, p->act_max);
    }
}

static void load(const int32_t *bias, uint32_t *acc) {
    for (int32_t l = 0; l < LANES; l++) {
        acc[l] = (uint32_t)bias[l];
    }
}

void arenite_conv_2d_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t taps = p->kernel_h * p->kernel_w * p->in_c;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w;) {
        const int32_t first = x * p->stride_w - p->pad_left;
        const int pair = x + 1 < p->out_w && is_run(p, first) && is_run(p, first + p->stride_w);
        const int8_t *w = p->weights;
        uint32_t a[LANES], b[LANES];
        int32_t o = 0;
        for (; o <= p->out_c - LANES; o += LANES, w += taps * LANES) {
            load(&p->bias[o], a);
            if (pair) {
                load(&p->bias[o], b);
                accumulate_pair(p, rows, first, w, a, b);
                finish(p, b, o, LANES, &out[p->out_c + o]);
            } else {
                accumulate(p, rows, first, w, LANES, a);
            }
            finish(p, a, o, LANES, &out[o]);
        }
        for (; o < p->out_c; o++, w += taps) {
            a[0] = (uint32_t)p->bias[o];
            accumulate(p, rows, first, w, 1, a);
            finish(p, a, o, 1, &out[o]);
            if (pair) {
                b[0] = (uint32_t)p->bias[o];
                accumulate(p, rows, first + p->stride_w, w, 1, b);
                finish(p, b, o, 1, &out[p->out_c + o]);
            }
        }
        x += pair ? 2 : 1;
        out += pair ? 2 * p->out_c : p->out_c;
    }
}
