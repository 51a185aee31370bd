/* SPDX-License-Identifier: Apache-2.0 */
/* AVERAGE_POOL_2D, int16, one output row a call. Pixels outside the input take no part.
 * Authority: TFLM reference_integer_ops::AveragePool for int16. */
#ifndef ARENITE_AVERAGE_POOL_S16_H
#define ARENITE_AVERAGE_POOL_S16_H

#include "arenite_pool_s8.h"

typedef arenite_pool_s8_t arenite_average_pool_s16_t;

/* rows: kernel_h rows of in_w * channels elements, or NULL. out: out_w * channels elements, apart from all rows. */
void arenite_average_pool_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                              int32_t *scratch);

#endif
