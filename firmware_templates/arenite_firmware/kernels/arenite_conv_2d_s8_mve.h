/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED as arenite_conv_2d_s8 computes them, for processors with MVE (Helium).
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 * The same parameters, packed otherwise:
 *   weights     [out_c][kernel_h][kernel_w][in_c], channels in the order of whole blocks of 16 as ARENITE_MVE_CHANNEL
 *               says, those left over as they are, and zeros up to a multiple of 4 channels. Behind each channel of a
 *               window of up to ARENITE_MVE_RESIDENT_ALONE bytes lie zeros up to a multiple of 16 bytes; behind all,
 *               where a window has more than ARENITE_MVE_COPY bytes, in_c times in_zero_point
 *   bias, multiplier, shift  in the same order, with zeros up to a multiple of 4
 *   per_channel  one of arenite_mve_mode_t
 * A window has at most ARENITE_MVE_COPY bytes, or at most ARENITE_MVE_RUNS or ARENITE_MVE_WHOLE_RUNS taps. */
#ifndef ARENITE_CONV_2D_S8_MVE_H
#define ARENITE_CONV_2D_S8_MVE_H

#include "arenite_conv_2d_s8.h"

#define ARENITE_MVE_COPY 400 /* bytes of stack for windows that do not lie in memory as they are needed */
#define ARENITE_MVE_RUNS 21
#define ARENITE_MVE_WHOLE_RUNS 27 /* if in_c is a multiple of 32 */

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch);

#endif
