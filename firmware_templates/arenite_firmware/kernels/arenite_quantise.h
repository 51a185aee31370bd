/* SPDX-License-Identifier: Apache-2.0 */
/* QUANTIZE from float32 to int8 or int16, one row a call: round(x / scale), half away from zero, + zero_point.
 * Authority: TFLM reference_ops::AffineQuantize. */
#ifndef ARENITE_QUANTISE_H
#define ARENITE_QUANTISE_H

#include "arenite_element.h"

typedef struct {
    int32_t count; /* elements of a row */
    float scale;   /* above 0 */
    int32_t zero_point;
    int32_t low;
    int32_t high;
    uint8_t to; /* ARENITE_S8 or ARENITE_S16 */
} arenite_quantise_t;

/* rows: count floats. out: one row, apart from it. No scratch. */
void arenite_quantise(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                      int32_t *scratch);

#endif
