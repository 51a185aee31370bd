/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_softmax_s8.h"

#include "arenite_reciprocal.h"

/* Whole bits of the sum of exponentials. */
#define SUM_INTEGER_BITS 12

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
    const int32_t zeros = arenite_leading_zeros(sum);
    const int32_t scale = arenite_one_over_one_plus((int32_t)((sum << zeros) - ((uint32_t)1 << 31)));
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
