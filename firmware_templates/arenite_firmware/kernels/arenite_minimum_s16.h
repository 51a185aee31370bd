/* SPDX-License-Identifier: Apache-2.0 */
/* MINIMUM of int16, one output row a call, with broadcasts over pixels and channels; all three tensors have one quantisation.
 * Authority: TFLM reference_ops::MaximumMinimumBroadcastSlow. */
#ifndef ARENITE_MINIMUM_S16_H
#define ARENITE_MINIMUM_S16_H

#include "arenite_minimum_s8.h"

typedef arenite_minimum_s8_t arenite_minimum_s16_t;

/* rows: one row of each side. out: width * channels elements; it may start at or before a side that is not broadcast. */
void arenite_minimum_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch);

#endif
