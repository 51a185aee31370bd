/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_dsp.h"

#include <stddef.h>

/* One channel on its way along a row. Weights are doubled pairs of int16. The assembly below knows the offsets. */
typedef struct {
    const int8_t *rows[3];
    int32_t twice_bias;
    uint32_t left;    /* w[0][0], w[1][0] */
    uint32_t centre;  /* w[0][1], w[1][1] */
    uint32_t right;   /* w[0][2], w[1][2] */
    uint32_t bottom;  /* w[2][1], w[2][0] */
    uint32_t corner;  /* w[2][2] */
    int32_t multiplier;
    int32_t shift;
    int32_t rounding;
    int8_t *out;
    int32_t pitch;
    int32_t end;
} walk_t;

/* A column: the upper two bytes as a pair, and the one below. */
typedef struct {
    uint32_t upper;
    uint32_t lower;
} column_t;

/* What holds for all channels of a row: how many windows begin at its left, how many of those after them end inside. */
typedef struct {
    int32_t leading;
    int32_t whole;
    int32_t width; /* 0 if no row is inside */
    uint32_t outside;
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
    const column_t column = {arenite_pkhbt(span->outside, span->outside), span->outside};
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

/* `count` > 0 windows one pixel apart, from the one whose columns are a, b and the one at `offset`. */
static void run_1(walk_t *walk, column_t a, column_t b, int32_t offset, int32_t count, int8_t *out) {
    walk->end = offset + count * walk->pitch;
#if ARENITE_HAS_DSP
    walk->out = out - offset; /* so that both have one index */
    register uint32_t upper_a __asm__("r9") = a.upper;
    register uint32_t upper_b __asm__("r10") = b.upper;
    register uint32_t lower __asm__("r11") = arenite_pkhbt(b.lower, a.lower);
    register int32_t at __asm__("r8") = offset;
    register walk_t *self __asm__("r12") = walk;
    __asm__ volatile("1:\n\t"
                     "ldmia r12!, {r0, r1, r2}\n\t"
                     "ldrsb r0, [r0, r8]\n\t"
                     "ldrsb r1, [r1, r8]\n\t"
                     "ldrsb r2, [r2, r8]\n\t"
                     "pkhbt r0, r0, r1, lsl #16\n\t"
                     "ldmia r12!, {r1, r3, r4, r5, r6, r7}\n\t"
                     "smlad r1, r9, r3, r1\n\t"
                     "smlad r1, r10, r4, r1\n\t"
                     "smlad r1, r0, r5, r1\n\t"
                     "smlad r1, r11, r6, r1\n\t"
                     "smlabb r1, r2, r7, r1\n\t"
                     "pkhbt r11, r2, r11, lsl #16\n\t"
                     "mov r9, r10\n\t"
                     "mov r10, r0\n\t"
                     "ldmia r12, {r2, r3, r4, r5, r6, r7}\n\t"
                     "sub r12, r12, #36\n\t"
                     "add r4, r4, r1, asr #31\n\t"
                     "smmlar r1, r1, r2, r4\n\t"
                     "asr r1, r1, r3\n\t"
                     "ssat r1, #8, r1, asr #1\n\t"
                     "strb r1, [r5, r8]\n\t"
                     "add r8, r8, r6\n\t"
                     "cmp r8, r7\n\t"
                     "bne 1b\n\t"
                     : "+r"(upper_a), "+r"(upper_b), "+r"(lower), "+r"(at), "+r"(self)
                     :
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "cc", "memory");
#else
    for (; offset != walk->end; offset += walk->pitch, out += walk->pitch) {
        const column_t c = inside(walk, offset);
        *out = window(walk, a, b, c);
        a = b;
        b = c;
    }
#endif
}

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
                     "pkhbt r3, r3, r4, lsl #16\n\t"
                     "pkhbt r0, r0, r1, lsl #16\n\t"
                     "pkhbt r11, r5, r11, lsl #16\n\t"
                     "ldmia r12!, {r1, r4, r5, r6, r7, r14}\n\t"
                     "smlad r1, r9, r4, r1\n\t"
                     "smlad r1, r3, r5, r1\n\t"
                     "smlad r1, r0, r6, r1\n\t"
                     "smlad r1, r11, r7, r1\n\t"
                     "smlabb r1, r2, r14, r1\n\t"
                     "mov r9, r0\n\t"
                     "mov r11, r2\n\t"
                     "ldmia r12, {r2, r3, r4, r5, r6, r7}\n\t"
                     "sub r12, r12, #36\n\t"
                     "add r4, r4, r1, asr #31\n\t"
                     "smmlar r1, r1, r2, r4\n\t"
                     "asr r1, r1, r3\n\t"
                     "ssat r1, #8, r1, asr #1\n\t"
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
    int32_t x = 0, first = -p->pad_left;
    for (; x < span->leading; x++, first += p->stride_w, out += pitch) {
        single(walk, span, first, out);
    }
    if (span->whole > 0) {
        const column_t a = any(walk, span, first);
        if (p->stride_w == 1) {
            run_1(walk, a, any(walk, span, first + 1), (first + 2) * pitch, span->whole, out);
        } else {
            run_2(walk, a, (first + 1) * pitch, span->whole, out);
        }
        x += span->whole;
        first += span->whole * p->stride_w;
        out += span->whole * pitch;
    }
    for (; x < p->out_w; x++, first += p->stride_w, out += pitch) {
        single(walk, span, first, out);
    }
}

static span_t divide(const arenite_depthwise_conv_2d_s8_t *p, int any_row) {
    const int32_t stride = p->stride_w;
    span_t span = {p->out_w, 0, any_row ? p->in_w : 0, (uint32_t)p->in_zero_point};
    if (stride > 2 || !any_row) {
        return span;
    }
    /* Of the first window that a run makes, the columns left of those that the run reads may lie outside. */
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

/* Bytes of each row in the words of arenite_dsp_depthwise_t. */
static const uint32_t OF_ROW[3][3] = {
    {0x0000FFFFu, 0xFFFF0000u, 0}, {0x000000FFu, 0x00FF0000u, 0xFF00FF00u}, {0, 0, 0x000000FFu}};

/* Rows outside weigh nothing; what they would add goes into the bias. */
static void leave_out(walk_t *walk, const uint32_t *words, const uint32_t *there, int32_t zero_point) {
    uint32_t sum = 0;
    for (int32_t i = 0; i < 3; i++) {
        const uint32_t gone = words[i] & ~there[i];
        sum = arenite_smlad(arenite_sxtb16(gone), 0x00010001u, sum);
        sum = arenite_smlad(arenite_sxtb16_ror8(gone), 0x00010001u, sum);
    }
    walk->twice_bias += 2 * zero_point * (int32_t)sum;
}

static inline void set_weights(walk_t *walk, uint32_t upper, uint32_t middle, uint32_t lower) {
    walk->left = arenite_twice16(arenite_sxtb16(upper));
    walk->centre = arenite_twice16(arenite_sxtb16_ror8(upper));
    walk->right = arenite_twice16(arenite_sxtb16(middle));
    walk->bottom = arenite_twice16(arenite_sxtb16_ror8(middle));
    walk->corner = arenite_twice16(arenite_sxtb16(lower));
}

void arenite_depthwise_conv_2d_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out,
                                      int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const arenite_dsp_depthwise_t *channel = (const arenite_dsp_depthwise_t *)(const void *)p->weights;
    const int8_t *some = rows[0] != NULL ? rows[0] : (rows[1] != NULL ? rows[1] : rows[2]);
    const int all = rows[0] != NULL && rows[1] != NULL && rows[2] != NULL;
    const span_t span = divide(p, some != NULL);
    const int32_t point = 2 * p->out_zero_point + 1;
    uint32_t there[3] = {0, 0, 0};
    walk_t walk = {.pitch = p->in_c};
    (void)step;
    (void)scratch;
    for (int32_t i = 0; i < 3; i++) {
        for (int32_t word = 0; word < 3 && rows[i] != NULL; word++) {
            there[word] |= OF_ROW[word][i];
        }
        walk.rows[i] = rows[i] != NULL ? rows[i] : some;
    }
    for (int32_t c = 0; c < p->in_c; c++, channel++) {
        walk.twice_bias = channel->scale.twice_bias;
        walk.multiplier = channel->scale.multiplier;
        walk.shift = channel->scale.shift;
        walk.rounding = arenite_shift_left(point, walk.shift);
        if (all || some == NULL) {
            set_weights(&walk, channel->words[0], channel->words[1], channel->words[2]);
        } else {
            leave_out(&walk, channel->words, there, p->in_zero_point);
            set_weights(&walk, channel->words[0] & there[0], channel->words[1] & there[1],
                        channel->words[2] & there[2]);
        }
        channel_row(p, &span, &walk, out + c);
        for (int32_t i = 0; i < 3 && some != NULL; i++) {
            walk.rows[i]++;
        }
    }
    arenite_dsp_clamp(out, p->out_w * p->in_c, p->act_min, p->act_max);
}
