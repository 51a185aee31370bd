/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_MATMUL, int16, whose zero points are 0.
 * Authority: TFLM reference_ops::BatchMatMul. */
#ifndef ARENITE_BATCH_MATMUL_S16_H
#define ARENITE_BATCH_MATMUL_S16_H

#include "arenite_batch_matmul.h"

typedef arenite_batch_matmul_t arenite_batch_matmul_s16_t;

/* rows: the whole left side, the whole right side. out: columns elements, apart from both. No scratch. */
void arenite_batch_matmul_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                              int32_t *scratch);

#endif
