/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED as arenite_conv_2d_s8 computes them, for computers: vector instructions found at run time.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 * The same parameters, packed otherwise. A row of the window is a run of ceil(kernel_w * in_c / 4) words; blocks are
 * ceil(out_c / 16):
 *   weights     [blocks][kernel_h][words of a run][16][4]: 4 input bytes of 16 channels side by side, zeros where there is
 *               no channel or no byte
 *   bias, multiplier, shift  of whole blocks, see arenite_host_blocks.h
 * All are 64-byte aligned. A run is read where it lies if its last word is inside the row, else from a copy on the stack.
 * dilation_w or kernel_w is 1, kernel_h at most ARENITE_HOST_RUNS, and with n = min(8, out_w)
 * kernel_h * (((n - 1) * stride_w + kernel_w) * in_c + 4) at most ARENITE_HOST_COPIES. */
#ifndef ARENITE_CONV_2D_S8_HOST_H
#define ARENITE_CONV_2D_S8_HOST_H

#include "arenite_conv_2d_s8.h"

#define ARENITE_HOST_RUNS 64
#define ARENITE_HOST_COPIES 32768 /* bytes */

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_host(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch);

#endif
