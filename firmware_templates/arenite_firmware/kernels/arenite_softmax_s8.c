/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_softmax_s8.h"

#include "arenite_fixed_point.h"

/* Whole bits of the sum of exponentials. */
#define SUM_INTEGER_BITS 12

static int32_t saturating_shift_left(int32_t value, int32_t shift) {
    int64_t wide = (int64_t)value * ((int64_t)1 << shift);
    return wide > INT32_MAX ? INT32_MAX : (wide < INT32_MIN ? INT32_MIN : (int32_t)wide);
}

/* 1 / (1 + a) in Q0.31 for a in Q0.31, 0 <= a < 1: three steps of Newton's method in Q2.29 from 48/17 - 32/17 d, where
 * d = (1 + a) / 2. */
static int32_t one_over_one_plus(int32_t a) {
    const int32_t half_denominator = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2);
    int32_t x = 1515870810 + arenite_doubling_high_mul(half_denominator, -1010580540);
    for (int i = 0; i < 3; i++) {
        int32_t rest = (1 << 29) - arenite_doubling_high_mul(half_denominator, x);
        x += saturating_shift_left(arenite_doubling_high_mul(x, rest), 2);
    }
    return saturating_shift_left(x, 1);
}

static int32_t leading_zeros(uint32_t value) {
    int32_t count = 0;
    while (count < 32 && !(value & 0x80000000u)) {
        value <<= 1;
        count++;
    }
    return count;
}

static void softmax_pixel(const arenite_softmax_s8_t *p, const int8_t *in, int8_t *out) {
    int32_t greatest = INT8_MIN;
    for (int32_t c = 0; c < p->channels; c++) {
        greatest = in[c] > greatest ? in[c] : greatest;
    }
    uint32_t sum = 0;
    for (int32_t c = 0; c < p->channels; c++) {
        int32_t difference = greatest - in[c];
        if (difference < p->exp_count) {
            sum += (uint32_t)arenite_rounding_shift_right(p->exp_table[difference], SUM_INTEGER_BITS);
        }
    }
    const int32_t zeros = leading_zeros(sum);
    const int32_t scale = one_over_one_plus((int32_t)((sum << zeros) - ((uint32_t)1 << 31)));
    const int32_t right_shift = SUM_INTEGER_BITS - zeros + 31 - 8;
    for (int32_t c = 0; c < p->channels; c++) {
        int32_t difference = greatest - in[c];
        int32_t value = INT8_MIN;
        if (difference < p->exp_count) {
            /* From a sum of 512 on every result rounds to 0; the reference's shift by 32 bits or more is undefined. */
            int32_t product = arenite_doubling_high_mul(scale, p->exp_table[difference]);
            value += right_shift > 31 ? 0 : arenite_rounding_shift_right(product, right_shift);
        }
        out[c] = (int8_t)arenite_clamp(value, INT8_MIN, INT8_MAX);
    }
}

void arenite_softmax_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_softmax_s8_t *p = (const arenite_softmax_s8_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++) {
        softmax_pixel(p, rows[0] + x * p->channels, out + x * p->channels);
    }
}
