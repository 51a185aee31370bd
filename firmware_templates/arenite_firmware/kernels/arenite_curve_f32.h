/* SPDX-License-Identifier: Apache-2.0 */
/* LOGISTIC, TANH, and clamps (RELU, RELU6, RELU_N1_TO_1) of float32, one row a call.
 * Authority: TFLM reference_ops::Logistic, Tanh, relu_common, but for the exponential, see arenite_real.h. */
#ifndef ARENITE_CURVE_F32_H
#define ARENITE_CURVE_F32_H

#include "arenite_real.h"

enum { ARENITE_CLAMP_F32, ARENITE_LOGISTIC_F32, ARENITE_TANH_F32 };

typedef struct {
    int32_t count; /* elements of a row */
    float low;     /* of a clamp */
    float high;
    uint8_t curve; /* ARENITE_CLAMP_F32 .. ARENITE_TANH_F32 */
} arenite_curve_f32_t;

/* rows: count floats. out: as many, apart from them or over them. No scratch. */
void arenite_curve_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                       int32_t *scratch);

#endif
