/* SPDX-License-Identifier: Apache-2.0 */
/* SUB, int16 with zero points of 0, one output row a call, with broadcasts.
 * Authority: TFLM reference_ops::Sub for int16. */
#ifndef ARENITE_SUB_S16_H
#define ARENITE_SUB_S16_H

#include "arenite_add_s8.h"

typedef arenite_add_s8_t arenite_sub_s16_t;

/* rows: one row of each side. out: width * channels elements; it may start at or before a side that is not broadcast. */
void arenite_sub_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch);

#endif
