/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of int8 whose weights have a zero point, as in models that were uint8, or in groups, one row a call.
 * Authority: LiteRT reference_ops::Conv, DepthwiseConv and FullyConnected for uint8; TFLM ConvPerChannel for groups. */
#ifndef ARENITE_CONV_2D_ANY_S8_H
#define ARENITE_CONV_2D_ANY_S8_H

#include "arenite_mac_any.h"

typedef arenite_mac_any_t arenite_conv_2d_any_s8_t;

/* rows: kernel_h rows of in_w * in_c elements, or NULL. out: out_w * out_c elements, apart from all rows. No scratch. */
void arenite_conv_2d_any_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch);

#endif
