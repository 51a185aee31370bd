/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE_MAX and REDUCE_MIN over rows, pixels and channels, or some of them, int8; steps as for arenite_reduce_sum_s8.
 * Authority: TFLM reference_ops::ReduceGeneric. */
#ifndef ARENITE_REDUCE_EXTREME_S8_H
#define ARENITE_REDUCE_EXTREME_S8_H

#include <stdint.h>

typedef struct {
    int32_t rows; /* that become one; 1 where rows are kept */
    int32_t width;
    int32_t channels;
    int32_t out_pixel_step; /* from output to output for neighbouring input pixels and channels; 0: reduced */
    int32_t out_channel_step;
    int32_t outputs; /* bytes of an output row */
    int8_t flip; /* 0 for the greatest byte, -1 for the least: all bits turned over, the order turns round */
} arenite_reduce_extreme_s8_t;

/* rows: one row of width * channels bytes. out: `outputs` bytes. scratch: int8[outputs]. */
void arenite_reduce_extreme_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                               int32_t *scratch);

#endif
