/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_dsp_rows.h"

#include <stddef.h>

#include "arenite_dsp.h"
#include "arenite_dsp_clamp.h"

/* Channels at once, and their bytes of weights for four bytes of input. */
#define LANES 4
#define GROUP_BYTES 16

/* A part of a window that lies in one piece: a multiple of four bytes. The assembly below knows the offsets. */
typedef struct {
    const int8_t *begin;
    uint32_t skipped; /* 4: bytes of code that its first turn leaves out, so that the others are whole */
    const int8_t *end;
} piece_t;

/* One pixel, and what all its channels need. */
typedef struct {
    uint32_t zeros[4];
    const piece_t *piece;                 /* 16 */
    const arenite_dsp_channel_t *channel; /* 20 */
    int32_t point;                        /* 24: 2 * out_zero_point + 1 */
    int8_t *out;                          /* 28 */
    const int8_t *end;                    /* 32 */
    const piece_t *last;                  /* 36: behind the last piece */
    const piece_t *first;                 /* 40 */
} pass_t;

/* Bytes of the instructions for one group below. */
#define GROUP_CODE 64
#define UNROLLED 4

/* Writes the channels from out to end, a multiple of LANES. Returns the weights behind. */
#if ARENITE_HAS_DSP

/* r4, r5: sums of the channels whose weights are the low bytes; r6, r7: mixed sums. */
#define PAIR(first, second, low, mixed)                                                                      \
    "smlad " mixed ", " first ", r10, " mixed "\n\t"                                                         \
    "sxtb16 " first ", " first "\n\t"                                                                        \
    "smlad " low ", " first ", r10, " low "\n\t"                                                             \
    "smlad " mixed ", " second ", r11, " mixed "\n\t"                                                        \
    "sxtb16 " second ", " second "\n\t"                                                                      \
    "smlad " low ", " second ", r11, " low "\n\t"
#define GROUP                                                                                                \
    "ldr.w r10, [r8], #4\n\t"                                                                                \
    "ldmia.w r9!, {r0, r1, r2, r3}\n\t"                                                                      \
    "sxtb16 r11, r10, ror #8\n\t"                                                                            \
    "sxtb16 r10, r10\n\t" PAIR("r0", "r1", "r4", "r6") PAIR("r2", "r3", "r5", "r7")
/* The next channel's bias, multiplier and shift in r0, r1 and r2; then arenite_dsp_byte of a sum with its bias. */
#define NEXT_CHANNEL                                                                                         \
    "ldmia r10!, {r0, r1, r2}\n\t"                                                                           \
    "lsl r3, r11, r2\n\t"
#define REQUANTISE(sum)                                                                                      \
    "add r3, r3, " sum ", asr #31\n\t"                                                                       \
    "smmlar " sum ", " sum ", r1, r3\n\t"                                                                    \
    "asr " sum ", " sum ", r2\n\t"                                                                           \
    "ssat " sum ", #8, " sum ", asr #1\n\t"                                                                  \
    "strb " sum ", [r8], #1\n\t"
#define TWO_CHANNELS(low, mixed)                                                                             \
    "sub " mixed ", " mixed ", " low "\n\t" NEXT_CHANNEL "add " low ", r0, " low                             \
    ", lsl #1\n\t" REQUANTISE(low) NEXT_CHANNEL "add " mixed ", r0, " mixed ", asr #7\n\t" REQUANTISE(mixed)

static const int8_t *channels(pass_t *pass, const int8_t *weights) {
    register const int8_t *w __asm__("r9") = weights;
    register pass_t *self __asm__("r12") = pass;
    __asm__ volatile("0:\n\t"
                     "ldmia r12, {r4, r5, r6, r7}\n\t"
                     "ldr r0, [r12, #40]\n"
                     "1:\n\t"
                     "ldmia r0!, {r8, r10, r14}\n\t"
                     "adr.w r1, 2f\n\t"
                     "add r1, r1, r10\n\t"
                     "str r0, [r12, #16]\n\t"
                     "mov pc, r1\n\t"
                     ".p2align 2\n"
                     "2:\n\t" GROUP GROUP GROUP GROUP "cmp r8, r14\n\t"
                     "bne 2b\n\t"
                     "ldr r0, [r12, #16]\n\t"
                     "ldr r1, [r12, #36]\n\t"
                     "cmp r0, r1\n\t"
                     "bne 1b\n\t"
                     "ldr r8, [r12, #28]\n\t"
                     "ldrd r10, r11, [r12, #20]\n\t" TWO_CHANNELS("r4", "r6")
                         TWO_CHANNELS("r5", "r7") "str r10, [r12, #20]\n\t"
                                                  "ldr r0, [r12, #32]\n\t"
                                                  "str r8, [r12, #28]\n\t"
                                                  "cmp r8, r0\n\t"
                                                  "bne 0b\n\t"
                     : "+r"(w)
                     : "r"(self)
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r10", "r11", "r14", "cc",
                       "memory");
    return w;
}

#undef PAIR
#undef GROUP
#undef NEXT_CHANNEL
#undef REQUANTISE
#undef TWO_CHANNELS

#else

static const int8_t *channels(pass_t *pass, const int8_t *weights) {
    for (; pass->out < pass->end; pass->out += LANES, pass->channel += LANES) {
        uint32_t low[2] = {0, 0}, mixed[2] = {0, 0};
        for (const piece_t *piece = pass->first; piece < pass->last; piece++) {
            for (const int8_t *from = piece->begin; from < piece->end; from += 4) {
                const uint32_t word = arenite_dsp_load(from);
                const uint32_t x[2] = {arenite_sxtb16(word), arenite_sxtb16_ror8(word)};
                for (int32_t i = 0; i < LANES; i++, weights += 4) {
                    const uint32_t both = arenite_dsp_load(weights);
                    mixed[i / 2] = arenite_smlad(both, x[i % 2], mixed[i / 2]);
                    low[i / 2] = arenite_smlad(arenite_sxtb16(both), x[i % 2], low[i / 2]);
                }
            }
        }
        for (int32_t pair = 0; pair < LANES / 2; pair++) {
            arenite_dsp_pair(low[pair], mixed[pair], pass->channel + 2 * pair, pass->point,
                             pass->out + 2 * pair);
        }
    }
    return weights;
}

#endif

static piece_t *add_piece(piece_t *piece, const int8_t *begin, int32_t count) {
    piece->begin = begin;
    piece->skipped = (uint32_t)(-(count / 4) & (UNROLLED - 1)) * GROUP_CODE;
    piece->end = begin + count;
    return piece + 1;
}

/* A window of one pixel: its whole words, and the rest with zeros behind. */
static piece_t *of_pixel(piece_t *pieces, const int8_t *pixel, int32_t count, int8_t *tail) {
    const int32_t rest = count & 3, whole = count - rest;
    if (whole > 0) {
        pieces = add_piece(pieces, pixel, whole);
    }
    if (rest > 0) {
        for (int32_t i = 0; i < 4; i++) {
            tail[i] = i < rest ? pixel[whole + i] : (int8_t)0;
        }
        pieces = add_piece(pieces, tail, 4);
    }
    return pieces;
}

/* A window of several pixels, some of which may lie outside. */
static piece_t *of_window(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                          const int8_t *outside, piece_t *pieces) {
    const int run = p->dilation_w == 1 && first >= 0 && first + p->kernel_w <= p->in_w;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *row = rows[ky];
        if (row != NULL && run) {
            pieces = add_piece(pieces, row + (ptrdiff_t)first * p->in_c, p->kernel_w * p->in_c);
            continue;
        }
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int is_inside = row != NULL && x >= 0 && x < p->in_w;
            pieces = add_piece(pieces, is_inside ? row + (ptrdiff_t)x * p->in_c : outside, p->in_c);
        }
    }
    return pieces;
}

static void pixel(const arenite_conv_2d_s8_t *p, pass_t *pass, int8_t *out) {
    const int32_t whole = p->out_c - p->out_c % LANES;
    const int8_t *weights = p->weights;
    pass->channel = (const arenite_dsp_channel_t *)(const void *)p->bias;
    if (whole > 0) {
        pass->out = out;
        pass->end = out + whole;
        weights = channels(pass, weights);
    }
    if (p->out_c > whole) {
        int8_t last[LANES];
        pass->out = last;
        pass->end = last + LANES;
        channels(pass, weights);
        for (int32_t i = whole; i < p->out_c; i++) {
            out[i] = last[i - whole];
        }
    }
}

void arenite_conv_2d_s8_dsp_rows(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t taps = p->kernel_h * p->kernel_w * p->in_c;
    const int32_t blocks = (p->out_c + LANES - 1) / LANES;
    const int8_t *outside = p->weights + (ptrdiff_t)blocks * ((taps + 3) / 4) * GROUP_BYTES;
    piece_t pieces[ARENITE_DSP_PIECES];
    pass_t pass = {.first = pieces, .point = 2 * p->out_zero_point + 1};
    int32_t tail;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w; x++) {
        const int32_t first = x * p->stride_w - p->pad_left;
        if (taps == p->in_c) {
            const int is_inside = rows[0] != NULL && first >= 0 && first < p->in_w;
            const int8_t *from = is_inside ? rows[0] + (ptrdiff_t)first * p->in_c : outside;
            pass.last = of_pixel(pieces, from, taps, (int8_t *)&tail);
        } else {
            pass.last = of_window(p, rows, first, outside, pieces);
        }
        pixel(p, &pass, out + (ptrdiff_t)x * p->out_c);
    }
    arenite_dsp_clamp(out, p->out_w * p->out_c, p->act_min, p->act_max);
}
