/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_dsp_taps.h"

#include <stddef.h>

#include "arenite_dsp.h"
#include "arenite_dsp_clamp.h"

#define LANES 4

/* In line it would spill the registers of its caller, and be there more than once. */
#define APART __attribute__((noinline))

/* One pixel, and what all its channels need. The assembly below knows the offsets. */
typedef struct {
    const int8_t *const *taps;            /* up to one of NULL; a last pointer behind it is read, not used */
    uint32_t odd;                         /* whether their number is */
    uint32_t zeros[LANES];                /* 8 */
    int8_t *out;                          /* 24 */
    const arenite_dsp_channel_t *channel; /* 28 */
    int32_t point;                        /* 32: 2 * out_zero_point + 1 */
    const int8_t *end;                    /* 36 */
} pass_t;

/* Writes the channels from out to end, a multiple of LANES. The first one's bytes are those that the taps point at. Returns
 * the weights behind. */
#if ARENITE_HAS_DSP

/* r4 to r7: sums of the four channels. */
#define TAP(bytes, weights)                                                                                  \
    "sxtb16 r8, " bytes "\n\t"                                                                               \
    "sxtb16 r11, " weights "\n\t"                                                                            \
    "smlabb r4, r8, r11, r4\n\t"                                                                             \
    "smlatt r6, r8, r11, r6\n\t"                                                                             \
    "sxtb16 " bytes ", " bytes ", ror #8\n\t"                                                                \
    "sxtb16 " weights ", " weights ", ror #8\n\t"                                                            \
    "smlabb r5, " bytes ", " weights ", r5\n\t"                                                              \
    "smlatt r7, " bytes ", " weights ", r7\n\t"
#define CHANNEL(sum)                                                                                         \
    ARENITE_DSP_NEXT_CHANNEL "add " sum ", r0, " sum ", lsl #1\n\t" ARENITE_DSP_REQUANTISE(sum)

static APART const int8_t *channels(pass_t *pass, const int8_t *weights) {
    register const int8_t *w __asm__("r9") = weights;
    register pass_t *self __asm__("r12") = pass;
    register uint32_t offset __asm__("r14") = 0;
    __asm__ volatile("0:\n\t"
                     "ldmia r12, {r0, r1, r4, r5, r6, r7}\n\t"
                     "cbz r1, 1f\n\t"
                     "ldr r1, [r0], #4\n\t"
                     "ldr r2, [r9], #4\n\t"
                     "ldr r1, [r1, r14]\n\t" TAP(
                         "r1", "r2") "1:\n\t"
                                     "ldrd r1, r10, [r0], #8\n\t"
                                     "cbz r1, 2f\n\t"
                                     "ldr r1, [r1, r14]\n\t"
                                     "ldr r10, [r10, r14]\n\t"
                                     "ldmia r9!, {r2, r3}\n\t" TAP("r1", "r2")
                                         TAP("r10", "r3") "b 1b\n"
                                                          "2:\n\t"
                                                          "ldrd r8, r10, [r12, #24]\n\t"
                                                          "ldr r11, [r12, #32]\n\t" CHANNEL("r4")
                                                              CHANNEL("r5") CHANNEL("r6")
                                                                  CHANNEL("r7") "strd r8, r10, [r12, #24]\n\t"
                                                                                "ldr r0, [r12, #36]\n\t"
                                                                                "add r14, r14, #4\n\t"
                                                                                "cmp r8, r0\n\t"
                                                                                "bne 0b\n\t"
                     : "+r"(w), "+r"(offset)
                     : "r"(self)
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r10", "r11", "cc", "memory");
    return w;
}

#undef TAP
#undef CHANNEL

#else

static APART const int8_t *channels(pass_t *pass, const int8_t *weights) {
    for (ptrdiff_t offset = 0; pass->out < pass->end; offset += LANES, pass->channel += LANES) {
        uint32_t acc[LANES] = {0, 0, 0, 0};
        for (const int8_t *const *tap = pass->taps; *tap != NULL; tap++, weights += LANES) {
            const uint32_t x = arenite_dsp_load(*tap + offset), w = arenite_dsp_load(weights);
            const uint32_t even_x = arenite_sxtb16(x), even_w = arenite_sxtb16(w);
            const uint32_t odd_x = arenite_sxtb16_ror8(x), odd_w = arenite_sxtb16_ror8(w);
            acc[0] = arenite_smlabb(even_x, even_w, acc[0]);
            acc[1] = arenite_smlabb(odd_x, odd_w, acc[1]);
            acc[2] = arenite_smlabb(even_x >> 16, even_w >> 16, acc[2]);
            acc[3] = arenite_smlabb(odd_x >> 16, odd_w >> 16, acc[3]);
        }
        for (int32_t i = 0; i < LANES; i++) {
            const arenite_dsp_channel_t *channel = pass->channel + i;
            const int32_t twice = (int32_t)((uint32_t)channel->twice_bias + 2u * acc[i]);
            *pass->out++ = arenite_dsp_byte(twice, channel, arenite_shift_left(pass->point, channel->shift));
        }
    }
    return weights;
}

#endif

/* Where each tap of an output pixel lies, and two of NULL behind. */
static APART void find_taps(const arenite_depthwise_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                            const int8_t *outside, const int8_t **taps) {
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int inside = rows[ky] != NULL && x >= 0 && x < p->in_w;
            *taps++ = inside ? rows[ky] + (ptrdiff_t)x * p->in_c : outside;
        }
    }
    taps[0] = NULL;
    taps[1] = NULL;
}

/* The channels that do not fill a word: their bytes are read one by one. */
static APART void copy_rest(const int8_t **taps, int32_t channel, int32_t channels, uint32_t *words) {
    for (; *taps != NULL; taps++, words++) {
        int8_t *bytes = (int8_t *)words;
        for (int32_t c = channel; c < channels; c++) {
            bytes[c - channel] = (*taps)[c];
        }
        *taps = bytes;
    }
}

static void pixel(const arenite_depthwise_conv_2d_s8_t *p, pass_t *pass, const int8_t **taps, int8_t *out) {
    const int32_t whole = p->in_c & ~(LANES - 1);
    const int8_t *weights = p->weights;
    pass->channel = (const arenite_dsp_channel_t *)(const void *)p->bias;
    if (whole > 0) {
        pass->out = out;
        pass->end = out + whole;
        weights = channels(pass, weights);
    }
    if (p->in_c > whole) {
        uint32_t words[ARENITE_DSP_DEPTHWISE_TAPS];
        int8_t last[LANES];
        copy_rest(taps, whole, p->in_c, words);
        pass->out = last;
        pass->end = last + LANES;
        channels(pass, weights);
        for (int32_t i = whole; i < p->in_c; i++) {
            out[i] = last[i - whole];
        }
    }
}

void arenite_depthwise_conv_2d_s8_dsp_taps(const void *params, const int8_t *const *rows, int8_t *out,
                                           int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const uint32_t blocks = ((uint32_t)p->in_c + LANES - 1) / LANES;
    const int32_t count = p->kernel_h * p->kernel_w;
    const int8_t *outside = p->weights + blocks * (uint32_t)count * LANES;
    const int8_t *taps[ARENITE_DSP_DEPTHWISE_TAPS + 2];
    pass_t pass;
    (void)step;
    (void)scratch;
    pass.taps = taps;
    pass.odd = count & 1;
    pass.zeros[0] = pass.zeros[1] = pass.zeros[2] = pass.zeros[3] = 0;
    pass.point = 2 * p->out_zero_point + 1;
    for (int32_t x = 0; x < p->out_w; x++) {
        find_taps(p, rows, x * p->stride_w - p->pad_left, outside, taps);
        pixel(p, &pass, taps, out + (ptrdiff_t)x * p->in_c);
    }
    arenite_dsp_clamp(out, p->out_w * p->in_c, p->act_min, p->act_max);
}
