/* SPDX-License-Identifier: Apache-2.0 */
/* MEAN and SUM of int16, as of int8. Sums fit int32 up to 2^15 terms.
 * Authority: TFLM reference_ops::QuantizedMeanOrSum. */
#ifndef ARENITE_REDUCE_SUM_S16_H
#define ARENITE_REDUCE_SUM_S16_H

#include "arenite_reduce_sum_s8.h"

typedef arenite_reduce_sum_s8_t arenite_reduce_sum_s16_t;

/* rows: one row of width * channels elements. out: `outputs` elements. scratch: int32[outputs]. */
void arenite_reduce_sum_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch);

#endif
