/* SPDX-License-Identifier: Apache-2.0 */
/* LEAKY_RELU and ABS of int16: one multiplier for what is not below zero, one for what is. One row a call.
 * Authority: TFLM reference_ops::QuantizeLeakyRelu, AbsEvalQuantized. */
#ifndef ARENITE_SLOPES_S16_H
#define ARENITE_SLOPES_S16_H

#include <stdint.h>

typedef struct {
    int32_t count;            /* elements of a row */
    int32_t above_multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t below_multiplier; /* or the negative of such a number */
    int8_t above_shift;       /* -31 .. 30, positive is left */
    int8_t below_shift;
} arenite_slopes_s16_t;

/* rows: one row with zero point 0. out: one row with zero point 0, apart from it or over it. No scratch. */
void arenite_slopes_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch);

#endif
