/* SPDX-License-Identifier: Apache-2.0 */
/* LOG_SOFTMAX over the channels of float32, one row a call.
 * Authority: TFLM reference_ops::LogSoftmax, but for its exponential and logarithm, see arenite_real.h. */
#ifndef ARENITE_LOG_SOFTMAX_F32_H
#define ARENITE_LOG_SOFTMAX_F32_H

#include "arenite_real.h"

typedef struct {
    int32_t width;
    int32_t channels;
} arenite_log_softmax_f32_t;

/* rows: width * channels floats. out: as many, apart from them. No scratch. */
void arenite_log_softmax_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch);

#endif
