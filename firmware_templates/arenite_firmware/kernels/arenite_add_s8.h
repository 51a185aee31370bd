/* SPDX-License-Identifier: Apache-2.0 */
/* ADD, int8, one output row a call, with broadcasts over pixels and channels by steps of 0.
 * Authority: TFLM reference_integer_ops::Add: both sides are brought to a shared grid of 2^-20 and added there, so the sum is
 * rounded once. */
#ifndef ARENITE_ADD_S8_H
#define ARENITE_ADD_S8_H

#include <stdint.h>

typedef struct {
    int32_t width;    /* output pixels a row */
    int32_t channels; /* output channels a pixel */
    int32_t a_pixel_step;
    int32_t a_channel_step;
    int32_t b_pixel_step;
    int32_t b_channel_step;
    int32_t a_multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int32_t b_multiplier;
    int32_t out_multiplier;
    int8_t a_right_shift; /* 0 .. 31 */
    int8_t b_right_shift;
    int8_t out_right_shift;
    int16_t a_zero_point; /* -128 .. 127, as the model has it (not negated) */
    int16_t b_zero_point;
    int16_t out_zero_point;
    int16_t act_min;
    int16_t act_max;
} arenite_add_s8_t;

/* rows: one row of each side. out: width * channels bytes; it may start at or before a side that is not broadcast. */
void arenite_add_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch);

#endif
