/* SPDX-License-Identifier: Apache-2.0 */
/* ARG_MAX and ARG_MIN along rows, pixels or channels of int8, positions in int32; steps as for arenite_reduce_sum_s8.
 * Authority: TFLM reference_ops::ArgMinMax: of equal bytes the first counts. */
#ifndef ARENITE_ARG_EXTREME_S8_H
#define ARENITE_ARG_EXTREME_S8_H

#include <stdint.h>

typedef struct {
    int32_t rows; /* that become one; 1 where rows are kept */
    int32_t width;
    int32_t channels;
    int32_t out_pixel_step; /* from output to output for neighbouring input pixels and channels; 0: reduced */
    int32_t out_channel_step;
    int32_t outputs;   /* positions of an output row */
    int32_t row_index; /* what a step along each adds to the position: 1 along the axis, else 0 */
    int32_t pixel_index;
    int32_t channel_index;
    int8_t flip; /* 0 for the greatest byte, -1 for the least: all bits turned over, the order turns round */
} arenite_arg_extreme_s8_t;

/* rows: one row of width * channels bytes. out: int32[outputs], little-endian. scratch: int32[outputs], int8[outputs]. */
void arenite_arg_extreme_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch);

#endif
