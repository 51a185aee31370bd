/* SPDX-License-Identifier: Apache-2.0 */
/* SQUARED_DIFFERENCE, int16 with zero points of 0, one output row a call, with broadcasts over pixels and channels.
 * Authority: TFLM squared_difference.cc: both sides on twice the larger scale, subtracted, squared, requantised. A difference is
 * at most 2^15, so its square fits int32. */
#ifndef ARENITE_SQUARED_DIFFERENCE_S16_H
#define ARENITE_SQUARED_DIFFERENCE_S16_H

#include "arenite_squared_difference_s8.h"

typedef arenite_squared_difference_s8_t arenite_squared_difference_s16_t;

/* rows: one row of each side. out: width * channels elements; it may start at or before a side that is not broadcast. */
void arenite_squared_difference_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                    int32_t *scratch);

#endif
