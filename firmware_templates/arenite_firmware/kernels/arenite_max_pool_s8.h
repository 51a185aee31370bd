/* SPDX-License-Identifier: Apache-2.0 */
/* MAX_POOL_2D, int8, one output row a call. Pixels outside the input do not take part.
 * Authority: TFLM reference_integer_ops::MaxPool. */
#ifndef ARENITE_MAX_POOL_S8_H
#define ARENITE_MAX_POOL_S8_H

#include "arenite_pool_s8.h"

typedef arenite_pool_s8_t arenite_max_pool_s8_t;

/* rows: kernel_h rows of in_w * channels bytes, or NULL. out: out_w * channels bytes, apart from all rows. */
void arenite_max_pool_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch);

#endif
