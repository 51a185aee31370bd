/* SPDX-License-Identifier: Apache-2.0 */
/* Any operator of one byte in, one byte out (QUANTIZE, RELU, RELU6): the generator computed its 256 answers.
 * Authority: TFLM reference_ops::Requantize and the operator's own reference kernel; the table holds what they give. */
#ifndef ARENITE_LOOKUP_S8_H
#define ARENITE_LOOKUP_S8_H

#include <stdint.h>

typedef struct {
    const int8_t *table; /* [256], indexed by the input's bits as uint8 */
    int32_t count;       /* bytes a row */
} arenite_lookup_s8_t;

/* rows: one row of count bytes. out: as many; it may start at or before the row. */
void arenite_lookup_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch);

#endif
