/* SPDX-License-Identifier: Apache-2.0 */
/* MUL, int8, one output row a call, with broadcasts over pixels and channels.
 * Authority: TFLM reference_integer_ops::Mul: the product of the differences from the zero points, requantised once. */
#ifndef ARENITE_MUL_S8_H
#define ARENITE_MUL_S8_H

#include <stdint.h>

#include "arenite_binary.h"
#include "arenite_fixed_point.h"

typedef struct {
    ARENITE_BINARY_STEPS;
    int32_t multiplier;   /* 0 or 2^30 .. 2^31 - 1 */
    int8_t shift;         /* -31 .. 30, positive is left */
    int16_t a_zero_point; /* -128 .. 127, as the model has it (not negated) */
    int16_t b_zero_point;
    int16_t out_zero_point;
    int16_t act_min;
    int16_t act_max;
} arenite_mul_s8_t;

/* rows: one row of each side. out: width * channels bytes; it may start at or before a side that is not broadcast. */
void arenite_mul_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch);

#endif
