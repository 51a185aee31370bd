/* SPDX-License-Identifier: Apache-2.0 */
/* MEAN and SUM over rows, pixels and channels, or some of them, int8. Where rows are reduced, each step adds one row to the
 * sums and the last step writes the only output row; otherwise each step makes the output row of its input row.
 * Authority: TFLM reference_ops::QuantizedMeanOrSum: a mean's divisor is part of the multiplier. Sums fit int32 up to 2^23
 * terms. */
#ifndef ARENITE_REDUCE_SUM_S8_H
#define ARENITE_REDUCE_SUM_S8_H

#include <stdint.h>

typedef struct {
    int32_t rows; /* that become one; 1 where rows are kept */
    int32_t width;
    int32_t channels;
    int32_t
        out_pixel_step; /* from sum to sum for neighbouring input pixels and channels; 0 where they are reduced */
    int32_t out_channel_step;
    int32_t outputs;        /* elements of an output row */
    int32_t offset;         /* added to each sum: -input zero point * terms */
    int32_t multiplier;     /* 0 .. 2^31 - 1 */
    int8_t shift;           /* -31 .. 30, positive is left */
    int16_t out_zero_point; /* -128 .. 127 */
} arenite_reduce_sum_s8_t;

/* rows: one row of width * channels bytes. out: `outputs` bytes. scratch: int32[outputs]. */
void arenite_reduce_sum_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                           int32_t *scratch);

#endif
