/* SPDX-License-Identifier: Apache-2.0 */
/* A row of CONV_2D of few channels with AVX-512: what conv_2d_tile does with 6 sums, these do with 16.
 *
 * A vector holds 16 neighbouring input bytes of each of 4 pixels. A word of it, repeated for 4 channels, meets the same 4
 * channels' weights in every quarter, so a sum's vector is 4 pixels by 4 channels, and 16 of them 16 pixels by 16
 * channels. Packing as arenite_conv_2d_s8_host.h. */
#ifndef ARENITE_CONV_2D_ROW_AVX512_H
#define ARENITE_CONV_2D_ROW_AVX512_H

#include "arenite_conv_2d_s8.h"

/* Whether arenite_conv_2d_row_avx512 may be called and is the faster one. */
int arenite_conv_2d_row_suits_avx512(const arenite_conv_2d_s8_t *p);

/* rows, out: as arenite_conv_2d_s8. */
void arenite_conv_2d_row_avx512(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int8_t *out);

#endif
