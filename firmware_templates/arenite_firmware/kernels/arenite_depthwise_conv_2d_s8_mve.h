/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTHWISE_CONV_2D as arenite_depthwise_conv_2d_s8 computes it, for processors with MVE (Helium).
 * Authority: TFLM reference_integer_ops::DepthwiseConvPerChannel (double rounding).
 *
 * The same parameters, packed otherwise. `weights` holds everything in the order of use, in blocks of 16 channels. Where
 * there is no channel lie zeros, or, if in_c divides 16, the first channels again, for the pixels that follow:
 *   int32[16] bias, in the order of ARENITE_MVE_CHANNEL
 *   int8[kernel_h * kernel_w][16] weights, -127 .. 127, in the order of channels
 *   4 times int32[4] multiplier, int8[4] shift, in the order of ARENITE_MVE_CHANNEL
 * and behind the blocks in_c bytes of in_zero_point. bias, multiplier and shift are NULL, per_channel is one of
 * arenite_mve_mode_t. depth_multiplier is 1, and kernel_h * kernel_w at most ARENITE_MVE_TAPS. */
#ifndef ARENITE_DEPTHWISE_CONV_2D_S8_MVE_H
#define ARENITE_DEPTHWISE_CONV_2D_S8_MVE_H

#include "arenite_depthwise_conv_2d_s8.h"

#define ARENITE_MVE_TAPS 49 /* 7x7 */

/* rows, out: as arenite_depthwise_conv_2d_s8. No scratch. */
void arenite_depthwise_conv_2d_s8_mve(const void *params, const int8_t *const *rows, int8_t *out,
                                      int32_t step, int32_t *scratch);

#endif
