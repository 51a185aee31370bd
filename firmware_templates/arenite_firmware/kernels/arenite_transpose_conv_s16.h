/* SPDX-License-Identifier: Apache-2.0 */
/* TRANSPOSE_CONV, int16 activations and int8 weights, one output row a call.
 * Authority: TFLM reference_integer_ops::TransposeConv for int16. */
#ifndef ARENITE_TRANSPOSE_CONV_S16_H
#define ARENITE_TRANSPOSE_CONV_S16_H

#include "arenite_mac_any.h"

typedef arenite_mac_any_t arenite_transpose_conv_s16_t;

/* rows: ceil(kernel_h / stride_h) rows of in_w * in_c elements, or NULL. out: out_w * out_c elements, apart from all rows. No scratch. */
void arenite_transpose_conv_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                int32_t *scratch);

#endif
