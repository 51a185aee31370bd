/* SPDX-License-Identifier: Apache-2.0 */
/* SVDF, int8, its state and time weights int8.
 * Authority: TFLM EvalIntegerSvdfReference. */
#ifndef ARENITE_SVDF_S8_H
#define ARENITE_SVDF_S8_H

#include "arenite_svdf.h"

typedef arenite_svdf_t arenite_svdf_s8_t;

/* rows: the input, inputs bytes; the state, units * rank * memory elements, which is updated. out: units bytes, apart from
 * both. No scratch. */
void arenite_svdf_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch);

#endif
