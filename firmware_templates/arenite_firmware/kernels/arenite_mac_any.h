/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of the types and shapes that have no kernel of their own: int16 activations, weights with a zero point,
 * groups, transposed. One parameter struct for all of them. */
#ifndef ARENITE_MAC_ANY_H
#define ARENITE_MAC_ANY_H

#include <stdint.h>

#include "arenite_fixed_point.h"

/* How the reference brings a sum to the output: as int8, as an int64 sum, or as LiteRT's FULLY_CONNECTED of uint8. */
enum { ARENITE_ROUND_TWICE, ARENITE_ROUND_WIDE, ARENITE_ROUND_ONCE };

typedef struct {
    const int8_t *weights;     /* [out_c][kernel_h][kernel_w][group_in] */
    const int64_t *bias;       /* [out_c], as the model has it */
    const int32_t *multiplier; /* [out_c] or [1]: 0 or 2^30 .. 2^31 - 1 */
    const int8_t *shift;       /* [out_c] or [1]: -31 .. 30, positive is left; with int16 below 8 */
    int32_t in_w;
    int32_t in_c;
    int32_t out_w;
    int32_t out_c;
    int32_t kernel_h;
    int32_t kernel_w;
    int32_t stride_h; /* transposed: rows between the windows of neighbouring input rows */
    int32_t stride_w;
    int32_t dilation_w; /* 1 if transposed */
    int32_t pad_top;    /* of transposed ones alone */
    int32_t pad_left;
    int32_t
        group_in; /* input channels that an output channel reads: in_c, in_c / groups, or 1 if depthwise */
    int32_t group_out; /* neighbouring output channels that read the same */
    int32_t act_min;
    int32_t act_max;
    int16_t in_zero_point; /* what lies outside the input counts as this */
    int16_t out_zero_point;
    int16_t weight_zero_point; /* -128 .. 127 */
    uint8_t per_channel;       /* 1: multiplier and shift have an entry a channel */
    uint8_t rounding;          /* ARENITE_ROUND_TWICE .. ARENITE_ROUND_ONCE */
} arenite_mac_any_t;

/* A sum requantised by the reference's rule for int64: the multiplier rounded to 16 bits, one rounding half up. The sum
 * is within 2^47. */
static inline int32_t arenite_requantise_wide(int64_t sum, int32_t multiplier, int32_t shift) {
    const int32_t reduced = multiplier < 0x7FFF0000 ? (multiplier + (1 << 15)) >> 16 : 0x7FFF;
    const int32_t right = 15 - shift;
    return (int32_t)((sum * reduced + ((int64_t)1 << (right - 1))) >> right);
}

/* sum * multiplier * 2^(shift - 31), rounded once, half up. */
static inline int32_t arenite_requantise_once(int32_t sum, int32_t multiplier, int32_t shift) {
    const int32_t right = 31 - shift;
    return (int32_t)(((int64_t)sum * multiplier + ((int64_t)1 << (right - 1))) >> right);
}

/* An accumulator as an output. Where the reference sums in int32, the sum wraps as its does. */
static inline int32_t arenite_mac_output(const arenite_mac_any_t *p, int64_t sum, int32_t channel) {
    const int32_t multiplier = p->multiplier[p->per_channel ? channel : 0];
    const int32_t shift = p->shift[p->per_channel ? channel : 0];
    int32_t scaled;
    if (p->rounding == ARENITE_ROUND_WIDE) {
        scaled = arenite_requantise_wide(sum, multiplier, shift);
    } else if (p->rounding == ARENITE_ROUND_ONCE) {
        scaled = arenite_requantise_once((int32_t)(uint32_t)sum, multiplier, shift);
    } else {
        scaled = arenite_requantise((int32_t)(uint32_t)sum, multiplier, shift);
    }
    return arenite_clamp((int32_t)((uint32_t)scaled + (uint32_t)p->out_zero_point), p->act_min, p->act_max);
}

#endif
