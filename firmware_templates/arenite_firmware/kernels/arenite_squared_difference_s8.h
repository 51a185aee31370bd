/* SPDX-License-Identifier: Apache-2.0 */
/* SQUARED_DIFFERENCE, int8, one output row a call, with broadcasts over pixels and channels.
 * Authority: TFLM squared_difference.cc: both sides times 2^7 on twice the larger scale, subtracted, squared, requantised.
 * A difference is at most 255 * 2^7, so its square fits int32. */
#ifndef ARENITE_SQUARED_DIFFERENCE_S8_H
#define ARENITE_SQUARED_DIFFERENCE_S8_H

#include <stdint.h>

#include "arenite_binary.h"
#include "arenite_fixed_point.h"

typedef struct {
    ARENITE_BINARY_STEPS;
    int32_t a_multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t b_multiplier;
    int32_t multiplier;
    int8_t a_right_shift; /* 0 .. 31 */
    int8_t b_right_shift;
    int8_t shift;         /* -31 .. 30, positive is left */
    int16_t a_zero_point; /* -128 .. 127, as the model has it (not negated) */
    int16_t b_zero_point;
    int16_t out_zero_point;
} arenite_squared_difference_s8_t;

/* rows: one row of each side. out: width * channels bytes; it may start at or before a side that is not broadcast. */
void arenite_squared_difference_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                   int32_t *scratch);

#endif
