/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_dsp.h"

#include <stddef.h>

/* Where a row's columns of one channel lie. */
typedef struct {
    const int8_t *rows[3];
    int32_t width;
    int32_t pitch;
    int32_t outside; /* what stands for a byte outside, as int16 */
} source_t;

/* One channel's weights, doubled, as pairs of int16. */
typedef struct {
    uint32_t left;   /* w[0][0], w[1][0] */
    uint32_t centre; /* w[0][1], w[1][1] */
    uint32_t right;  /* w[0][2], w[1][2] */
    uint32_t low;    /* w[2][0], w[2][1] */
    uint32_t corner; /* w[2][2] */
} taps_t;

/* A column: the upper two bytes as a pair, and the one below. */
typedef struct {
    uint32_t upper;
    uint32_t lower;
} column_t;

static inline column_t inside(const source_t *s, ptrdiff_t offset) {
    const column_t column = {arenite_pkhbt((uint32_t)s->rows[0][offset], (uint32_t)s->rows[1][offset]),
                             (uint32_t)s->rows[2][offset]};
    return column;
}

static inline column_t any(const source_t *s, int32_t x) {
    if (x >= 0 && x < s->width) {
        return inside(s, (ptrdiff_t)x * s->pitch);
    }
    const column_t column = {arenite_pkhbt((uint32_t)s->outside, (uint32_t)s->outside), (uint32_t)s->outside};
    return column;
}

static inline int8_t window(const taps_t *w, const arenite_dsp_channel_t *scale, int32_t rounding, column_t a,
                            column_t b, column_t c) {
    uint32_t acc = arenite_smlad(a.upper, w->left, (uint32_t)scale->twice_bias);
    acc = arenite_smlad(b.upper, w->centre, acc);
    acc = arenite_smlad(c.upper, w->right, acc);
    acc = arenite_smlabb(a.lower, w->low, acc);
    acc = arenite_smlabt(b.lower, w->low, acc);
    acc = arenite_smlabb(c.lower, w->corner, acc);
    return arenite_dsp_byte((int32_t)acc, scale, rounding);
}

/* One channel of an output row. */
static void channel_row(const arenite_depthwise_conv_2d_s8_t *p, const source_t *s, const taps_t *w,
                        const arenite_dsp_channel_t *scale, int8_t *out) {
    const int32_t rounding = arenite_dsp_rounding(p->out_zero_point, scale->shift);
    const int32_t stride = p->stride_w, pitch = s->pitch;
    int32_t x = 0, first = -p->pad_left;
    for (; x < p->out_w && first < 0; x++, first += stride, out += pitch) {
        *out = window(w, scale, rounding, any(s, first), any(s, first + 1), any(s, first + 2));
    }
    int32_t whole = first + 2 < s->width ? (s->width - 3 - first) / stride + 1 : 0;
    whole = whole < p->out_w - x ? whole : p->out_w - x;
    if (whole > 0) {
        ptrdiff_t at = (ptrdiff_t)first * pitch;
        const int8_t *end = out + (ptrdiff_t)whole * pitch;
        x += whole;
        first += whole * stride;
        if (stride == 1) {
            column_t a = inside(s, at), b = inside(s, at + pitch);
            at += 2 * pitch;
            for (; out < end; out += pitch, at += pitch) {
                const column_t c = inside(s, at);
                *out = window(w, scale, rounding, a, b, c);
                a = b;
                b = c;
            }
        } else {
            const ptrdiff_t skip = (ptrdiff_t)stride * pitch;
            for (; out < end; out += pitch, at += skip) {
                *out = window(w, scale, rounding, inside(s, at), inside(s, at + pitch), inside(s, at + 2 * pitch));
            }
        }
    }
    for (; x < p->out_w; x++, first += stride, out += pitch) {
        *out = window(w, scale, rounding, any(s, first), any(s, first + 1), any(s, first + 2));
    }
}

/* Bytes of `upper` and `middle` that belong to each row, and of `lower`. */
static const uint32_t UPPER_OF_ROW[3] = {0x0000FFFFu, 0xFFFF0000u, 0};
static const uint32_t MIDDLE_OF_ROW[3] = {0x000000FFu, 0x00FF0000u, 0xFF00FF00u};
static const uint32_t LOWER_OF_ROW[3] = {0, 0, 0x000000FFu};

#define ONES 0x00010001u

/* Twice the sum of all weights. */
static int32_t twice_sum(const taps_t *w) {
    uint32_t sum = arenite_smlad(w->left, ONES, 0);
    sum = arenite_smlad(w->centre, ONES, sum);
    sum = arenite_smlad(w->right, ONES, sum);
    sum = arenite_smlad(w->low, ONES, sum);
    return (int32_t)arenite_smlabb(w->corner, ONES, sum);
}

/* Two int16 in one word times two. */
static inline uint32_t twice(uint32_t pair) { return (pair << 1) & 0xFFFEFFFFu; }

static taps_t taps(uint32_t upper, uint32_t middle, uint32_t lower) {
    const taps_t w = {twice(arenite_sxtb16(upper)), twice(arenite_sxtb16_ror8(upper)),
                      twice(arenite_sxtb16(middle)), twice(arenite_sxtb16_ror8(middle)),
                      twice(arenite_sxtb16(lower))};
    return w;
}

void arenite_depthwise_conv_2d_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out,
                                      int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const arenite_dsp_depthwise_t *channel = (const arenite_dsp_depthwise_t *)(const void *)p->weights;
    uint32_t upper = 0, middle = 0, lower = 0;
    const int8_t *there = NULL;
    (void)step;
    (void)scratch;
    for (int32_t i = 0; i < 3; i++) {
        if (rows[i] != NULL) {
            upper |= UPPER_OF_ROW[i];
            middle |= MIDDLE_OF_ROW[i];
            lower |= LOWER_OF_ROW[i];
            there = rows[i];
        }
    }
    const int32_t missing = rows[0] == NULL || rows[1] == NULL || rows[2] == NULL;
    for (int32_t c = 0; c < p->in_c; c++, channel++) {
        source_t s = {{NULL, NULL, NULL}, there == NULL ? 0 : p->in_w, p->in_c, p->in_zero_point};
        for (int32_t i = 0; i < 3 && there != NULL; i++) {
            s.rows[i] = (rows[i] == NULL ? there : rows[i]) + c;
        }
        arenite_dsp_channel_t scale = channel->scale;
        taps_t w = taps(channel->upper, channel->middle, channel->lower);
        if (missing && there != NULL) {
            const taps_t out_of = taps(channel->upper & ~upper, channel->middle & ~middle, channel->lower & ~lower);
            scale.twice_bias += p->in_zero_point * twice_sum(&out_of);
            w = taps(channel->upper & upper, channel->middle & middle, channel->lower & lower);
        }
        channel_row(p, &s, &w, &scale, out + c);
    }
    arenite_dsp_clamp(out, p->out_w * p->in_c, p->act_min, p->act_max);
}
