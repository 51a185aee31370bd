/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_mve_column.h"

#if defined(__ARM_FEATURE_MVE)
#include <stddef.h>
#include <stdint.h>

#include "arenite_depthwise_mve_block.h"
#include "arenite_mve.h"

#define TAPS ARENITE_MVE_COLUMN_TAPS

/* What the assembly reads, which knows the offsets. */
typedef struct {
    const int8_t *x[TAPS]; /* the taps, at the end; moves on */
    const int8_t *blocks;
    int32_t count;
    uintptr_t entry;        /* where in the sequence of taps the first one's code lies */
    int16_t zero_points[8]; /* of the output */
} column_t;

/* Windows of an odd number of taps begin with one alone; pairs of taps follow. Bytes of code of both: fewer taps enter the
 * sequence later. */
#define ALONE(x, pairs) FIRST_TAP(x) WIDEN "b.w " pairs "f\n\t"
#define PAIR(x, y) FIRST_TAP(x) SECOND_TAP(y) WIDEN
#define ALONE_BYTES 52
#define PAIR_BYTES 76
#define ALL_ALONE 4

/* Where the code of `taps` taps begins, from that of the most odd ones; a function's address is odd. */
static inline uintptr_t entry_of(int32_t taps) {
    const int32_t missing = (TAPS - taps) / 2;
    return (uintptr_t)(1 + (taps % 2 != 0 ? missing * ALONE_BYTES
                                          : ALL_ALONE * ALONE_BYTES + missing * PAIR_BYTES));
}

/* Blocks of 16 channels; taps and blocks move on. Returns the end of the output. */
static __attribute__((noinline)) int8_t *run_blocks(column_t *column, int8_t *to) {
    register column_t *c __asm__("r12") = column;
    register int8_t *out __asm__("r11") = to;
    __asm__ volatile("ldr r0, [r12, #48]\n\t"
                     "adr.w r1, 2f\n\t"
                     "add r0, r0, r1\n\t"
                     "str r0, [r12, #48]\n\t"
                     "ldrd r7, lr, [r12, #40]\n\t"
                     "ldm r12, {r0, r1, r2, r3, r4, r5, r6, r8, r9, r10}\n\t"
                     "dls lr, lr\n"
                     "1:\n\t" BIAS "ldr pc, [r12, #48]\n"
                     "2:\n\t" ALONE("r1", "4") ALONE("r3", "5") ALONE("r5", "6") ALONE("r8", "7")
                         PAIR("r0", "r1") "4:\n\t" PAIR("r2", "r3") "5:\n\t" PAIR("r4", "r5") "6:\n\t" PAIR(
                             "r6", "r8") "7:\n\t" PAIR("r9", "r10") SCALE("q0", TIES_DOWN)
                             SCALE("q1", TIES_DOWN) SCALE("q2", TIES_DOWN) SCALE("q3", TIES_DOWN) NARROW
                     "vldrw.u32 q5, [r12, #52]\n\t" ADD_ZERO_POINT("q5") "vstrb.8 q0, [r11], #16\n\t"
                                                                         "le lr, 1b\n\t"
                                                                         "str r7, [r12, #40]"
                     : "+r"(out)
                     : "r"(c)
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "lr", "q0", "q1",
                       "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
    return out;
}

static void set_taps(const int8_t *const *rows, int32_t taps, const int8_t *outside, ptrdiff_t at,
                     column_t *column) {
    const int8_t **next = column->x + TAPS - taps;
    for (int32_t i = 0; i < taps; i++) {
        *next++ = (rows[i] == NULL ? outside : rows[i]) + at;
    }
    column->entry = entry_of(taps);
}

void arenite_depthwise_conv_2d_s8_mve_column(const void *params, const int8_t *const *rows, int8_t *out,
                                             int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const int32_t taps = p->kernel_h, channels = p->in_c, rest = channels % ARENITE_MVE_BLOCK;
    const int32_t blocks = (channels + ARENITE_MVE_BLOCK - 1) / ARENITE_MVE_BLOCK;
    const int8_t *const outside = p->weights + (ptrdiff_t)blocks * ARENITE_MVE_BLOCK * (taps + 9);
    column_t column;
    (void)step;
    (void)scratch;
    column.blocks = p->weights;
    column.count = channels / ARENITE_MVE_BLOCK;
    vst1q_s16(column.zero_points, vdupq_n_s16(p->out_zero_point));
    set_taps(rows, taps, outside, 0, &column);
    out = run_blocks(&column, out);
    if (rest != 0) {
        const ptrdiff_t again = rest - ARENITE_MVE_BLOCK;
        column.count = 1;
        set_taps(rows, taps, outside, channels - ARENITE_MVE_BLOCK, &column);
        run_blocks(&column, out + again);
    }
}

#endif
