/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX over the channels, int16 to int16 with output scale 2^-15 and zero point 0, one row a call.
 * Authority: TFLM reference_ops::SoftmaxInt16: the exponential and 1 / (1 + x) are lines between 513 points. */
#ifndef ARENITE_SOFTMAX_S16_H
#define ARENITE_SOFTMAX_S16_H

#include <stdint.h>

typedef struct {
    const int16_t *exp_table;        /* [513]: exp(x) in Q0.15, x = -10 .. 0 */
    const int16_t *reciprocal_table; /* [513]: 1 / (1 + x) in Q0.15, x = 0 .. 1 */
    int32_t width;
    int32_t channels;   /* at most 65535, so that the sum in Q16.15 fits */
    int32_t multiplier; /* from a difference to 10/65535: 0 or 2^30 .. 2^31 - 1 */
    int8_t shift;       /* -31 .. 14, positive is left */
} arenite_softmax_s16_t;

/* rows: one row of width * channels elements. out: as many, apart from the row. No scratch. */
void arenite_softmax_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch);

#endif
