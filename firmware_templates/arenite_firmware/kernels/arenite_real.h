/* SPDX-License-Identifier: Apache-2.0 */
/* float32 as the reference kernels compute it: no contraction into fused operations, exponentials of its own. */
#ifndef ARENITE_REAL_H
#define ARENITE_REAL_H

#include <stdint.h>

/* GCC does not contract with -std=c99; Clang would. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

static inline float arenite_clamp_real(float value, float low, float high) {
    return value < low ? low : (value > high ? high : value);
}

/* exp(x), correctly rounded but for a few arguments in 10^9, where it is the neighbour: computed in double as
 * 2^n * exp(r), |r| <= ln(2) / 2, by its series. 0 below -104, the greatest float above 88.7. */
float arenite_exp(float x);

/* tanh(x), as accurate, from exp(2x). */
float arenite_tanh(float x);

/* ln(x), as accurate, for finite x that are neither 0 nor subnormal nor negative. */
float arenite_log(float x);

#endif
