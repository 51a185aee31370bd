/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_dsp_taps.h"

#include <stddef.h>

#include "arenite_dsp.h"
#include "arenite_dsp_clamp.h"

#define LANES 4
#define GROUP_BYTES 8

/* Sums of two taps at a time, up to a pair of NULL, of four channels that start at `offset` behind each tap. Returns the
 * weights behind. */
static const int8_t *sum(const int8_t *const *taps, ptrdiff_t offset, const int8_t *weights, uint32_t *acc) {
    uint32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0;
#if ARENITE_HAS_DSP
    uint32_t x, y, low_x, low_y, w;
    __asm__ volatile("1:\n\t"
                     "ldrd %[x], %[y], [%[taps]], #8\n\t"
                     "cbz %[x], 2f\n\t"
                     "ldr %[x], [%[x], %[offset]]\n\t"
                     "ldr %[y], [%[y], %[offset]]\n\t"
                     "sxtb16 %[low_x], %[x]\n\t"
                     "sxtb16 %[w], %[y]\n\t"
                     "pkhtb %[low_y], %[w], %[low_x], asr #16\n\t"
                     "pkhbt %[low_x], %[low_x], %[w], lsl #16\n\t"
                     "ldr %[w], [%[weights]], #4\n\t"
                     "sxtb16 %[x], %[x], ror #8\n\t"
                     "sxtb16 %[y], %[y], ror #8\n\t"
                     "sxtb16 r12, %[w]\n\t"
                     "smlad %[a0], %[low_x], r12, %[a0]\n\t"
                     "sxtb16 %[w], %[w], ror #8\n\t"
                     "smlad %[a2], %[low_y], %[w], %[a2]\n\t"
                     "ldr %[w], [%[weights]], #4\n\t"
                     "pkhtb %[low_y], %[y], %[x], asr #16\n\t"
                     "pkhbt %[low_x], %[x], %[y], lsl #16\n\t"
                     "sxtb16 r12, %[w]\n\t"
                     "smlad %[a1], %[low_x], r12, %[a1]\n\t"
                     "sxtb16 %[w], %[w], ror #8\n\t"
                     "smlad %[a3], %[low_y], %[w], %[a3]\n\t"
                     "b 1b\n"
                     "2:\n\t"
                     : [a0] "+&r"(a0), [a1] "+&r"(a1), [a2] "+&r"(a2), [a3] "+&r"(a3), [taps] "+&r"(taps),
                       [weights] "+&r"(weights), [x] "=&l"(x), [y] "=&r"(y), [low_x] "=&r"(low_x),
                       [low_y] "=&r"(low_y), [w] "=&r"(w)
                     : [offset] "r"(offset)
                     : "r12", "memory");
#else
    for (; *taps != NULL; taps += 2, weights += GROUP_BYTES) {
        const uint32_t left = arenite_dsp_load(taps[0] + offset), right = arenite_dsp_load(taps[1] + offset);
        const uint32_t even = arenite_dsp_load(weights), odd = arenite_dsp_load(weights + 4);
        uint32_t x = arenite_sxtb16(left), y = arenite_sxtb16(right);
        a0 = arenite_smlad(arenite_pkhbt(x, y), arenite_sxtb16(even), a0);
        a2 = arenite_smlad(arenite_pkhtb(y, x), arenite_sxtb16_ror8(even), a2);
        x = arenite_sxtb16_ror8(left);
        y = arenite_sxtb16_ror8(right);
        a1 = arenite_smlad(arenite_pkhbt(x, y), arenite_sxtb16(odd), a1);
        a3 = arenite_smlad(arenite_pkhtb(y, x), arenite_sxtb16_ror8(odd), a3);
    }
#endif
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

/* Where each tap of an output pixel lies, in pairs, and a pair of NULL behind. Returns their number, rounded up to two. */
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
    if (count & 1) {
        taps[count++] = outside;
    }
    taps[count] = NULL;
    taps[count + 1] = NULL;
    return count;
}

/* The channels that do not fill a word: their bytes are read one by one. */
static void copy_rest(const int8_t **taps, int32_t count, int32_t channel, int32_t channels,
                      uint32_t *words) {
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
    const int8_t *taps[ARENITE_DSP_DEPTHWISE_TAPS + 2];
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
            weights = sum(taps, c, weights, acc);
            finish(acc, channel, point, LANES, to + c);
        }
        if (c < p->in_c) {
            copy_rest(taps, count, c, p->in_c, words);
            sum(taps, 0, weights, acc);
            finish(acc, channel, point, p->in_c - c, to + c);
        }
    }
    arenite_dsp_clamp(out, p->out_w * p->in_c, p->act_min, p->act_max);
}
