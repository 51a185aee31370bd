/* SPDX-License-Identifier: Apache-2.0 */
/* AVERAGE_POOL_2D of models that were uint8, moved to int8, one output row a call: halves round up.
 * Authority: LiteRT reference_ops::AveragePool for uint8. */
#ifndef ARENITE_AVERAGE_POOL_HALF_UP_S8_H
#define ARENITE_AVERAGE_POOL_HALF_UP_S8_H

#include "arenite_pool_s8.h"

typedef arenite_pool_s8_t arenite_average_pool_half_up_s8_t;

/* rows: kernel_h rows of in_w * channels bytes, or NULL. out: out_w * channels bytes, apart from all rows. */
void arenite_average_pool_half_up_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                     int32_t *scratch);

#endif
