/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED, int16 activations and int8 weights, one output row a call.
 * Authority: TFLM reference_integer_ops::ConvPerChannel, DepthwiseConvPerChannel and FullyConnected for int16. */
#ifndef ARENITE_CONV_2D_S16_H
#define ARENITE_CONV_2D_S16_H

#include "arenite_mac_any.h"

typedef arenite_mac_any_t arenite_conv_2d_s16_t;

/* rows: kernel_h rows of in_w * in_c elements, or NULL. out: out_w * out_c elements, apart from all rows. No scratch. */
void arenite_conv_2d_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch);

#endif
