/* SPDX-License-Identifier: Apache-2.0 */
/* MEAN over height and width, int8: each step adds one row to the sums, the last step writes the result.
 * Authority: TFLM reference_ops::QuantizedMeanOrSum: the divisor is part of the multiplier, also where both ends have one
 * quantisation. Sums fit int32 up to 2^23 pixels. */
#ifndef ARENITE_MEAN_S8_H
#define ARENITE_MEAN_S8_H

#include <stdint.h>

typedef struct {
    int32_t rows;
    int32_t width;
    int32_t channels;
    int32_t multiplier; /* 0 .. 2^31 - 1 */
    int8_t shift;       /* -31 .. 30, positive is left */
    int16_t in_zero_point;
    int16_t out_zero_point;
} arenite_mean_s8_t;

/* rows: one row of width * channels bytes. out: channels bytes, written by the last step. scratch: int32[channels]. */
void arenite_mean_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch);

#endif
