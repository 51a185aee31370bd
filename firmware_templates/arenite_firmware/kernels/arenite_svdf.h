/* SPDX-License-Identifier: Apache-2.0 */
/* SVDF, a state with a zero point of 0: each filter turns the input into one number and weighs the last `memory` of these; a unit sums its filters. */
#ifndef ARENITE_SVDF_H
#define ARENITE_SVDF_H

#include <stdint.h>

#include "arenite_fixed_point.h"

typedef struct {
    const int8_t *feature_weights; /* [units * rank][inputs] */
    const void *time_weights;      /* [units * rank][memory], of the state's type */
    const int32_t *bias;           /* [units] */
    int32_t inputs;
    int32_t units;
    int32_t rank; /* filters of a unit */
    int32_t memory;
    int32_t state_multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t out_multiplier;
    int8_t state_shift; /* -31 .. 30, positive is left */
    int8_t out_shift;
    int16_t in_zero_point;
    int16_t out_zero_point;
} arenite_svdf_t;

#endif
