/* SPDX-License-Identifier: Apache-2.0 */
/* QUANTIZE between integers of any two types, and clamps of int16 by themselves, one row a call.
 * Authority: TFLM reference_ops::Requantize, ReluQuantized. */
#ifndef ARENITE_QUANTISE_INT_H
#define ARENITE_QUANTISE_INT_H

#include "arenite_element.h"

typedef struct {
    int32_t count;      /* elements of a row */
    int32_t multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t low;
    int32_t high;
    int32_t in_zero_point;
    int32_t out_zero_point;
    int8_t shift; /* -31 .. 30, positive is left */
    uint8_t from; /* ARENITE_S8 .. ARENITE_S32 */
    uint8_t to;
} arenite_quantise_int_t;

/* rows: one row. out: one row, apart from it or, where both types are one, over it. No scratch. */
void arenite_quantise_int(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                          int32_t *scratch);

#endif
