/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_dsp.h"

#include <stddef.h>

#include "arenite_dsp.h"
#include "arenite_dsp_clamp.h"

/* Four bytes of both windows: {0, 2} and {1, 3} of the first, then of the second. */
#define GROUP_WORDS 4
#define GROUPS (ARENITE_DSP_TAPS / 4)

/* Two windows, and what all pairs of channels need of them. The assembly below knows the offsets. */
typedef struct {
    uint32_t zeros[4];
    const uint32_t *windows;              /* 16 */
    uint32_t entry;                       /* 20 */
    const arenite_dsp_channel_t *channel; /* 24 */
    int32_t point;                        /* 28: 2 * out_zero_point + 1 */
    int8_t *out_a;                        /* 32 */
    int8_t *out_b;                        /* 36 */
    const int8_t *end_a;                  /* 40 */
} pass_t;

/* Writes the channels from out_a to end_a, an even number, of both pixels, to out_b first. Returns the weights behind. */
#if ARENITE_HAS_DSP

/* Bytes of the instructions for one group. */
#define GROUP_CODE 48
#define UNROLLED 4

/* r4, r5: sums of the low channel for windows a and b; r6, r7: mixed sums. */
#define GROUP                                                                                                \
    "ldmia.w r8!, {r0, r1, r2, r3}\n\t"                                                                      \
    "ldrd r10, r11, [r9], #8\n\t"                                                                            \
    "smlad r6, r10, r0, r6\n\t"                                                                              \
    "smlad r7, r10, r2, r7\n\t"                                                                              \
    "sxtb16 r10, r10\n\t"                                                                                    \
    "smlad r4, r10, r0, r4\n\t"                                                                              \
    "smlad r5, r10, r2, r5\n\t"                                                                              \
    "smlad r6, r11, r1, r6\n\t"                                                                              \
    "smlad r7, r11, r3, r7\n\t"                                                                              \
    "sxtb16 r11, r11\n\t"                                                                                    \
    "smlad r4, r11, r1, r4\n\t"                                                                              \
    "smlad r5, r11, r3, r5\n\t"

/* Sums a and b, complete but for the bias in r0, become bytes: arenite_dsp_byte. */
#define REQUANTISE(a, b)                                                                                     \
    "add r0, r3, " a ", asr #31\n\t"                                                                         \
    "add r3, r3, " b ", asr #31\n\t"                                                                         \
    "smmlar " a ", " a ", r1, r0\n\t"                                                                        \
    "smmlar " b ", " b ", r1, r3\n\t"                                                                        \
    "asr " a ", " a ", r2\n\t"                                                                               \
    "asr " b ", " b ", r2\n\t"                                                                               \
    "ssat " a ", #8, " a ", asr #1\n\t"                                                                      \
    "ssat " b ", #8, " b ", asr #1\n\t"

static const int8_t *channels(pass_t *pass, const int8_t *weights, int32_t groups) {
    register const int8_t *w __asm__("r9") = weights;
    register pass_t *self __asm__("r12") = pass;
    register const uint32_t *end __asm__("r14") = pass->windows + groups * GROUP_WORDS;
    /* The first turn of the loop over groups starts so far in that the others are whole. */
    register uint32_t skipped __asm__("r0") = (uint32_t)(-groups & (UNROLLED - 1)) * GROUP_CODE;
    __asm__ volatile(
        "adr.w r1, 1f\n\t"
        "add r0, r0, r1\n\t"
        "orr r0, r0, #1\n\t"
        "str r0, [r12, #20]\n"
        "0:\n\t"
        "ldmia r12, {r4, r5, r6, r7, r8}\n\t"
        "ldr.w pc, [r12, #20]\n\t"
        ".p2align 2\n"
        "1:\n\t" GROUP GROUP GROUP GROUP "cmp r8, r14\n\t"
        "bne 1b\n\t"
        "ldrd r10, r11, [r12, #24]\n\t"
        "sub r6, r6, r4\n\t"
        "sub r7, r7, r5\n\t"
        "ldmia r10!, {r0, r1, r2}\n\t"
        "lsl r3, r11, r2\n\t"
        "add r4, r0, r4, lsl #1\n\t"
        "add r5, r0, r5, lsl #1\n\t" REQUANTISE("r4", "r5") "ldmia r10!, {r0, r1, r2}\n\t"
                                                            "lsl r3, r11, r2\n\t"
                                                            "add r6, r0, r6, asr #7\n\t"
                                                            "add r7, r0, r7, asr #7\n\t" REQUANTISE(
                                                                "r6", "r7") "str r10, [r12, #24]\n\t"
                                                                            "ldrd r0, r1, [r12, #32]\n\t"
                                                                            "ldr r2, [r12, #40]\n\t"
                                                                            "strb r5, [r1], #1\n\t"
                                                                            "strb r4, [r0], #1\n\t"
                                                                            "strb r7, [r1], #1\n\t"
                                                                            "strb r6, [r0], #1\n\t"
                                                                            "strd r0, r1, [r12, #32]\n\t"
                                                                            "cmp r0, r2\n\t"
                                                                            "bne 0b\n\t"
        : "+r"(w), "+r"(skipped)
        : "r"(self), "r"(end)
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r10", "r11", "cc", "memory");
    return w;
}

#undef GROUP
#undef REQUANTISE

#else

static const int8_t *channels(pass_t *pass, const int8_t *weights, int32_t groups) {
    for (; pass->out_a < pass->end_a; pass->channel += 2, pass->out_a += 2, pass->out_b += 2) {
        uint32_t low[2] = {0, 0}, mixed[2] = {0, 0};
        for (int32_t i = 0; i < groups; i++, weights += 8) {
            for (int32_t pixel = 0; pixel < 2; pixel++) {
                for (int32_t half = 0; half < 2; half++) {
                    const uint32_t word = arenite_dsp_load(weights + 4 * half);
                    const uint32_t x = pass->windows[i * GROUP_WORDS + 2 * pixel + half];
                    mixed[pixel] = arenite_smlad(word, x, mixed[pixel]);
                    low[pixel] = arenite_smlad(arenite_sxtb16(word), x, low[pixel]);
                }
            }
        }
        int8_t *const out[2] = {pass->out_a, pass->out_b};
        for (int32_t pixel = 1; pixel >= 0; pixel--) {
            arenite_dsp_pair(low[pixel], mixed[pixel], pass->channel, pass->point, out[pixel]);
        }
    }
    return weights;
}

#endif

static void copy(int8_t *to, const int8_t *from, int32_t count) {
    for (; count >= 4; count -= 4, to += 4, from += 4) {
        const uint32_t word = arenite_dsp_load(from);
        __builtin_memcpy(to, &word, sizeof word);
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
}

static void fill(int8_t *to, int16_t value, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        to[i] = (int8_t)value;
    }
}

/* The window of the output pixel that starts at input pixel `first`, as one run of bytes. */
static const int8_t *gather(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                            int8_t *bytes) {
    const int32_t span = p->kernel_w * p->in_c;
    const int run = first >= 0 && first + (p->kernel_w - 1) * p->dilation_w < p->in_w &&
                    (p->dilation_w == 1 || p->kernel_w == 1);
    if (run && p->kernel_h == 1 && rows[0] != NULL && span % 4 == 0) {
        return rows[0] + (ptrdiff_t)first * p->in_c;
    }
    int8_t *to = bytes;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *row = rows[ky];
        if (row != NULL && run) {
            copy(to, row + (ptrdiff_t)first * p->in_c, span);
            to += span;
            continue;
        }
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w, to += p->in_c) {
            if (row != NULL && x >= 0 && x < p->in_w) {
                copy(to, row + (ptrdiff_t)x * p->in_c, p->in_c);
            } else {
                fill(to, p->in_zero_point, p->in_c);
            }
        }
    }
    return bytes;
}

/* A window as int16. */
static void widen(const int8_t *bytes, uint32_t *words, int32_t groups) {
    for (int32_t i = 0; i < groups; i++, words += GROUP_WORDS, bytes += 4) {
        const uint32_t word = arenite_dsp_load(bytes);
        words[0] = arenite_sxtb16(word);
        words[1] = arenite_sxtb16_ror8(word);
    }
}

/* All channels of two pixels. A pixel that is not wanted has the place of the other, which is written last. */
static void finish(const arenite_conv_2d_s8_t *p, pass_t *pass, int32_t groups, int8_t *out_a,
                   int8_t *out_b) {
    const int32_t even = p->out_c & ~1;
    const int8_t *weights = p->weights;
    pass->channel = (const arenite_dsp_channel_t *)(const void *)p->bias;
    if (even > 0) {
        pass->out_a = out_a;
        pass->out_b = out_b;
        pass->end_a = out_a + even;
        weights = channels(pass, weights, groups);
    }
    if (p->out_c > even) {
        int8_t last[4];
        pass->out_a = last;
        pass->out_b = last + 2;
        pass->end_a = last + 2;
        channels(pass, weights, groups);
        out_b[even] = last[2];
        out_a[even] = last[0];
    }
}

void arenite_conv_2d_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t taps = p->kernel_h * p->kernel_w * p->in_c, groups = (taps + 3) / 4;
    uint32_t windows[GROUPS * GROUP_WORDS];
    int8_t bytes[ARENITE_DSP_TAPS];
    pass_t pass = {.windows = windows, .point = 2 * p->out_zero_point + 1};
    (void)step;
    (void)scratch;
    fill(bytes, 0, groups * 4);
    int8_t *to = out;
    for (int32_t x = 0; x < p->out_w; x += 2, to += 2 * p->out_c) {
        const int32_t first = x * p->stride_w - p->pad_left;
        widen(gather(p, rows, first, bytes), windows, groups);
        int8_t *other = to;
        if (x + 1 < p->out_w) {
            other += p->out_c;
            widen(gather(p, rows, first + p->stride_w, bytes), windows + 2, groups);
        } else if (x == 0) {
            widen(bytes, windows + 2, groups);
        }
        finish(p, &pass, groups, to, other);
    }
    arenite_dsp_clamp(out, p->out_w * p->out_c, p->act_min, p->act_max);
}
