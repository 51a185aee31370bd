/* SPDX-License-Identifier: Apache-2.0 */
/* EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, one output row a call, with broadcasts.
 * Authority: TFLM reference_ops::Comparison; int8 as BroadcastComparison4DSlow*WithScaling: both sides, times 2^8, are
 * brought to real steps first. */
#ifndef ARENITE_COMPARE_H
#define ARENITE_COMPARE_H

#include "arenite_binary.h"
#include "arenite_element.h"
#include "arenite_fixed_point.h"

enum { ARENITE_EQUAL, ARENITE_LESS, ARENITE_GREATER };

typedef struct {
    ARENITE_BINARY_STEPS;
    int32_t a_multiplier; /* of int8: 0 or 2^30 .. 2^31 - 1 */
    int32_t b_multiplier;
    int8_t a_shift; /* -31 .. 0 */
    int8_t b_shift;
    int16_t a_zero_point;
    int16_t b_zero_point;
    uint8_t type;     /* ARENITE_S8, ARENITE_S32, ARENITE_F32 or ARENITE_BOOL */
    uint8_t relation; /* ARENITE_EQUAL .. ARENITE_GREATER */
    uint8_t negated;  /* 1: the answer is turned over */
} arenite_compare_t;

/* rows: one row of each side. out: width * channels bytes of 0 or 1, apart from both. No scratch. */
void arenite_compare(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch);

#endif
