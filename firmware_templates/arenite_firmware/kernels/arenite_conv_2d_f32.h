/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and DEPTHWISE_CONV_2D of float32, in groups too, one output row a call.
 * Authority: TFLM reference_ops::Conv and DepthwiseConv: products added in the order of the window's rows, pixels and
 * channels, then the bias. What lies outside the input adds nothing. */
#ifndef ARENITE_CONV_2D_F32_H
#define ARENITE_CONV_2D_F32_H

#include "arenite_real.h"

typedef struct {
    const float *weights; /* [out_c][kernel_h][kernel_w][group_in] */
    const float *bias;    /* [out_c] */
    int32_t in_w;
    int32_t in_c;
    int32_t out_w;
    int32_t out_c;
    int32_t kernel_h;
    int32_t kernel_w;
    int32_t stride_w;
    int32_t dilation_w;
    int32_t pad_left;
    int32_t group_in;  /* input channels that an output channel reads */
    int32_t group_out; /* neighbouring output channels that read the same */
    float act_min;
    float act_max;
} arenite_conv_2d_f32_t;

/* rows: kernel_h rows of in_w * in_c floats, NULL where outside. out: out_w * out_c floats, apart from them. No scratch. */
void arenite_conv_2d_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch);

#endif
