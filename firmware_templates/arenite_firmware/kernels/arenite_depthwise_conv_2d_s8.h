/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTHWISE_CONV_2D, int8 activations and weights, one output row a call.
 * Authority: TFLM reference_integer_ops::DepthwiseConvPerChannel (double rounding).
 *
 * Output channel o reads input channel o / depth_multiplier. A pixel or row outside the input counts as in_zero_point. */
#ifndef ARENITE_DEPTHWISE_CONV_2D_S8_H
#define ARENITE_DEPTHWISE_CONV_2D_S8_H

#include <stdint.h>

typedef struct {
    const int8_t *weights;     /* [kernel_h][kernel_w][in_c * depth_multiplier], zero point 0 */
    const int32_t *bias;       /* [out_c]: bias - in_zero_point * sum of the channel's weights, modulo 2^32 */
    const int32_t *multiplier; /* [out_c] or [1]: 0 or 2^30 .. 2^31 - 1 */
    const int8_t *shift;       /* [out_c] or [1]: -31 .. 30, positive is left */
    int32_t in_w;
    int32_t in_c;
    int32_t out_w;
    int32_t depth_multiplier;
    int16_t kernel_h;
    int16_t kernel_w;
    int16_t stride_w;
    int16_t dilation_w;
    int16_t pad_left;
    int8_t in_zero_point;  /* as the model has it (not negated) */
    int8_t out_zero_point; /* added after requantisation */
    int8_t act_min;
    int8_t act_max;
    uint8_t per_channel; /* 1: multiplier and shift have an entry a channel */
} arenite_depthwise_conv_2d_s8_t;

/* rows: kernel_h rows of in_w * in_c bytes, or NULL. out: out_w * out_c bytes, apart from all rows. No scratch. */
void arenite_depthwise_conv_2d_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                  int32_t *scratch);

#endif
