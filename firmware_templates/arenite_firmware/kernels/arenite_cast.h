/* SPDX-License-Identifier: Apache-2.0 */
/* CAST between integers, float32 and bool, one row a call. From float it cuts off what is behind the point; beyond the
 * type, where C leaves it open, it takes the end of int32.
 * Authority: TFLM copyCast. */
#ifndef ARENITE_CAST_H
#define ARENITE_CAST_H

#include "arenite_element.h"

typedef struct {
    int32_t count; /* elements of a row */
    uint8_t from;  /* ARENITE_S8 .. ARENITE_BOOL */
    uint8_t to;
} arenite_cast_t;

/* rows: one row. out: one row, apart from it. No scratch. */
void arenite_cast(const void *params, const int8_t *const *rows, int8_t *out, int32_t step, int32_t *scratch);

#endif
