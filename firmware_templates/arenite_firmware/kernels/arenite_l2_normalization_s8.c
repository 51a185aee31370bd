/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_l2_normalization_s8.h"

#include "arenite_reciprocal.h"

/* The output's fraction bits. */
#define OUTPUT_BITS 7

typedef struct {
    int32_t multiplier;
    int32_t shift;
} scale_t;

/* 1 / sqrt(value) by five steps of Newton's method in Q3.28, value >= 0. */
static scale_t inverse_square_root(int32_t value) {
    if (value <= 1) {
        const scale_t one = {INT32_MAX, 0};
        return one;
    }
    int32_t right_shift = 11;
    while (value >= (1 << 29)) {
        value /= 4;
        right_shift++;
    }
    const int32_t pairs = (arenite_leading_zeros((uint32_t)value) - 1) / 2 - 1;
    right_shift -= pairs;
    value = arenite_shift_left(value, 2 * pairs);
    const int32_t half_value = arenite_rounding_shift_right(value >> 1, 1);
    int32_t x = 1 << 28;
    for (int i = 0; i < 5; i++) {
        const int32_t squared = arenite_doubling_high_mul(x, x);
        const int32_t cubed = arenite_saturating_shift_left(arenite_doubling_high_mul(squared, x), 6);
        const int32_t difference = arenite_doubling_high_mul((1 << 28) + (1 << 27), x) -
                                   arenite_doubling_high_mul(half_value, cubed);
        x = arenite_saturating_shift_left(difference, 3);
    }
    /* 1518500250 is sqrt(1/2) in Q0.31. */
    scale_t found = {arenite_doubling_high_mul(x, 1518500250), -right_shift};
    if (right_shift < 0) {
        found.multiplier = arenite_shift_left(found.multiplier, -right_shift);
        found.shift = 0;
    }
    return found;
}

void arenite_l2_normalization_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch) {
    const arenite_l2_normalization_s8_t *p = (const arenite_l2_normalization_s8_t *)params;
    const int8_t *in = rows[0];
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++, in += p->channels) {
        int32_t sum = 0;
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t value = in[c] - p->in_zero_point;
            sum += value * value;
        }
        const scale_t scale = inverse_square_root(sum);
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t value = in[c] - p->in_zero_point;
            *out++ =
                arenite_to_byte(value, scale.multiplier, scale.shift + OUTPUT_BITS, 0, INT8_MIN, INT8_MAX);
        }
    }
}
