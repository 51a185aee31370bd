/* SPDX-License-Identifier: Apache-2.0 */
/* PRELU, int8, one output row a call: the second side is the slope of values below zero, usually broadcast.
 * Authority: TFLM reference_ops::BroadcastPrelu4DSlow. */
#ifndef ARENITE_PRELU_S8_H
#define ARENITE_PRELU_S8_H

#include <stdint.h>

#include "arenite_binary.h"
#include "arenite_fixed_point.h"

typedef struct {
    ARENITE_BINARY_STEPS;
    int32_t positive_multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t negative_multiplier;
    int8_t positive_shift; /* -31 .. 30, positive is left */
    int8_t negative_shift;
    int16_t a_zero_point; /* -128 .. 127, as the model has it (not negated) */
    int16_t b_zero_point;
    int16_t out_zero_point;
} arenite_prelu_s8_t;

/* rows: one row of each side. out: width * channels bytes; it may start at or before a side that is not broadcast. */
void arenite_prelu_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                      int32_t *scratch);

#endif
