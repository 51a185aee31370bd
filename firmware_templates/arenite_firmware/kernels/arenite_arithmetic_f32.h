/* SPDX-License-Identifier: Apache-2.0 */
/* ADD, SUB, MUL, DIV, MAXIMUM and MINIMUM of float32, one output row a call, with broadcasts.
 * Authority: TFLM reference_ops::Add, Sub, Mul, Div, MaximumMinimumBroadcastSlow. */
#ifndef ARENITE_ARITHMETIC_F32_H
#define ARENITE_ARITHMETIC_F32_H

#include "arenite_binary.h"
#include "arenite_real.h"

enum { ARENITE_ADD, ARENITE_SUB, ARENITE_MUL, ARENITE_DIV, ARENITE_MAXIMUM, ARENITE_MINIMUM };

typedef struct {
    ARENITE_BINARY_STEPS;
    float act_min;
    float act_max;
    uint8_t operation; /* ARENITE_ADD .. ARENITE_MINIMUM */
} arenite_arithmetic_f32_t;

/* rows: one row of each side. out: width * channels floats; it may start at or before a side that is not broadcast. */
void arenite_arithmetic_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch);

#endif
