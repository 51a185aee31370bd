/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTHWISE_CONV_2D with the DSP extension, windows of at most ARENITE_DSP_DEPTHWISE_TAPS pixels, channel multiplier 1.
 * Authority: TFLM reference_integer_ops::DepthwiseConvPerChannel (double rounding).
 *
 * The same parameters as arenite_depthwise_conv_2d_s8, packed otherwise. Four channels of one pixel are summed at once.
 *   weights  int8[in_c / 4][taps][4], rounded up, zeros where there is none; behind them int8[in_c] of in_zero_point, in_c
 *            rounded up to 4
 *   bias     arenite_dsp_channel_t[in_c], rounded up to four
 *   multiplier, shift  none
 * No sum with its bias reaches 2^30. */
#ifndef ARENITE_DEPTHWISE_CONV_2D_S8_DSP_TAPS_H
#define ARENITE_DEPTHWISE_CONV_2D_S8_DSP_TAPS_H

#include "arenite_depthwise_conv_2d_s8.h"

/* A pointer and a word on the stack for each. */
#define ARENITE_DSP_DEPTHWISE_TAPS 64

/* rows, out: as arenite_depthwise_conv_2d_s8. No scratch. */
void arenite_depthwise_conv_2d_s8_dsp_taps(const void *params, const int8_t *const *rows, int8_t *out,
                                           int32_t step, int32_t *scratch);

#endif
