/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_dsp_rows.h"

#include <stddef.h>

#include "arenite_dsp.h"

/* Channels at once, and their bytes of weights for four bytes of input. */
#define LANES 4
#define GROUP_BYTES 16

/* Sums of two pairs of channels: of the one whose weights are the low bytes, and mixed with 256 times the other's. */
typedef struct {
    uint32_t low[2];
    uint32_t mixed[2];
} sums_t;

/* Bytes of the instructions for one group below. */
#define GROUP_CODE 64
#define UNROLLED 4

/* Adds a run of 4 * groups bytes, groups > 0. Returns the weights of what follows. */
static inline const int8_t *multiply(const int8_t *run, const int8_t *weights, int32_t groups, sums_t *sums) {
    uint32_t l0 = sums->low[0], l1 = sums->low[1], m0 = sums->mixed[0], m1 = sums->mixed[1];
    const int8_t *end = run + groups * 4;
#if ARENITE_HAS_DSP
    /* The first turn starts so far in that the others are whole. */
    uint32_t u = (uint32_t)(-groups & (UNROLLED - 1)) * GROUP_CODE, v;
#define PAIR(first, second, low, mixed)                                                                      \
    "smlad %[" mixed "], " first ", %[u], %[" mixed "]\n\t"                                                  \
    "sxtb16.w " first ", " first "\n\t"                                                                      \
    "smlad %[" low "], " first ", %[u], %[" low "]\n\t"                                                      \
    "smlad %[" mixed "], " second ", %[v], %[" mixed "]\n\t"                                                 \
    "sxtb16.w " second ", " second "\n\t"                                                                    \
    "smlad %[" low "], " second ", %[v], %[" low "]\n\t"
#define GROUP                                                                                                \
    "ldr.w %[u], [%[x]], #4\n\t"                                                                             \
    "ldmia.w %[w]!, {r0, r1, r2, r3}\n\t"                                                                    \
    "sxtb16.w %[v], %[u], ror #8\n\t"                                                                        \
    "sxtb16.w %[u], %[u]\n\t" PAIR("r0", "r1", "l0", "m0") PAIR("r2", "r3", "l1", "m1")
    __asm__ volatile("adr.w r0, 1f\n\t"
                     "add r0, r0, %[u]\n\t"
                     "mov pc, r0\n\t"
                     ".p2align 2\n"
                     "1:\n\t" GROUP GROUP GROUP GROUP "cmp %[x], %[end]\n\t"
                     "bne 1b\n\t"
                     : [l0] "+r"(l0), [l1] "+r"(l1), [m0] "+r"(m0), [m1] "+r"(m1), [x] "+r"(run),
                       [w] "+r"(weights), [u] "+r"(u), [v] "=&r"(v)
                     : [end] "r"(end)
                     : "r0", "r1", "r2", "r3", "cc", "memory");
#undef GROUP
#undef PAIR
#else
    for (; run < end; run += 4) {
        const uint32_t word = arenite_dsp_load(run);
        const uint32_t x[2] = {arenite_sxtb16(word), arenite_sxtb16_ror8(word)};
        for (int32_t half = 0; half < 2; half++, weights += 4) {
            const uint32_t mixed = arenite_dsp_load(weights);
            m0 = arenite_smlad(mixed, x[half], m0);
            l0 = arenite_smlad(arenite_sxtb16(mixed), x[half], l0);
        }
        for (int32_t half = 0; half < 2; half++, weights += 4) {
            const uint32_t mixed = arenite_dsp_load(weights);
            m1 = arenite_smlad(mixed, x[half], m1);
            l1 = arenite_smlad(arenite_sxtb16(mixed), x[half], l1);
        }
    }
#endif
    sums->low[0] = l0;
    sums->low[1] = l1;
    sums->mixed[0] = m0;
    sums->mixed[1] = m1;
    return weights;
}

/* The same for any number of bytes. */
static inline const int8_t *multiply_run(const int8_t *run, const int8_t *weights, int32_t count,
                                         sums_t *sums) {
    if (count >= 4) {
        weights = multiply(run, weights, count / 4, sums);
    }
    if (count % 4) {
        int8_t tail[4] = {0, 0, 0, 0};
        for (int32_t i = 0; i < count % 4; i++) {
            tail[i] = run[(count & ~3) + i];
        }
        weights = multiply(tail, weights, 1, sums);
    }
    return weights;
}

/* A window of which a part may lie outside the input. */
static const int8_t *multiply_window(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                                     const int8_t *weights, const int8_t *outside, sums_t *sums) {
    const int run = p->dilation_w == 1 && first >= 0 && first + p->kernel_w <= p->in_w;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *row = rows[ky];
        if (row != NULL && run) {
            weights = multiply(row + (ptrdiff_t)first * p->in_c, weights, p->kernel_w * p->in_c / 4, sums);
            continue;
        }
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int inside = row != NULL && x >= 0 && x < p->in_w;
            weights = multiply(inside ? row + (ptrdiff_t)x * p->in_c : outside, weights, p->in_c / 4, sums);
        }
    }
    return weights;
}

/* The bytes of LANES channels. */
static void finish(const arenite_conv_2d_s8_t *p, const arenite_dsp_channel_t *channel, const sums_t *sums,
                   int8_t *out) {
    for (int32_t pair = 0; pair < LANES / 2; pair++, channel += 2, out += 2) {
        arenite_dsp_pair(sums->low[pair], sums->mixed[pair], channel, 2 * p->out_zero_point + 1, out);
    }
}

void arenite_conv_2d_s8_dsp_rows(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t taps = p->kernel_h * p->kernel_w * p->in_c;
    const int8_t *outside =
        p->weights + (ptrdiff_t)((p->out_c + LANES - 1) / LANES) * ((taps + 3) / 4) * GROUP_BYTES;
    int8_t *to = out;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w; x++) {
        const int32_t first = x * p->stride_w - p->pad_left;
        const int single = taps == p->in_c && rows[0] != NULL && first >= 0 && first < p->in_w;
        const int8_t *weights = p->weights;
        const arenite_dsp_channel_t *channel = (const arenite_dsp_channel_t *)(const void *)p->bias;
        for (int32_t left = p->out_c; left > 0; left -= LANES, channel += LANES) {
            sums_t sums = {{0, 0}, {0, 0}};
            if (single) {
                weights = multiply_run(rows[0] + (ptrdiff_t)first * p->in_c, weights, taps, &sums);
            } else if (taps == p->in_c) {
                weights = multiply_run(outside, weights, taps, &sums);
            } else {
                weights = multiply_window(p, rows, first, weights, outside, &sums);
            }
            if (left >= LANES) {
                finish(p, channel, &sums, to);
                to += LANES;
                continue;
            }
            int8_t last[LANES];
            finish(p, channel, &sums, last);
            for (int32_t i = 0; i < left; i++) {
                *to++ = last[i];
            }
        }
    }
    arenite_dsp_clamp(out, p->out_w * p->out_c, p->act_min, p->act_max);
}
