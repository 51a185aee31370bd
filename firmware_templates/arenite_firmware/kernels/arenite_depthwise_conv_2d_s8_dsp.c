/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_dsp.h"

#include <stddef.h>

#include "arenite_dsp_clamp.h"

/* A channel on its way along a row, and what all channels share. Weights are doubled pairs of int16. The assembly below
 * knows the offsets. */
typedef struct {
    const int8_t *rows[3];                  /* of the first channel */
    int32_t twice_bias;                     /* 12 */
    uint32_t left;                          /* 16: w[0][0], w[1][0] */
    uint32_t centre;                        /* 20: w[0][1], w[1][1] */
    uint32_t right;                         /* 24: w[0][2], w[1][2] */
    uint32_t bottom;                        /* 28: w[2][1], w[2][0] */
    uint32_t corner;                        /* 32: w[2][2] */
    int32_t multiplier;                     /* 36 */
    int32_t shift;                          /* 40 */
    int32_t rounding;                       /* 44 */
    int8_t *out;                            /* 48 */
    int32_t pitch;                          /* 52 */
    int32_t end;                            /* 56 */
    const arenite_dsp_depthwise_t *channel; /* 60 */
    uint32_t outside;                       /* 64: in_zero_point, twice */
    int32_t trailing;                       /* 68: windows whose last column is outside, 0 or 1 */
    int32_t padded;                         /* 72: whether the first window's first column is outside */
    int32_t start;                          /* 76: offset of the first column inside */
    int32_t point;                          /* 80: 2 * out_zero_point + 1 */
    uint32_t there[3];                      /* 84: the bits of the channel's words whose rows are inside */
    int32_t partial;                        /* 96: whether some are not */
    int32_t twice_zero_point;               /* 100 */
    const arenite_dsp_depthwise_t *last;    /* 104: behind the last channel */
} walk_t;

/* A column: the upper two bytes as a pair, and the one below. */
typedef struct {
    uint32_t upper;
    uint32_t lower;
} column_t;

/* Of a row's windows, how many are left of, and how many in, the run of those whose new columns are inside. */
typedef struct {
    int32_t leading; /* -1 if there is no run */
    int32_t whole;
    int32_t width; /* 0 if no row is inside */
} span_t;

static inline column_t inside(const walk_t *walk, int32_t offset) {
    const column_t column = {arenite_pkhbt((uint32_t)walk->rows[0][offset], (uint32_t)walk->rows[1][offset]),
                             (uint32_t)walk->rows[2][offset]};
    return column;
}

static inline column_t any(const walk_t *walk, const span_t *span, int32_t x) {
    if (x >= 0 && x < span->width) {
        return inside(walk, x * walk->pitch);
    }
    const column_t column = {walk->outside, walk->outside};
    return column;
}

static inline int8_t window(const walk_t *walk, column_t a, column_t b, column_t c) {
    uint32_t acc = arenite_smlad(a.upper, walk->left, (uint32_t)walk->twice_bias);
    acc = arenite_smlad(b.upper, walk->centre, acc);
    acc = arenite_smlad(c.upper, walk->right, acc);
    acc = arenite_smlad(arenite_pkhbt(b.lower, a.lower), walk->bottom, acc);
    acc = arenite_smlabb(c.lower, walk->corner, acc);
    const arenite_dsp_channel_t scale = {0, walk->multiplier, walk->shift};
    return arenite_dsp_byte((int32_t)acc, &scale, walk->rounding);
}

/* One window that may reach outside. */
static void single(const walk_t *walk, const span_t *span, int32_t first, int8_t *out) {
    *out = window(walk, any(walk, span, first), any(walk, span, first + 1), any(walk, span, first + 2));
}

/* Sets the weights and the scale of the next channel. A row outside weighs nothing; what it would add goes into the bias. */
static void next_channel(walk_t *walk) {
    const arenite_dsp_depthwise_t *channel = walk->channel++;
    uint32_t words[3], sum = 0;
    for (int32_t i = 0; i < 3; i++) {
        const uint32_t gone = channel->words[i] & ~walk->there[i];
        sum = arenite_smlad(arenite_sxtb16(gone), 0x00010001u, sum);
        sum = arenite_smlad(arenite_sxtb16_ror8(gone), 0x00010001u, sum);
        words[i] = channel->words[i] & walk->there[i];
    }
    walk->left = arenite_twice16(arenite_sxtb16(words[0]));
    walk->centre = arenite_twice16(arenite_sxtb16_ror8(words[0]));
    walk->right = arenite_twice16(arenite_sxtb16(words[1]));
    walk->bottom = arenite_twice16(arenite_sxtb16_ror8(words[1]));
    walk->corner = arenite_twice16(arenite_sxtb16(words[2]));
    walk->twice_bias = channel->scale.twice_bias + walk->twice_zero_point * (int32_t)sum;
    walk->multiplier = channel->scale.multiplier;
    walk->shift = channel->scale.shift;
    walk->rounding = arenite_shift_left(walk->point, walk->shift);
}

#if ARENITE_HAS_DSP

#define ACCUMULATE(a, b, c, sides, below)                                                                    \
    "smlad r1, " a ", r3, r1\n\t"                                                                            \
    "smlad r1, " b ", r4, r1\n\t"                                                                            \
    "smlad r1, " c ", r5, r1\n\t"                                                                            \
    "smlad r1, " sides ", r6, r1\n\t"                                                                        \
    "smlabb r1, " below ", r7, r1\n\t"

/* arenite_dsp_byte of r1, the scale in r2, r3 and r4. */
#define REQUANTISE                                                                                           \
    "add r4, r4, r1, asr #31\n\t"                                                                            \
    "smmlar r1, r1, r2, r4\n\t"                                                                              \
    "asr r1, r1, r3\n\t"                                                                                     \
    "ssat r1, #8, r1, asr #1\n\t"

/* next_channel and a run of windows one pixel apart, for all channels. Columns a and b, upper rows in r9 and r10, lower
 * ones in r11; r8 is the offset of column c in the input and of its window's byte in the output. */
static void all_channels(walk_t *walk) {
    register walk_t *self __asm__("r12") = walk;
    __asm__ volatile("0:\n\t"
                     "ldr r8, [r12, #60]\n\t"
                     "ldmia r8!, {r0, r1, r2, r3, r4, r5}\n\t"
                     "ldr r6, [r12, #96]\n\t"
                     "str r8, [r12, #60]\n\t"
                     "cbz r6, 1f\n\t"
                     "ldrd r6, r7, [r12, #84]\n\t"
                     "ldr r9, [r12, #92]\n\t"
                     "bic r10, r0, r6\n\t"
                     "bic r11, r1, r7\n\t"
                     "bic r14, r2, r9\n\t"
                     "and r0, r0, r6\n\t"
                     "and r1, r1, r7\n\t"
                     "and r2, r2, r9\n\t"
                     "mov r6, #0x00010001\n\t"
                     "sxtb16 r7, r10\n\t"
                     "sxtb16 r10, r10, ror #8\n\t"
                     "smuad r7, r7, r6\n\t"
                     "smlad r7, r10, r6, r7\n\t"
                     "sxtb16 r10, r11\n\t"
                     "sxtb16 r11, r11, ror #8\n\t"
                     "smlad r7, r10, r6, r7\n\t"
                     "smlad r7, r11, r6, r7\n\t"
                     "sxtb16 r14, r14\n\t"
                     "smlad r7, r14, r6, r7\n\t"
                     "ldr r6, [r12, #100]\n\t"
                     "mla r3, r7, r6, r3\n"
                     "1:\n\t"
                     "ldr r6, [r12, #80]\n\t"
                     "strd r4, r5, [r12, #36]\n\t"
                     "lsl r6, r6, r5\n\t"
                     "str r6, [r12, #44]\n\t"
                     "sxtb16 r4, r0\n\t"
                     "sxtb16 r5, r0, ror #8\n\t"
                     "sxtb16 r6, r1\n\t"
                     "sxtb16 r7, r1, ror #8\n\t"
                     "sxtb16 r8, r2\n\t"
                     "sadd16 r4, r4, r4\n\t"
                     "sadd16 r5, r5, r5\n\t"
                     "sadd16 r6, r6, r6\n\t"
                     "sadd16 r7, r7, r7\n\t"
                     "sadd16 r8, r8, r8\n\t"
                     "add r0, r12, #12\n\t"
                     "stmia r0, {r3, r4, r5, r6, r7, r8}\n\t"
                     "ldmia r12, {r0, r1, r2}\n\t"
                     "ldr r5, [r12, #52]\n\t"
                     "ldrd r3, r8, [r12, #72]\n\t"
                     "ldr r9, [r12, #64]\n\t"
                     "mov r11, r9\n\t"
                     "cbnz r3, 2f\n\t"
                     "ldrsb r9, [r0, r8]\n\t"
                     "ldrsb r4, [r1, r8]\n\t"
                     "ldrsb r11, [r2, r8]\n\t"
                     "add r8, r8, r5\n\t"
                     "pkhbt r9, r9, r4, lsl #16\n"
                     "2:\n\t"
                     "ldrsb r10, [r0, r8]\n\t"
                     "ldrsb r4, [r1, r8]\n\t"
                     "ldrsb r2, [r2, r8]\n\t"
                     "add r8, r8, r5\n\t"
                     "pkhbt r10, r10, r4, lsl #16\n\t"
                     "pkhbt r11, r2, r11, lsl #16\n"
                     "3:\n\t"
                     "ldmia r12!, {r0, r1, r2}\n\t"
                     "ldrsb r0, [r0, r8]\n\t"
                     "ldrsb r1, [r1, r8]\n\t"
                     "ldrsb r2, [r2, r8]\n\t"
                     "pkhbt r0, r0, r1, lsl #16\n\t"
                     "ldmia r12!, {r1, r3, r4, r5, r6, r7}\n\t" ACCUMULATE(
                         "r9", "r10", "r0", "r11",
                         "r2") "pkhbt r11, r2, r11, lsl #16\n\t"
                               "mov r9, r10\n\t"
                               "mov r10, r0\n\t"
                               "ldmia r12, {r2, r3, r4, r5, r6, r7}\n\t"
                               "sub r12, r12, #36\n\t" REQUANTISE "strb r1, [r5, r8]\n\t"
                               "add r8, r8, r6\n\t"
                               "cmp r8, r7\n\t"
                               "bne 3b\n\t"
                               "ldr r3, [r12, #68]\n\t"
                               "cbz r3, 4f\n\t"
                               "add r0, r12, #12\n\t"
                               "ldr r2, [r12, #64]\n\t"
                               "ldmia r0!, {r1, r3, r4, r5, r6, r7}\n\t" ACCUMULATE(
                                   "r9", "r10", "r2", "r11", "r2") "ldmia r0, {r2, r3, r4, r5}\n\t" REQUANTISE
                                                                   "strb r1, [r5, r8]\n"
                                                                   "4:\n\t"
                                                                   "ldrd r0, r1, [r12, #56]\n\t"
                                                                   "ldr r2, [r12, #76]\n\t"
                                                                   "ldr r3, [r12, #104]\n\t"
                                                                   "add r0, r0, #1\n\t"
                                                                   "add r2, r2, #1\n\t"
                                                                   "str r0, [r12, #56]\n\t"
                                                                   "str r2, [r12, #76]\n\t"
                                                                   "cmp r1, r3\n\t"
                                                                   "bne 0b\n\t"
                     : "+r"(self)
                     :
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r14", "cc",
                       "memory");
}

#else

static void all_channels(walk_t *walk) {
    for (; walk->channel != walk->last; walk->start++, walk->end++) {
        next_channel(walk);
        int32_t at = walk->start;
        column_t a = {walk->outside, walk->outside};
        if (!walk->padded) {
            a = inside(walk, at);
            at += walk->pitch;
        }
        column_t b = inside(walk, at);
        for (at += walk->pitch; at != walk->end; at += walk->pitch) {
            const column_t c = inside(walk, at);
            walk->out[at] = window(walk, a, b, c);
            a = b;
            b = c;
        }
        if (walk->trailing) {
            const column_t c = {walk->outside, walk->outside};
            walk->out[at] = window(walk, a, b, c);
        }
    }
}

#endif

/* `count` > 0 windows two pixels apart, from the one whose columns are a and the two at `offset`. */
static void run_2(walk_t *walk, column_t a, int32_t offset, int32_t count, int8_t *out) {
    walk->end = 2 * count * walk->pitch;
    for (int32_t i = 0; i < 3; i++) {
        walk->rows[i] += offset;
    }
#if ARENITE_HAS_DSP
    walk->out = out - walk->pitch; /* its index is half that of the columns, which is one window ahead */
    register uint32_t upper __asm__("r9") = a.upper;
    register int32_t pitch __asm__("r10") = walk->pitch;
    register uint32_t lower __asm__("r11") = a.lower;
    register int32_t at __asm__("r8") = 0;
    register walk_t *self __asm__("r12") = walk;
    __asm__ volatile("1:\n\t"
                     "ldmia r12!, {r0, r1, r2}\n\t"
                     "ldrsb r3, [r0, r8]\n\t"
                     "ldrsb r4, [r1, r8]\n\t"
                     "ldrsb r5, [r2, r8]\n\t"
                     "add r8, r8, r10\n\t"
                     "ldrsb r0, [r0, r8]\n\t"
                     "ldrsb r1, [r1, r8]\n\t"
                     "ldrsb r2, [r2, r8]\n\t"
                     "add r8, r8, r10\n\t"
                     "pkhbt r14, r3, r4, lsl #16\n\t"
                     "pkhbt r0, r0, r1, lsl #16\n\t"
                     "pkhbt r11, r5, r11, lsl #16\n\t"
                     "ldmia r12!, {r1, r3, r4, r5, r6, r7}\n\t" ACCUMULATE(
                         "r9", "r14", "r0", "r11", "r2") "mov r9, r0\n\t"
                                                         "mov r11, r2\n\t"
                                                         "ldmia r12, {r2, r3, r4, r5, r6, r7}\n\t"
                                                         "sub r12, r12, #36\n\t" REQUANTISE
                                                         "asr r6, r8, #1\n\t"
                                                         "strb r1, [r5, r6]\n\t"
                                                         "cmp r8, r7\n\t"
                                                         "bne 1b\n\t"
                     : "+r"(upper), "+r"(lower), "+r"(at), "+r"(self)
                     : "r"(pitch)
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r14", "cc", "memory");
#else
    for (int32_t at = 0; at != walk->end; at += 2 * walk->pitch, out += walk->pitch) {
        const column_t c = inside(walk, at + walk->pitch);
        *out = window(walk, a, inside(walk, at), c);
        a = c;
    }
#endif
    for (int32_t i = 0; i < 3; i++) {
        walk->rows[i] -= offset;
    }
}

/* One channel of an output row. */
static void channel_row(const arenite_depthwise_conv_2d_s8_t *p, const span_t *span, walk_t *walk,
                        int8_t *out) {
    const int32_t pitch = walk->pitch;
    int32_t first = -p->pad_left;
    for (int32_t x = 0; x < p->out_w; x++, first += p->stride_w, out += pitch) {
        if (x == span->leading && p->stride_w == 2) {
            run_2(walk, any(walk, span, first), (first + 1) * pitch, span->whole, out);
            x += span->whole;
            first += span->whole * 2;
            out += span->whole * pitch;
            if (x >= p->out_w) {
                return;
            }
        }
        single(walk, span, first, out);
    }
}

/* The run of windows whose last column is inside, and for stride 2 the one before. None for other strides. */
static span_t divide(const arenite_depthwise_conv_2d_s8_t *p, int any_row) {
    const int32_t stride = p->stride_w;
    span_t span = {-1, 0, any_row ? p->in_w : 0};
    if (stride > 2 || !any_row) {
        return span;
    }
    const int32_t missing = p->pad_left - (3 - stride);
    const int32_t leading = missing > 0 ? (missing + stride - 1) / stride : 0;
    const int32_t room = p->in_w - 3 - (leading * stride - p->pad_left);
    if (leading < p->out_w && room >= 0) {
        const int32_t whole = room / stride + 1;
        span.leading = leading;
        span.whole = whole < p->out_w - leading ? whole : p->out_w - leading;
    }
    return span;
}

/* Whether all_channels can make the row: one column outside at most, on either side. */
static int is_plain(const arenite_depthwise_conv_2d_s8_t *p, const span_t *span) {
    return p->stride_w == 1 && p->pad_left <= 1 && p->pad_left >= 0 && span->whole > 0 &&
           p->out_w - span->whole <= 1;
}

/* Bits of each row in the words of arenite_dsp_depthwise_t. */
static const uint32_t OF_ROW[3][3] = {
    {0x0000FFFFu, 0x000000FFu, 0}, {0xFFFF0000u, 0x00FF0000u, 0}, {0, 0xFF00FF00u, 0x000000FFu}};

/* Finds the rows that are inside; returns whether there is one. */
static int look(const int8_t *const *rows, walk_t *walk) {
    const int8_t *some = rows[0] != NULL ? rows[0] : (rows[1] != NULL ? rows[1] : rows[2]);
    for (int32_t i = 0; i < 3; i++) {
        walk->rows[i] = rows[i] != NULL ? rows[i] : some;
        walk->partial |= rows[i] == NULL;
        for (int32_t word = 0; word < 3; word++) {
            walk->there[word] |= rows[i] != NULL || some == NULL ? OF_ROW[i][word] : 0;
        }
    }
    return some != NULL;
}

void arenite_depthwise_conv_2d_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out,
                                      int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    walk_t walk = {.pitch = p->in_c, .padded = p->pad_left, .point = 2 * p->out_zero_point + 1};
    (void)step;
    (void)scratch;
    walk.channel = (const arenite_dsp_depthwise_t *)(const void *)p->weights;
    walk.last = walk.channel + p->in_c;
    walk.outside = arenite_pkhbt((uint32_t)p->in_zero_point, (uint32_t)p->in_zero_point);
    walk.twice_zero_point = 2 * p->in_zero_point;
    const span_t span = divide(p, look(rows, &walk));
    if (is_plain(p, &span)) {
        const int32_t offset = (2 - p->pad_left) * p->in_c; /* of the first window's column c */
        walk.out = out - offset;
        walk.end = offset + span.whole * p->in_c;
        walk.trailing = p->out_w - span.whole;
        all_channels(&walk);
    } else {
        for (int32_t c = 0; c < p->in_c; c++) {
            next_channel(&walk);
            channel_row(p, &span, &walk, out + c);
            for (int32_t i = 0; i < 3 && span.width > 0; i++) {
                walk.rows[i]++;
            }
        }
    }
    arenite_dsp_clamp(out, p->out_w * p->in_c, p->act_min, p->act_max);
}
