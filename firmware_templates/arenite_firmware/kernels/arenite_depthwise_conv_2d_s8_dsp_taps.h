/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTHWISE_CONV_2D with the DSP extension, windows of at most ARENITE_DSP_DEPTHWISE_TAPS pixels, channel multiplier 1.
 * Authority: TFLM reference_integer_ops::DepthwiseConvPerChannel (double rounding).
 *
 * The same parameters as arenite_depthwise_conv_2d_s8, packed otherwise. Two taps of four channels are summed at once.
 *   weights  int8[in_c / 4][taps / 2][8], both rounded up, zeros where there is none: of taps t and t + 1, channels c to
 *            c + 3, the bytes {t: c, c + 2; t + 1: c, c + 2; t: c + 1, c + 3; t + 1: c + 1, c + 3}; behind them
 *            int8[in_c] of in_zero_point, in_c rounded up to 4
 *   bias     arenite_dsp_channel_t[in_c], rounded up to four
 *   multiplier, shift  none
 * No sum with its bias reaches 2^30. */
#ifndef ARENITE_DEPTHWISE_CONV_2D_S8_DSP_TAPS_H
#define ARENITE_DEPTHWISE_CONV_2D_S8_DSP_TAPS_H

#include "arenite_depthwise_conv_2d_s8.h"

/* Even. A pointer and a word on the stack for each. */
#define ARENITE_DSP_DEPTHWISE_TAPS 64

/* rows, out: as arenite_depthwise_conv_2d_s8. No scratch. */
void arenite_depthwise_conv_2d_s8_dsp_taps(const void *params, const int8_t *const *rows, int8_t *out,
                                           int32_t step, int32_t *scratch);

#endif
