/* SPDX-License-Identifier: Apache-2.0 */
/* Products of windows so short that most of their pixels stay in vector registers while all channels pass: assembly for
 * arenite_conv_2d_mve_tile.c. */
#ifndef ARENITE_CONV_2D_MVE_RESIDENT_H
#define ARENITE_CONV_2D_MVE_RESIDENT_H

#include <stdint.h>

#include "arenite_conv_2d_mve_tile.h"

/* Pixels stay in q0 .. q5, or up to q6 of one pixel, while q7 takes the weights, 16 bytes at a time: each is loaded once and
 * serves all pixels. What finds no place is read again for each channel, by way of q6. Bytes behind a run are zeros in
 * the registers, so whatever weights lie there add nothing. */
#define WEIGHTS "vldrb.8 q7, [r7], #16\n\t"
#define PIXEL(x, at) "vldrb.8 q6, [" x ", #" at "]\n\t"
#define FIRST(sum, q) "vmladav.s8 " sum ", " q ", q7\n\t"
#define NEXT(sum, q) "vmladava.s8 " sum ", " q ", q7\n\t"

/* One channel of three pixels, whose last two steps lie in q0 q1, q2 q3, q4 q5. */
#define FIRST_3(a, b, c, x, y, z) FIRST(a, x) FIRST(b, y) FIRST(c, z)
#define NEXT_3(a, b, c, x, y, z) NEXT(a, x) NEXT(b, y) NEXT(c, z)
#define AGAIN_3(PRODUCT, a, b, c, at)                                                                        \
    PIXEL("r1", at) PRODUCT(a, "q6") PIXEL("r3", at) PRODUCT(b, "q6") PIXEL("r5", at) PRODUCT(c, "q6")
#define CHANNEL_3_1(a, b, c) WEIGHTS FIRST_3(a, b, c, "q0", "q2", "q4")
#define CHANNEL_3_2(a, b, c) CHANNEL_3_1(a, b, c) WEIGHTS NEXT_3(a, b, c, "q1", "q3", "q5")
#define LAST_TWO_3(a, b, c)                                                                                  \
    WEIGHTS NEXT_3(a, b, c, "q0", "q2", "q4") WEIGHTS NEXT_3(a, b, c, "q1", "q3", "q5")
#define CHANNEL_3_3(a, b, c) WEIGHTS AGAIN_3(FIRST, a, b, c, "0") LAST_TWO_3(a, b, c)
#define CHANNEL_3_4(a, b, c)                                                                                 \
    WEIGHTS                                                                                                  \
    AGAIN_3(FIRST, a, b, c, "0") WEIGHTS AGAIN_3(NEXT, a, b, c, "16") LAST_TWO_3(a, b, c)

/* One channel of two pixels, whose last three steps lie in q0 q1 q2 and q3 q4 q5. */
#define CHANNEL_2_1(a, b) WEIGHTS FIRST(a, "q0") FIRST(b, "q3")
#define CHANNEL_2_2(a, b) CHANNEL_2_1(a, b) WEIGHTS NEXT(a, "q1") NEXT(b, "q4")
#define CHANNEL_2_3(a, b) CHANNEL_2_2(a, b) WEIGHTS NEXT(a, "q2") NEXT(b, "q5")
#define CHANNEL_2_4(a, b)                                                                                    \
    WEIGHTS                                                                                                  \
    PIXEL("r1", "0")                                                                                         \
    FIRST(a, "q6")                                                                                           \
    PIXEL("r3", "0")                                                                                         \
    FIRST(b, "q6")                                                                                           \
    WEIGHTS                                                                                                  \
    NEXT(a, "q0")                                                                                            \
    NEXT(b, "q3")                                                                                            \
    WEIGHTS NEXT(a, "q1") NEXT(b, "q4") WEIGHTS NEXT(a, "q2") NEXT(b, "q5")

/* One channel of one pixel, whose last six or seven steps lie in q0 .. q6. */
#define CHANNEL_1_1(a) WEIGHTS FIRST(a, "q0")
#define CHANNEL_1_2(a) CHANNEL_1_1(a) WEIGHTS NEXT(a, "q1")
#define CHANNEL_1_3(a) CHANNEL_1_2(a) WEIGHTS NEXT(a, "q2")
#define CHANNEL_1_4(a) CHANNEL_1_3(a) WEIGHTS NEXT(a, "q3")
#define CHANNEL_1_5(a) CHANNEL_1_4(a) WEIGHTS NEXT(a, "q4")
#define CHANNEL_1_6(a) CHANNEL_1_5(a) WEIGHTS NEXT(a, "q5")
#define CHANNEL_1_7(a) CHANNEL_1_6(a) WEIGHTS NEXT(a, "q6")
#define CHANNEL_1_8(a)                                                                                       \
    WEIGHTS                                                                                                  \
    PIXEL("r1", "0")                                                                                         \
    FIRST(a, "q6")                                                                                           \
    WEIGHTS                                                                                                  \
    PIXEL("r1", "16")                                                                                        \
    NEXT(a, "q6")                                                                                            \
    WEIGHTS                                                                                                  \
    NEXT(a, "q0")                                                                                            \
    WEIGHTS                                                                                                  \
    NEXT(a, "q1")                                                                                            \
    WEIGHTS                                                                                                  \
    NEXT(a, "q2") WEIGHTS NEXT(a, "q3") WEIGHTS NEXT(a, "q4") WEIGHTS NEXT(a, "q5")

#define LOAD(q, x, at) "vldrb.8 " q ", [" x ", #" at "]\n\t"
#define LOAD_LAST(q, x, at) "vldrbt.u8 " q ", [" x ", #" at "]\n\t"
/* How many bytes the last step has, `before` being those of the steps before it. */
#define LAST(before) "sub r0, r9, #" before "\n\tvctp.8 r0\n\t"
#define LOAD_3_LAST(a, b, c, before)                                                                         \
    LAST(before) "vpsttt\n\t" LOAD_LAST(a, "r1", before) LOAD_LAST(b, "r3", before) LOAD_LAST(c, "r5", before)
#define LOAD_3_BOTH(at, last)                                                                                \
    LOAD("q0", "r1", at)                                                                                     \
    LOAD("q2", "r3", at) LOAD("q4", "r5", at) LOAD_3_LAST("q1", "q3", "q5", last)
#define LOAD_2_LAST(a, b, before)                                                                            \
    LAST(before) "vpstt\n\t" LOAD_LAST(a, "r1", before) LOAD_LAST(b, "r3", before)
#define LOAD_2_ALL(at, next, last)                                                                           \
    LOAD("q0", "r1", at)                                                                                     \
    LOAD("q3", "r3", at)                                                                                     \
    LOAD("q1", "r1", next) LOAD("q4", "r3", next) LOAD_2_LAST("q2", "q5", last)
#define LOAD_1_LAST(q, before) LAST(before) "vpst\n\t" LOAD_LAST(q, "r1", before)
#define LOAD_1_UP_TO_2 LOAD("q0", "r1", "0")
#define LOAD_1_UP_TO_3 LOAD_1_UP_TO_2 LOAD("q1", "r1", "16")
#define LOAD_1_UP_TO_4 LOAD_1_UP_TO_3 LOAD("q2", "r1", "32")
#define LOAD_1_UP_TO_5 LOAD_1_UP_TO_4 LOAD("q3", "r1", "48")
#define LOAD_1_UP_TO_6 LOAD_1_UP_TO_5 LOAD("q4", "r1", "64")
#define LOAD_1_UP_TO_7 LOAD_1_UP_TO_6 LOAD("q5", "r1", "80")
#define LOAD_1_EIGHT                                                                                         \
    LOAD("q0", "r1", "32")                                                                                   \
    LOAD("q1", "r1", "48")                                                                                   \
    LOAD("q2", "r1", "64") LOAD("q3", "r1", "80") LOAD("q4", "r1", "96") LOAD_1_LAST("q5", "112")

/* Two channels, or four of one pixel. */
#define PAIR_3(CHANNEL)                                                                                      \
    CHANNEL("r0", "r2", "r4")                                                                                \
    CHANNEL("r6", "r8", "r10")                                                                               \
    "strd r2, r8, [r11, #64]\n\t"                                                                            \
    "strd r4, r10, [r11, #128]\n\t"                                                                          \
    "strd r0, r6, [r11], #8\n\t"
#define PAIR_2(CHANNEL)                                                                                      \
    CHANNEL("r0", "r2")                                                                                      \
    CHANNEL("r6", "r8")                                                                                      \
    "strd r2, r8, [r11, #64]\n\t"                                                                            \
    "strd r0, r6, [r11], #8\n\t"
#define FOUR_1(CHANNEL)                                                                                      \
    CHANNEL("r0")                                                                                            \
    CHANNEL("r2")                                                                                            \
    CHANNEL("r4")                                                                                            \
    CHANNEL("r6")                                                                                            \
    "strd r4, r6, [r11, #8]\n\t"                                                                             \
    "strd r0, r2, [r11], #16\n\t"

#define LOADS_3_1 LOAD_3_LAST("q0", "q2", "q4", "0")
#define LOADS_3_2 LOAD_3_BOTH("0", "16")
#define LOADS_3_3 LOAD_3_BOTH("16", "32")
#define LOADS_3_4 LOAD_3_BOTH("32", "48")
#define LOADS_2_1 LOAD_2_LAST("q0", "q3", "0")
#define LOADS_2_2 LOAD("q0", "r1", "0") LOAD("q3", "r3", "0") LOAD_2_LAST("q1", "q4", "16")
#define LOADS_2_3 LOAD_2_ALL("0", "16", "32")
#define LOADS_2_4 LOAD_2_ALL("16", "32", "48")
#define LOADS_1_1 LOAD_1_LAST("q0", "0")
#define LOADS_1_2 LOAD_1_UP_TO_2 LOAD_1_LAST("q1", "16")
#define LOADS_1_3 LOAD_1_UP_TO_3 LOAD_1_LAST("q2", "32")
#define LOADS_1_4 LOAD_1_UP_TO_4 LOAD_1_LAST("q3", "48")
#define LOADS_1_5 LOAD_1_UP_TO_5 LOAD_1_LAST("q4", "64")
#define LOADS_1_6 LOAD_1_UP_TO_6 LOAD_1_LAST("q5", "80")
#define LOADS_1_7 LOAD_1_UP_TO_7 LOAD_1_LAST("q6", "96")
#define LOADS_1_8 LOAD_1_EIGHT

/* `groups` pairs or fours of channels of `product`, whose windows are one run each; moves its weights on. */
#define ARENITE_MVE_RESIDENT_RUN(product, sums, groups, LOADS, CHANNELS)                                     \
    do {                                                                                                     \
        register arenite_mve_product_t *const run_product __asm__("r12") = (product);                        \
        register int32_t *run_sums __asm__("r11") = (sums);                                                  \
        register int32_t run_groups __asm__("lr") = (groups);                                                \
        __asm__ volatile("ldr r7, [r12]\n\t"                                                                 \
                         "ldr r9, [r12, #8]\n\t"                                                             \
                         "ldrd r1, r3, [r12, #16]\n\t"                                                       \
                         "ldr r5, [r12, #24]\n\t" LOADS "dls lr, lr\n"                                       \
                         "1:\n\t" CHANNELS "le lr, 1b\n\t"                                                   \
                         "str r7, [r12]"                                                                     \
                         : "+r"(run_sums), "+r"(run_groups)                                                  \
                         : "r"(run_product)                                                                  \
                         : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "q0", "q1",    \
                           "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");                              \
    } while (0)

#endif
