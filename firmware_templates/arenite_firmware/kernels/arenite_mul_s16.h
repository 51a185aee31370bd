/* SPDX-License-Identifier: Apache-2.0 */
/* MUL, int16 with zero points of 0, one output row a call, with broadcasts.
 * Authority: TFLM reference_integer_ops::Mul for int16. */
#ifndef ARENITE_MUL_S16_H
#define ARENITE_MUL_S16_H

#include "arenite_mul_s8.h"

typedef arenite_mul_s8_t arenite_mul_s16_t;

/* rows: one row of each side. out: width * channels elements; it may start at or before a side that is not broadcast. */
void arenite_mul_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch);

#endif
