/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED with the DSP extension, for windows of at most ARENITE_DSP_TAPS bytes.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 * The same parameters as arenite_conv_2d_s8, packed otherwise. The windows of two pixels are copied as int16; then two
 * channels of both pixels are summed at once. taps = kernel_h * kernel_w * in_c, k = 0 .. taps - 1 in the window's order:
 *   weights  int16[out_c / 2][taps / 4][4], both rounded up, zeros where there is none: of channels a and a + 1 the values
 *            256 * w[a + 1][k] + w[a][k] for k = 0, 2, 1, 3 of each four. The sum of such products is 256 times the sum of
 *            channel a + 1, plus that of channel a, and SXTB16 gives the weights of channel a alone.
 *   bias     arenite_dsp_channel_t[out_c], rounded up to two
 *   multiplier, shift  none
 * For each channel 128 * sum |w| < 2^23, and no sum with its bias reaches 2^30. */
#ifndef ARENITE_CONV_2D_S8_DSP_H
#define ARENITE_CONV_2D_S8_DSP_H

#include "arenite_conv_2d_s8.h"

/* Bytes of a window. Two windows take 4 times that of the stack, and once more as bytes. */
#define ARENITE_DSP_TAPS 160

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch);

#endif
