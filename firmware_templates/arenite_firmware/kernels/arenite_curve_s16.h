/* SPDX-License-Identifier: Apache-2.0 */
/* LOGISTIC and TANH, int16, one row a call.
 * Authority: TFLM reference_integer_ops::Logistic and Tanh for int16. */
#ifndef ARENITE_CURVE_S16_H
#define ARENITE_CURVE_S16_H

#include "arenite_curve_16.h"

typedef struct {
    const uint16_t *table; /* [256], see arenite_curve_16.h */
    int32_t count;         /* elements of a row */
    int32_t multiplier;    /* 1 .. 32767, or 3 * 2^n */
    int32_t right_shift;
    uint8_t is_tanh;
} arenite_curve_s16_t;

/* rows: one row. out: as many elements, apart from the row or over it. No scratch. */
void arenite_curve_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch);

#endif
