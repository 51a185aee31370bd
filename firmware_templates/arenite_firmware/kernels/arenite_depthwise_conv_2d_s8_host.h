/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTHWISE_CONV_2D as arenite_depthwise_conv_2d_s8 computes it, for computers: vector instructions found at run time.
 * Authority: TFLM reference_integer_ops::DepthwiseConvPerChannel (double rounding).
 *
 * Same parameters, packed otherwise; depth_multiplier is 1. With blocks = ceil(in_c / 16), groups = ceil(kernel_h / 4):
 *   weights     [blocks][kernel_w][groups][16][4]: 4 rows of the window side by side, zeros where there is no channel or no
 *               row; behind them 16 * blocks bytes of in_zero_point
 *   bias, multiplier, shift  of whole blocks, see arenite_host_blocks.h
 * All are 64-byte aligned. kernel_h is at most ARENITE_HOST_ROWS. */
#ifndef ARENITE_DEPTHWISE_CONV_2D_S8_HOST_H
#define ARENITE_DEPTHWISE_CONV_2D_S8_HOST_H

#include "arenite_depthwise_conv_2d_s8.h"

#define ARENITE_HOST_ROWS 12

/* rows, out: as arenite_depthwise_conv_2d_s8. No scratch. */
void arenite_depthwise_conv_2d_s8_host(const void *params, const int8_t *const *rows, int8_t *out,
                                       int32_t step, int32_t *scratch);

#endif
