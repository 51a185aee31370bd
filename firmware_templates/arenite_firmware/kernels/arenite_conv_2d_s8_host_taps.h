/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED for computers, for dilated windows and for those too large to be copied.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 * The same parameters, packed as for arenite_conv_2d_s8_host, but in_c is a multiple of 4, and behind the weights lie in_c
 * bytes of in_zero_point. Windows are read tap by tap where they lie, at most ARENITE_HOST_TAPS taps. */
#ifndef ARENITE_CONV_2D_S8_HOST_TAPS_H
#define ARENITE_CONV_2D_S8_HOST_TAPS_H

#include "arenite_conv_2d_s8.h"

#define ARENITE_HOST_TAPS 128

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_host_taps(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                  int32_t *scratch);

#endif
