/* SPDX-License-Identifier: Apache-2.0 */
/* RESIZE_BILINEAR, int8, one output row a call.
 * Authority: TFLM reference_ops::ResizeBilinearInteger: positions in 1/1024 pixel, one rounding, half away from zero. */
#ifndef ARENITE_RESIZE_BILINEAR_S8_H
#define ARENITE_RESIZE_BILINEAR_S8_H

#include <stdint.h>

typedef struct {
    const int32_t
        *columns; /* int32[out_w][3]: bytes to the left and to the right pixel, weight of the right one */
    const int32_t *weights; /* int32[steps]: weight of the lower row */
    int32_t out_w;
    int32_t channels;
} arenite_resize_bilinear_s8_t;

/* Weights are 0 .. 1023, in 1/1024.
 * rows: the upper and the lower input row; the lower is NULL where there is none, then the upper serves for both.
 * out: out_w * channels bytes, apart from the rows. */
void arenite_resize_bilinear_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                int32_t *scratch);

#endif
