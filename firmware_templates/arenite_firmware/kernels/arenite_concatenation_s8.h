/* SPDX-License-Identifier: Apache-2.0 */
/* CONCATENATION of values of one quantisation along rows, pixels or channels, one output row a call.
 * Authority: TFLM reference_ops::Concatenation. */
#ifndef ARENITE_CONCATENATION_S8_H
#define ARENITE_CONCATENATION_S8_H

#include <stdint.h>

typedef struct {
    const int32_t *chunks; /* [count]: neighbouring bytes that each value puts into the row at a time */
    int32_t count;         /* values */
    int32_t repeats;       /* times that they take turns: pixels of the row along channels, else 1 */
} arenite_concatenation_s8_t;

/* rows: one row of each value, repeats * chunks[i] bytes, or NULL for a value that has no part in this row.
 * out: all of them, apart from the rows. */
void arenite_concatenation_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                              int32_t *scratch);

#endif
