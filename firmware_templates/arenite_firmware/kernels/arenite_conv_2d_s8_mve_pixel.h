/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED as arenite_conv_2d_s8 computes them, for processors with MVE (Helium): rows of one pixel,
 * made of one pixel of at most ARENITE_MVE_PIXEL_BYTES channels, and no clamp but the one of int8.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 * The same parameters, packed otherwise:
 *   weights     [out_c / 4][in_c / 16][4][16], rounded up with zeros
 *   bias, multiplier, shift  [out_c], with zeros up to a multiple of 4; shift < 0
 *   per_channel  ARENITE_MVE_POSITIVE or ARENITE_MVE_SIGNED */
#ifndef ARENITE_CONV_2D_S8_MVE_PIXEL_H
#define ARENITE_CONV_2D_S8_MVE_PIXEL_H

#include "arenite_conv_2d_s8.h"

#define ARENITE_MVE_PIXEL_BYTES 128

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_mve_pixel(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                  int32_t *scratch);

#endif
