/* SPDX-License-Identifier: Apache-2.0 */
/* A block of 16 channels of depthwise windows: assembly for the kernels with MVE.
 *
 * MVE adds no products of bytes in wider lanes. Two products fit 16 bits, as no weight is -128: so those of the even and
 * of the odd channels of a block are made there, of two taps, and widened into four vectors of sums, which are in the order
 * of ARENITE_MVE_CHANNEL. Sums lie in q0 .. q3; products of the even channels in q4, of the odd ones in q5. r7 takes all that
 * a block needs in one stream: biases, weights by taps, multipliers and shifts. */
#ifndef ARENITE_DEPTHWISE_MVE_BLOCK_H
#define ARENITE_DEPTHWISE_MVE_BLOCK_H

#include "arenite_mve.h"

#define FIRST_TAP(x)                                                                                         \
    "vldrb.8 q6, [" x "], #16\n\t"                                                                           \
    "vldrb.8 q7, [r7], #16\n\t"                                                                              \
    "vmullb.s8 q4, q6, q7\n\t"                                                                               \
    "vmullt.s8 q5, q6, q7\n\t"
#define SECOND_TAP(x)                                                                                        \
    "vldrb.8 q6, [" x "]\n\t"                                                                                \
    "vldrb.8 q7, [r7], #16\n\t"                                                                              \
    "vmullb.s8 q6, q6, q7\n\t"                                                                               \
    "vadd.i16 q4, q4, q6\n\t"                                                                                \
    "vldrb.8 q6, [" x "], #16\n\t"                                                                           \
    "vmullt.s8 q6, q6, q7\n\t"                                                                               \
    "vadd.i16 q5, q5, q6\n\t"
#define WIDEN                                                                                                \
    "vmovlb.s16 q6, q4\n\t"                                                                                  \
    "vmovlb.s16 q7, q5\n\t"                                                                                  \
    "vadd.i32 q0, q0, q6\n\t"                                                                                \
    "vmovlt.s16 q4, q4\n\t"                                                                                  \
    "vadd.i32 q1, q1, q7\n\t"                                                                                \
    "vmovlt.s16 q5, q5\n\t"                                                                                  \
    "vadd.i32 q2, q2, q4\n\t"                                                                                \
    "vadd.i32 q3, q3, q5\n\t"
#define TIES_DOWN(q)                                                                                         \
    "vshr.s32 q6, " q ", #31\n\t"                                                                            \
    "vadd.i32 " q ", " q ", q6\n\t"
#define TIES_UP(q)
#define SCALE(q, ties)                                                                                       \
    "vldrw.u32 q4, [r7], #16\n\t"                                                                            \
    "vldrb.s32 q5, [r7], #4\n\t"                                                                             \
    "vqrdmulh.s32 " q ", " q ", q4\n\t" ties(q) "vrshl.s32 " q ", " q ", q5\n\t"
#define BIAS                                                                                                 \
    "vldrw.u32 q0, [r7], #16\n\t"                                                                            \
    "vldrw.u32 q1, [r7], #16\n\t"                                                                            \
    "vldrw.u32 q2, [r7], #16\n\t"                                                                            \
    "vldrw.u32 q3, [r7], #16\n\t"
#define NARROW                                                                                               \
    "vqmovnb.s32 q0, q0\n\t"                                                                                 \
    "vqmovnt.s32 q0, q2\n\t"                                                                                 \
    "vqmovnb.s32 q1, q1\n\t"                                                                                 \
    "vqmovnt.s32 q1, q3\n\t"
#define ADD_ZERO_POINT(zero_point)                                                                           \
    "vqadd.s16 q0, q0, " zero_point "\n\t"                                                                   \
    "vqadd.s16 q1, q1, " zero_point "\n\t"                                                                   \
    "vqmovnb.s16 q0, q0\n\t"                                                                                 \
    "vqmovnt.s16 q0, q1\n\t"

#endif
