/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_dsp.h"

#include <stddef.h>

#include "arenite_dsp.h"

/* Four bytes of both windows: {0, 2} and {1, 3} of the first, then of the second. */
#define GROUP_WORDS 4
#define GROUPS (ARENITE_DSP_TAPS / 4)

/* Sums of two channels for the windows a and b: of the channel whose weights are the low bytes, and mixed with 256 times
 * those of the other. */
typedef struct {
    uint32_t low_a;
    uint32_t low_b;
    uint32_t mixed_a;
    uint32_t mixed_b;
} sums_t;

/* Bytes of the instructions for one group below. */
#define GROUP_CODE 48
#define UNROLLED 4

/* Returns the weights of the next two channels. */
static inline const int8_t *multiply(const uint32_t *windows, const int8_t *weights, int32_t groups,
                                     sums_t *sums) {
    uint32_t la = 0, lb = 0, ma = 0, mb = 0;
    const uint32_t *end = windows + groups * GROUP_WORDS;
#if ARENITE_HAS_DSP
    /* The first turn starts so far in that the others are whole. */
    uint32_t u = (uint32_t)(-groups & (UNROLLED - 1)) * GROUP_CODE, v;
#define GROUP                                                                                                \
    "ldmia.w %[x]!, {r0, r1, r2, r3}\n\t"                                                                    \
    "ldrd %[u], %[v], [%[w]], #8\n\t"                                                                        \
    "smlad %[ma], %[u], r0, %[ma]\n\t"                                                                       \
    "smlad %[mb], %[u], r2, %[mb]\n\t"                                                                       \
    "sxtb16.w %[u], %[u]\n\t"                                                                                \
    "smlad %[la], %[u], r0, %[la]\n\t"                                                                       \
    "smlad %[lb], %[u], r2, %[lb]\n\t"                                                                       \
    "smlad %[ma], %[v], r1, %[ma]\n\t"                                                                       \
    "smlad %[mb], %[v], r3, %[mb]\n\t"                                                                       \
    "sxtb16.w %[v], %[v]\n\t"                                                                                \
    "smlad %[la], %[v], r1, %[la]\n\t"                                                                       \
    "smlad %[lb], %[v], r3, %[lb]\n\t"
    __asm__ volatile("adr.w r0, 1f\n\t"
                     "add r0, r0, %[u]\n\t"
                     "mov pc, r0\n\t"
                     ".p2align 2\n"
                     "1:\n\t" GROUP GROUP GROUP GROUP "cmp %[x], %[end]\n\t"
                     "bne 1b\n\t"
                     : [la] "+r"(la), [lb] "+r"(lb), [ma] "+r"(ma), [mb] "+r"(mb), [x] "+r"(windows),
                       [w] "+r"(weights), [u] "+r"(u), [v] "=&r"(v)
                     : [end] "r"(end)
                     : "r0", "r1", "r2", "r3", "cc", "memory");
#undef GROUP
#else
    for (; windows < end; windows += GROUP_WORDS, weights += 8) {
        for (int32_t half = 0; half < 2; half++) {
            const uint32_t mixed = arenite_dsp_load(weights + 4 * half), low = arenite_sxtb16(mixed);
            ma = arenite_smlad(mixed, windows[half], ma);
            mb = arenite_smlad(mixed, windows[2 + half], mb);
            la = arenite_smlad(low, windows[half], la);
            lb = arenite_smlad(low, windows[2 + half], lb);
        }
    }
#endif
    sums->low_a = la;
    sums->low_b = lb;
    sums->mixed_a = ma;
    sums->mixed_b = mb;
    return weights;
}

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
static void finish(const arenite_conv_2d_s8_t *p, const uint32_t *windows, int32_t groups, int8_t *out_a,
                   int8_t *out_b) {
    const int8_t *weights = p->weights;
    const arenite_dsp_channel_t *channel = (const arenite_dsp_channel_t *)(const void *)p->bias;
    for (int32_t left = p->out_c; left > 0; left -= 2, channel += 2, out_a += 2, out_b += 2) {
        sums_t sums;
        weights = multiply(windows, weights, groups, &sums);
        int32_t rounding = arenite_dsp_rounding(p->out_zero_point, channel[0].shift);
        const int32_t bias = channel[0].twice_bias;
        out_b[0] = arenite_dsp_byte((int32_t)((uint32_t)bias + 2u * sums.low_b), &channel[0], rounding);
        out_a[0] = arenite_dsp_byte((int32_t)((uint32_t)bias + 2u * sums.low_a), &channel[0], rounding);
        if (left == 1) {
            break;
        }
        rounding = arenite_dsp_rounding(p->out_zero_point, channel[1].shift);
        const int32_t high_a = (int32_t)(sums.mixed_a - sums.low_a) >> 7;
        const int32_t high_b = (int32_t)(sums.mixed_b - sums.low_b) >> 7;
        out_b[1] = arenite_dsp_byte(channel[1].twice_bias + high_b, &channel[1], rounding);
        out_a[1] = arenite_dsp_byte(channel[1].twice_bias + high_a, &channel[1], rounding);
    }
}

void arenite_conv_2d_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t taps = p->kernel_h * p->kernel_w * p->in_c, groups = (taps + 3) / 4;
    uint32_t windows[GROUPS * GROUP_WORDS];
    int8_t bytes[ARENITE_DSP_TAPS];
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
        finish(p, windows, groups, to, other);
    }
    arenite_dsp_clamp(out, p->out_w * p->out_c, p->act_min, p->act_max);
}
