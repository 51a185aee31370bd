/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTHWISE_CONV_2D as arenite_depthwise_conv_2d_s8 computes it, for processors with MVE (Helium): rows of one pixel,
 * windows one pixel wide of 2 .. ARENITE_MVE_COLUMN_TAPS rows, at least 16 channels, and no clamp but the one of int8.
 * Authority: TFLM reference_integer_ops::DepthwiseConvPerChannel (double rounding).
 *
 * The same parameters, packed otherwise:
 *   weights  blocks of 16 channels as arenite_depthwise_conv_2d_s8_mve reads them; where the channels are no multiple of
 *            16, the last block has the last 16 channels, some of which the block before it has, too; behind them in_c
 *            times in_zero_point. No weight is -128, so two products fit 16 bits; shift < 0
 *   bias, multiplier, shift  not used */
#ifndef ARENITE_DEPTHWISE_CONV_2D_S8_MVE_COLUMN_H
#define ARENITE_DEPTHWISE_CONV_2D_S8_MVE_COLUMN_H

#include "arenite_depthwise_conv_2d_s8.h"

#define ARENITE_MVE_COLUMN_TAPS 10

/* rows, out: as arenite_depthwise_conv_2d_s8. No scratch. */
void arenite_depthwise_conv_2d_s8_mve_column(const void *params, const int8_t *const *rows, int8_t *out,
                                             int32_t step, int32_t *scratch);

#endif
