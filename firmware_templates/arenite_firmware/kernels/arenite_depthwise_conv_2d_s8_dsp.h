/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTHWISE_CONV_2D with the DSP extension, windows of 3 x 3 pixels, not dilated along the row, channel multiplier 1.
 * Authority: TFLM reference_integer_ops::DepthwiseConvPerChannel (double rounding).
 *
 * The same parameters as arenite_depthwise_conv_2d_s8, packed otherwise. A channel is made from the left to the right, its
 * weights in registers; the upper two rows of a column are one pair of int16 and serve three windows.
 *   weights  arenite_dsp_depthwise_t[in_c]
 *   bias, multiplier, shift  none
 * No sum with its bias reaches 2^30. */
#ifndef ARENITE_DEPTHWISE_CONV_2D_S8_DSP_H
#define ARENITE_DEPTHWISE_CONV_2D_S8_DSP_H

#include "arenite_depthwise_conv_2d_s8.h"
#include "arenite_dsp.h"

/* One channel. Bytes of the words, the first in the lowest bits: w[ky][kx] of (ky, kx) =
 * {(0, 0), (0, 1), (1, 0), (1, 1)}, {(0, 2), (2, 1), (1, 2), (2, 0)}, {(2, 2), none, none, none}. */
typedef struct {
    uint32_t words[3];
    arenite_dsp_channel_t scale;
} arenite_dsp_depthwise_t;

/* rows, out: as arenite_depthwise_conv_2d_s8. No scratch. */
void arenite_depthwise_conv_2d_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out,
                                      int32_t step, int32_t *scratch);

#endif
