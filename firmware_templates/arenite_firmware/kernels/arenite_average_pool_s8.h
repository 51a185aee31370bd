/* SPDX-License-Identifier: Apache-2.0 */
/* AVERAGE_POOL_2D, int8, one output row a call. Pixels outside the input count neither in the sum nor in the divisor.
 * Authority: TFLM reference_integer_ops::AveragePool: rounds half away from zero. Sums fit int32 up to 2^24 pixels. */
#ifndef ARENITE_AVERAGE_POOL_S8_H
#define ARENITE_AVERAGE_POOL_S8_H

#include "arenite_pool_s8.h"

typedef arenite_pool_s8_t arenite_average_pool_s8_t;

/* rows: kernel_h rows of in_w * channels bytes, or NULL. out: out_w * channels bytes, apart from all rows. */
void arenite_average_pool_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch);

#endif
