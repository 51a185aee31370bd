/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED as arenite_conv_2d_s8 computes them, for computers: vector instructions found at run time.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 * Same parameters, packed otherwise. With blocks = ceil(out_c / 16):
 *   weights     [blocks][words][16][4]: 4 input bytes of 16 channels side by side, zeros where there is no channel or no
 *               byte; behind them, by arenite_conv_2d_s8_host only, in_c bytes of in_zero_point
 *   bias, multiplier, shift  of whole blocks, see arenite_host_blocks.h
 * All are 64-byte aligned.
 *
 * arenite_conv_2d_s8_host reads windows tap by tap where they lie: words = kernel_h * kernel_w * in_c / 4, in_c a multiple
 * of 4, at most ARENITE_HOST_TAPS taps. arenite_conv_2d_s8_host_runs is for few or odd channels: each row of a window is a
 * run of ceil(kernel_w * in_c / 4) words, read where it lies if its last word is inside the row, else from a copy on the
 * stack. kernel_h is at most ARENITE_HOST_RUNS, dilation_w or kernel_w is 1, and
 * kernel_h * ((5 * stride_w + kernel_w) * in_c + 4) at most ARENITE_HOST_COPIES. */
#ifndef ARENITE_CONV_2D_S8_HOST_H
#define ARENITE_CONV_2D_S8_HOST_H

#include "arenite_conv_2d_s8.h"

#define ARENITE_HOST_TAPS 128
#define ARENITE_HOST_RUNS 64
#define ARENITE_HOST_COPIES 16384 /* bytes */

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_host(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch);

#endif
