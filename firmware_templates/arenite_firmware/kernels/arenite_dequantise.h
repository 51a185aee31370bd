/* SPDX-License-Identifier: Apache-2.0 */
/* DEQUANTIZE from int8, uint8 or int16 to float32, one row a call: scale * (q - zero_point).
 * Authority: TFLM reference_ops::Dequantize, whose product in double rounds to the same float. */
#ifndef ARENITE_DEQUANTISE_H
#define ARENITE_DEQUANTISE_H

#include "arenite_element.h"

typedef struct {
    int32_t count; /* elements of a row */
    float scale;
    int32_t zero_point;
    uint8_t from; /* ARENITE_S8, ARENITE_U8 or ARENITE_S16 */
} arenite_dequantise_t;

/* rows: one row. out: count floats, apart from it. No scratch. */
void arenite_dequantise(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch);

#endif
