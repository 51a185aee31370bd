/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED with the DSP extension, for windows of at most ARENITE_DSP_PIECES pixels. For more than 12
 * channels as much of a window as there is room for is widened to int16 once; the rest is read where it lies.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 * The same parameters as arenite_conv_2d_s8, packed otherwise, and in_c is a multiple of 4 unless the window is one pixel.
 * Four channels of one pixel are summed at once. taps = kernel_h * kernel_w * in_c, k = 0 .. taps - 1 in the window's order:
 *   weights  int16[out_c / 4][taps / 4][2][4], both rounded up, zeros where there is none: of channels a and a + 1, then
 *            of a + 2 and a + 3, the values that arenite_conv_2d_s8_dsp.h describes; behind them int8[in_c] of
 *            in_zero_point, in_c rounded up to 4
 *   bias     arenite_dsp_channel_t[out_c], rounded up to four
 *   multiplier, shift  none
 * For each channel 128 * sum |w| < 2^23, and no sum with its bias reaches 2^30. */
#ifndef ARENITE_CONV_2D_S8_DSP_ROWS_H
#define ARENITE_CONV_2D_S8_DSP_ROWS_H

#include "arenite_conv_2d_s8.h"

/* Pixels of a window; an entry of 12 bytes on the stack for each, and two more. What is widened lies there too. */
#define ARENITE_DSP_PIECES 64

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_dsp_rows(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch);

#endif
