/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_dsp_taps.h"

#include <stddef.h>

#include "arenite_dsp.h"

#define LANES 4
#define GROUP_BYTES 8

/* Sums of two taps at a time, of four channels that start at `offset` behind each tap. Returns the weights behind. */
static const int8_t *sum(const int8_t *const *taps, int32_t count, ptrdiff_t offset, const int8_t *weights,
                         uint32_t *acc) {
    uint32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    for (const int8_t *const *end = taps + count; taps < end; taps += 2, weights += GROUP_BYTES) {
        const uint32_t first = arenite_dsp_load(taps[0] + offset), second = arenite_dsp_load(taps[1] + offset);
        const uint32_t even = arenite_dsp_load(weights), odd = arenite_dsp_load(weights + 4);
        uint32_t x = arenite_sxtb16(first), y = arenite_sxtb16(second);
        a0 = arenite_smlad(arenite_pkhbt(x, y), arenite_sxtb16(even), a0);
        a2 = arenite_smlad(arenite_pkhtb(y, x), arenite_sxtb16_ror8(even), a2);
        x = arenite_sxtb16_ror8(first);
        y = arenite_sxtb16_ror8(second);
        a1 = arenite_smlad(arenite_pkhbt(x, y), arenite_sxtb16(odd), a1);
        a3 = arenite_smlad(arenite_pkhtb(y, x), arenite_sxtb16_ror8(odd), a3);
    }
    acc[0] = a0;
    acc[1] = a1;
    acc[2] = a2;
    acc[3] = a3;
    return weights;
}

static void finish(const uint32_t *acc, const arenite_dsp_channel_t *channel, int32_t point, int32_t count,
                   int8_t *out) {
    for (int32_t i = 0; i < count; i++, channel++) {
        const int32_t twice = (int32_t)((uint32_t)channel->twice_bias + 2u * acc[i]);
        out[i] = arenite_dsp_byte(twice, channel, arenite_shift_left(point, channel->shift));
    }
}

/* Where each tap of an output pixel lies; returns their number, rounded up to two. */
static int32_t find_taps(const arenite_depthwise_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                         const int8_t *outside, const int8_t **taps) {
    int32_t count = 0;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int inside = rows[ky] != NULL && x >= 0 && x < p->in_w;
            taps[count++] = inside ? rows[ky] + (ptrdiff_t)x * p->in_c : outside;
        }
    }
    taps[count] = outside;
    return (count + 1) & ~1;
}

/* The channels that do not fill a word: their bytes are read one by one. */
static void copy_rest(const int8_t **taps, int32_t count, int32_t channel, int32_t channels, uint32_t *words) {
    for (int32_t t = 0; t < count; t++) {
        int8_t *bytes = (int8_t *)&words[t];
        for (int32_t c = channel; c < channels; c++) {
            bytes[c - channel] = taps[t][c];
        }
        taps[t] = bytes;
    }
}

void arenite_depthwise_conv_2d_s8_dsp_taps(const void *params, const int8_t *const *rows, int8_t *out,
                                           int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const int32_t blocks = (p->in_c + LANES - 1) / LANES, point = 2 * p->out_zero_point + 1;
    const int8_t *outside =
        p->weights + (ptrdiff_t)blocks * ((p->kernel_h * p->kernel_w + 1) / 2) * GROUP_BYTES;
    const int8_t *taps[ARENITE_DSP_DEPTHWISE_TAPS + 1];
    uint32_t words[ARENITE_DSP_DEPTHWISE_TAPS];
    int8_t *to = out;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w; x++, to += p->in_c) {
        const int32_t count = find_taps(p, rows, x * p->stride_w - p->pad_left, outside, taps);
        const int8_t *weights = p->weights;
        const arenite_dsp_channel_t *channel = (const arenite_dsp_channel_t *)(const void *)p->bias;
        uint32_t acc[LANES];
        int32_t c = 0;
        for (; c + LANES <= p->in_c; c += LANES, channel += LANES) {
            weights = sum(taps, count, c, weights, acc);
            finish(acc, channel, point, LANES, to + c);
        }
        if (c < p->in_c) {
            copy_rest(taps, count, c, p->in_c, words);
            sum(taps, count, 0, weights, acc);
            finish(acc, channel, point, p->in_c - c, to + c);
        }
    }
    arenite_dsp_clamp(out, p->out_w * p->in_c, p->act_min, p->act_max);
}
