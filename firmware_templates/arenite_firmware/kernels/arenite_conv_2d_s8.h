/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED, int8 activations and weights, one output row a call.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding).
 *
 *   out[x][o] = clamp(requantise(bias[o] + sum w[o][ky][kx][i] * in[ky][x * stride_w - pad_left + kx * dilation_w][i]))
 *
 * where a pixel or row outside the input counts as in_zero_point in every channel. */
#ifndef ARENITE_CONV_2D_S8_H
#define ARENITE_CONV_2D_S8_H

#include <stdint.h>

/* Weights of this many output channels are interleaved. */
#define ARENITE_CONV_2D_S8_LANES 4

typedef struct {
    const int8_t
        *weights;        /* [out_c / 4][kernel_h][kernel_w][in_c][4], then the channels that are left over as
                                  [out_c % 4][kernel_h][kernel_w][in_c]; zero point 0 */
    const int32_t *bias; /* [out_c]: bias - in_zero_point * sum of the channel's weights, modulo 2^32 */
    const int32_t *multiplier; /* [out_c] or [1]: 0 or 2^30 .. 2^31 - 1 */
    const int8_t *shift;       /* [out_c] or [1]: -31 .. 30, positive is left */
    int32_t in_w;
    int32_t in_c;
    int32_t out_w;
    int32_t out_c;
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
} arenite_conv_2d_s8_t;

/* rows: kernel_h rows of in_w * in_c bytes, or NULL. out: out_w * out_c bytes, apart from all rows. No scratch. */
void arenite_conv_2d_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch);

#endif
