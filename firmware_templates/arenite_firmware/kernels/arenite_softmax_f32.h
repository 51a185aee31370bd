/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX over the channels of float32, one row a call.
 * Authority: TFLM reference_ops::Softmax, but for its exponential, see arenite_real.h. */
#ifndef ARENITE_SOFTMAX_F32_H
#define ARENITE_SOFTMAX_F32_H

#include "arenite_real.h"

typedef struct {
    int32_t width;
    int32_t channels;
    float beta;
} arenite_softmax_f32_t;

/* rows: width * channels floats. out: as many, apart from them. No scratch. */
void arenite_softmax_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch);

#endif
