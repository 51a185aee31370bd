/* SPDX-License-Identifier: Apache-2.0 */
/* FULLY_CONNECTED of float32, one output row a call.
 * Authority: TFLM reference_ops::FullyConnected: products added in the order of the inputs, then the bias. */
#ifndef ARENITE_FULLY_CONNECTED_F32_H
#define ARENITE_FULLY_CONNECTED_F32_H

#include "arenite_real.h"

typedef struct {
    const float *weights; /* [out_c][in_c] */
    const float *bias;    /* [out_c] */
    int32_t in_c;
    int32_t out_c;
    float act_min;
    float act_max;
} arenite_fully_connected_f32_t;

/* rows: in_c floats. out: out_c floats, apart from them. No scratch. */
void arenite_fully_connected_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch);

#endif
