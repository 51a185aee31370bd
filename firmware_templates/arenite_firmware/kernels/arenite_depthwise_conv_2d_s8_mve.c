/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_mve.h"

#if defined(__ARM_FEATURE_MVE)
#include <stddef.h>
#include <stdint.h>

#include "arenite_depthwise_mve_block.h"
#include "arenite_mve.h"

#define BLOCK ARENITE_MVE_BLOCK
#define BLOCK_BYTES(taps) (BLOCK * ((taps) + 9))
#define FAST_TAPS 9

/* Where the taps of one pixel lie, at their first channel. */
typedef struct {
    const int8_t *x[ARENITE_MVE_TAPS + 3]; /* moved by fours */
    int32_t count;
} taps_t;

/* What the assembly for 3x3 windows reads, which knows the offsets. */
typedef struct {
    const int8_t *x[FAST_TAPS + 3]; /* taps of the first pixel; moves on */
    const int8_t *blocks;
    int32_t whole_blocks;
    int32_t pixels;
    int32_t step;       /* bytes from the taps of one pixel to those of the next */
    int32_t zero_point; /* of the output */
    int8_t limits[32];  /* 16 times act_min, 16 times act_max */
} fast_t;

typedef struct {
    fast_t fast;
    int8_t *out;
    int32_t channels;
    int32_t is_clamped; /* to less than all bytes */
    arenite_mve_mode_t mode;
} output_t;

#define SUMS_3X3                                                                                             \
    FIRST_TAP("r1")                                                                                          \
    SECOND_TAP("r2")                                                                                         \
    WIDEN FIRST_TAP("r3") SECOND_TAP("r4") WIDEN FIRST_TAP("r5") SECOND_TAP("r6") WIDEN FIRST_TAP("r8")      \
        SECOND_TAP("r9") WIDEN FIRST_TAP("r10") WIDEN
#define CLAMP                                                                                                \
    "vldrb.8 q5, [r12, #68]\n\t"                                                                             \
    "vldrb.8 q6, [r12, #84]\n\t"                                                                             \
    "vmax.s8 q0, q0, q5\n\t"                                                                                 \
    "vmin.s8 q0, q0, q6\n\t"
#define WRITE "vstrb.8 q0, [r11], #16\n\t"
#define BYTES NARROW "ldrsh r1, [r12, #64]\n\t" ADD_ZERO_POINT("r1") CLAMP WRITE
#define MOVE(at)                                                                                             \
    "vldrw.u32 q0, [r12, #" at "]\n\t"                                                                       \
    "vadd.i32 q0, q0, r0\n\t"                                                                                \
    "vstrw.32 q0, [r12, #" at "]\n\t"

/* The whole blocks of some pixels with 3x3 windows. `ties` decides how halves of negative values are rounded; `clamp` is
 * nothing where the narrowing does it. */
#define PIXELS_3X3(name, ties, clamp)                                                                        \
    static __attribute__((noinline)) void name(fast_t *fast, int8_t *to) {                                   \
        register fast_t *f __asm__("r12") = fast;                                                            \
        register int8_t *out __asm__("r11") = to;                                                            \
        __asm__ volatile("1:\n\t"                                                                            \
                         "ldm r12, {r1, r2, r3, r4, r5, r6, r8, r9, r10}\n\t"                                \
                         "ldrd r7, lr, [r12, #48]\n\t"                                                       \
                         "ldrsh r0, [r12, #64]\n\t"                                                          \
                         "dls lr, lr\n"                                                                      \
                         "2:\n\t" BIAS SUMS_3X3 SCALE("q0", ties) SCALE("q1", ties) SCALE("q2", ties)        \
                             SCALE("q3", ties) NARROW ADD_ZERO_POINT("r0") clamp WRITE                       \
                         "le lr, 2b\n\t"                                                                     \
                         "ldr r0, [r12, #60]\n\t" MOVE("0") MOVE("16") MOVE("32") "ldr r0, [r12, #56]\n\t"   \
                                                                                  "subs r0, r0, #1\n\t"      \
                                                                                  "str r0, [r12, #56]\n\t"   \
                                                                                  "bne 1b"                   \
                         : "+r"(out)                                                                         \
                         : "r"(f)                                                                            \
                         : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "lr", "q0",    \
                           "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");                        \
    }
PIXELS_3X3(pixels_3x3_positive, TIES_UP, CLAMP)
PIXELS_3X3(pixels_3x3_signed, TIES_DOWN, CLAMP)
PIXELS_3X3(pixels_3x3_positive_whole, TIES_UP, )
PIXELS_3X3(pixels_3x3_signed_whole, TIES_DOWN, )

/* A whole block of a window of more than one tap, `at` channels behind the first. */
#define BLOCK_OF_PAIRS(name, ties)                                                                           \
    static __attribute__((noinline)) void name(fast_t *fast, const taps_t *taps, int32_t at, int8_t *to) {   \
        register fast_t *f __asm__("r12") = fast;                                                            \
        register int8_t *out __asm__("r11") = to;                                                            \
        register const int8_t *const *x __asm__("r8") = taps->x;                                             \
        register const int8_t *w __asm__("r7") = fast->blocks + at / BLOCK * BLOCK_BYTES(taps->count);       \
        register int32_t offset __asm__("r0") = at;                                                          \
        register int32_t odd __asm__("r3") = taps->count % 2;                                                \
        register int32_t pairs __asm__("lr") = taps->count / 2;                                              \
        __asm__ volatile(BIAS "dls lr, lr\n"                                                                 \
                              "1:\n\t"                                                                       \
                              "ldrd r1, r2, [r8], #8\n\t"                                                    \
                              "add r1, r1, r0\n\t"                                                           \
                              "add r2, r2, r0\n\t" FIRST_TAP("r1") SECOND_TAP("r2") WIDEN                    \
                         "le lr, 1b\n\t"                                                                     \
                         "cbz r3, 2f\n\t"                                                                    \
                         "ldr r1, [r8]\n\t"                                                                  \
                         "add r1, r1, r0\n\t" FIRST_TAP("r1") WIDEN "2:\n\t" SCALE("q0", ties)               \
                             SCALE("q1", ties) SCALE("q2", ties) SCALE("q3", ties) BYTES                     \
                         : "+r"(out), "+r"(x), "+r"(w), "+r"(pairs)                                          \
                         : "r"(f), "r"(offset), "r"(odd)                                                     \
                         : "r1", "r2", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");      \
    }
BLOCK_OF_PAIRS(block_positive, TIES_UP)
BLOCK_OF_PAIRS(block_signed, TIES_DOWN)

/* A block of up to 16 channels of any window, `at` channels behind the first. */
static __attribute__((noinline)) void any_block(const taps_t *taps, const output_t *o, int32_t at) {
    const mve_pred16_t inside = vctp8q((uint32_t)(o->channels - at));
    const int8_t *w = o->fast.blocks + (ptrdiff_t)(at / BLOCK) * BLOCK_BYTES(taps->count);
    const int32_t *const bias = (const int32_t *)(const void *)w;
    int32x4_t sums[4] = {vld1q_s32(bias), vld1q_s32(bias + 4), vld1q_s32(bias + 8), vld1q_s32(bias + 12)};
    w += 4 * BLOCK;
    for (int32_t tap = 0; tap < taps->count; tap++, w += BLOCK) {
        int8x16_t x = vldrbq_z_s8(taps->x[tap] + at, inside), v = vld1q_s8(w);
        int16x8_t even = vmullbq_int_s8(x, v), odd = vmulltq_int_s8(x, v);
        if (tap + 1 < taps->count) {
            tap++;
            w += BLOCK;
            x = vldrbq_z_s8(taps->x[tap] + at, inside);
            v = vld1q_s8(w);
            even = vaddq_s16(even, vmullbq_int_s8(x, v));
            odd = vaddq_s16(odd, vmulltq_int_s8(x, v));
        }
        sums[0] = vaddq_s32(sums[0], vmovlbq_s16(even));
        sums[1] = vaddq_s32(sums[1], vmovlbq_s16(odd));
        sums[2] = vaddq_s32(sums[2], vmovltq_s16(even));
        sums[3] = vaddq_s32(sums[3], vmovltq_s16(odd));
    }
    for (int i = 0; i < 4; i++, w += 20) {
        const int32x4_t multiplier = vld1q_s32((const int32_t *)(const void *)w);
        sums[i] = arenite_mve_scale(sums[i], multiplier, vldrbq_s32(w + 16), o->fast.zero_point);
    }
    int8x16_t bytes = arenite_mve_narrow(sums[0], sums[1], sums[2], sums[3]);
    bytes = vminq_s8(vmaxq_s8(bytes, vld1q_s8(o->fast.limits)), vld1q_s8(o->fast.limits + 16));
    vstrbq_p_s8(o->out + at, bytes, inside);
}

static void run_3x3(const taps_t *taps, output_t *o, int32_t pixels) {
    for (int32_t i = 0; i < FAST_TAPS; i++) {
        o->fast.x[i] = taps->x[i];
    }
    o->fast.whole_blocks = o->channels / BLOCK;
    o->fast.pixels = pixels;
    /* Not through a pointer, so that the bound of the stack is known. */
    if (o->mode == ARENITE_MVE_POSITIVE && o->is_clamped) {
        pixels_3x3_positive(&o->fast, o->out);
    } else if (o->mode == ARENITE_MVE_POSITIVE) {
        pixels_3x3_positive_whole(&o->fast, o->out);
    } else if (o->is_clamped) {
        pixels_3x3_signed(&o->fast, o->out);
    } else {
        pixels_3x3_signed_whole(&o->fast, o->out);
    }
}

/* `pixels` pixels; more than one only where their channels are whole blocks. */
static __attribute__((noinline)) void run_pixels(const taps_t *taps, output_t *o, int32_t pixels) {
    const int32_t whole = o->channels / BLOCK * BLOCK;
    int32_t at = 0;
    if (o->mode != ARENITE_MVE_ANY && taps->count == FAST_TAPS && whole > 0) {
        run_3x3(taps, o, pixels);
        at = whole;
    } else if (o->mode != ARENITE_MVE_ANY && taps->count > 1) {
        for (; at < whole; at += BLOCK) {
            if (o->mode == ARENITE_MVE_POSITIVE) {
                block_positive(&o->fast, taps, at, o->out + at);
            } else {
                block_signed(&o->fast, taps, at, o->out + at);
            }
        }
    }
    for (; at < o->channels; at += BLOCK) {
        any_block(taps, o, at);
    }
}

/* The taps of the pixel that starts at input pixel `first`, as if nothing were outside. */
static __attribute__((noinline)) void list_taps(const arenite_depthwise_conv_2d_s8_t *p,
                                                const int8_t *const *rows, int32_t first,
                                                const int8_t *outside, taps_t *taps) {
    const int32_t kernel_h = p->kernel_h, kernel_w = p->kernel_w, in_c = p->in_c;
    const int32_t distance = p->dilation_w * in_c;
    const int8_t **next = taps->x;
    for (int32_t ky = 0; ky < kernel_h; ky++) {
        uintptr_t x = (uintptr_t)(rows[ky] == NULL ? outside : rows[ky]) + (uintptr_t)(first * in_c);
        for (int32_t kx = 0; kx < kernel_w; kx++, x += (uintptr_t)distance) {
            *next++ = (const int8_t *)x;
        }
    }
}

static void move_taps(taps_t *taps, int32_t bytes) {
    for (int32_t i = 0; i < taps->count; i += 4) {
        uint32_t *const four = (uint32_t *)(void *)&taps->x[i];
        vst1q_u32(four, vaddq_n_u32(vld1q_u32(four), (uint32_t)bytes));
    }
}

/* The same taps, those outside the input replaced. */
static __attribute__((noinline)) void replace_outside(const arenite_depthwise_conv_2d_s8_t *p,
                                                      const int8_t *const *rows, int32_t first,
                                                      const int8_t *outside, const taps_t *taps,
                                                      taps_t *replaced) {
    const int32_t kernel_w = p->kernel_w, count = taps->count;
    replaced->count = count;
    for (int32_t i = 0; i < count; i += 4) {
        vst1q_u32((uint32_t *)(void *)&replaced->x[i],
                  vld1q_u32((const uint32_t *)(const void *)&taps->x[i]));
    }
    for (int32_t kx = 0, x = first; kx < kernel_w; kx++, x += p->dilation_w) {
        for (int32_t tap = kx; (x < 0 || x >= p->in_w) && tap < count; tap += kernel_w) {
            replaced->x[tap] = outside;
        }
    }
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        for (int32_t kx = 0; rows[ky] == NULL && kx < kernel_w; kx++) {
            replaced->x[ky * kernel_w + kx] = outside;
        }
    }
}

static int exist(const int8_t *const *rows, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (rows[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

static void set_output(const arenite_depthwise_conv_2d_s8_t *p, int8_t *out, output_t *o) {
    o->fast.blocks = p->weights;
    o->out = out;
    o->channels = p->in_c;
    o->fast.zero_point = p->out_zero_point;
    o->is_clamped = p->act_min > INT8_MIN || p->act_max < INT8_MAX;
    o->mode = (arenite_mve_mode_t)p->per_channel;
    vst1q_s8(o->fast.limits, vdupq_n_s8((int8_t)p->act_min));
    vst1q_s8(o->fast.limits + 16, vdupq_n_s8((int8_t)p->act_max));
}

void arenite_depthwise_conv_2d_s8_mve(const void *params, const int8_t *const *rows, int8_t *out,
                                      int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const int32_t in_c = p->in_c, out_w = p->out_w, have_rows = exist(rows, p->kernel_h);
    const int32_t span = (p->kernel_w - 1) * p->dilation_w;
    /* With stride 1 the channels of neighbouring pixels are neighbours: they fill a block that one pixel does not. */
    const int32_t together = p->stride_w == 1 && BLOCK % in_c == 0 ? BLOCK / in_c : 1;
    taps_t taps, replaced;
    output_t output;
    taps.count = p->kernel_h * p->kernel_w;
    const int8_t *const outside =
        p->weights + (ptrdiff_t)((in_c + BLOCK - 1) / BLOCK) * BLOCK_BYTES(taps.count);
    (void)step;
    (void)scratch;
    set_output(p, out, &output);
    list_taps(p, rows, -p->pad_left, outside, &taps);
    output.fast.step = together * p->stride_w * in_c;
    const int32_t are_fast = taps.count == FAST_TAPS && output.mode != ARENITE_MVE_ANY;
    const int32_t last = p->in_w - 1 - span; /* the last input pixel where a window may start */
    for (int32_t x = 0, pixels; x < out_w; x += pixels) {
        const int32_t first = x * p->stride_w - p->pad_left;
        pixels = 1;
        output.channels = in_c;
        if (have_rows && first >= 0 && first <= last) {
            int32_t times = 1;
            const int32_t inside = (last - first) / p->stride_w + 1, left = out_w - x;
            const int32_t most = (inside < left ? inside : left) / together;
            if (most > 0) {
                pixels = together;
                output.channels = together * in_c;
                times = are_fast && output.channels % BLOCK == 0 ? most : 1;
            }
            run_pixels(&taps, &output, times);
            pixels *= times;
        } else {
            replace_outside(p, rows, first, outside, &taps, &replaced);
            run_pixels(&replaced, &output, 1);
        }
        output.out += pixels * in_c;
        move_taps(&taps, pixels * p->stride_w * in_c);
    }
}

#endif
