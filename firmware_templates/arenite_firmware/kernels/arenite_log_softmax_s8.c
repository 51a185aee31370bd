/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_log_softmax_s8.h"

#include "arenite_reciprocal.h"

/* Whole bits of the sum of exponentials, of the logarithm while it is made, and of the differences. */
#define SUM_INTEGER_BITS 12
#define WIDE_INTEGER_BITS 6
#define OUTPUT_SHIFT 22 /* from Q5.26 to sixteenths */

/* In Q0.31. */
#define LN2 1488522236
#define ROOT_HALF 1518500250
#define FOURTH_ROOT_HALF 1805811301
#define ALPHA_N 117049297  /* 11/240 * 2^(1/4) */
#define ALPHA_D 127690142  /* 1/20 * 2^(1/4) */
#define ALPHA_I 1057819769 /* 2 / 2^(1/4) - 2^(1/4) */
#define ALPHA_F 638450708  /* 1/4 * 2^(1/4) */

static int32_t mul(int32_t a, int32_t b) { return arenite_doubling_high_mul(a, b); }

/* The logarithm in Q6.25 of what is left when a power of two is taken out, for r near the fourth root of 1/2 in Q0.31. */
static int32_t log_of_rest(int32_t r) {
    const int32_t sum = r / 2 + FOURTH_ROOT_HALF / 2 + (r & FOURTH_ROOT_HALF & 1);
    const int32_t p = sum + ((r ^ FOURTH_ROOT_HALF) & 1);
    const int32_t q = 2 * (r - FOURTH_ROOT_HALF);
    const int32_t square = mul(q, q);
    const int32_t numerator = mul(q, r) + mul(mul(q, square), ALPHA_N);
    const int32_t rest = mul(p, ALPHA_I + q + mul(ALPHA_D, square)) + mul(ALPHA_F, q);
    return mul(arenite_rounding_shift_right(numerator, WIDE_INTEGER_BITS), arenite_one_over_one_plus(rest));
}

/* The natural logarithm in Q5.26 of a sum >= 1 in Q12.19. Powers of two and of their roots compete for the rest. */
static int32_t log_of_sum(uint32_t sum) {
    const int32_t quarter = (int32_t)1 << (31 - WIDE_INTEGER_BITS - 2);
    const int32_t zeros = arenite_leading_zeros(sum);
    const int32_t a = arenite_saturating_shift_left(mul((int32_t)(sum << (zeros - 1)), ROOT_HALF), 1);
    const int32_t a_power = (SUM_INTEGER_BITS - zeros) * 4 * quarter + quarter;
    const int32_t headroom = arenite_leading_zeros((uint32_t)mul((int32_t)sum, ROOT_HALF)) - 1;
    const int32_t b = arenite_saturating_shift_left((int32_t)sum, headroom);
    const int32_t b_power = (SUM_INTEGER_BITS - headroom) * 4 * quarter - quarter;
    const int32_t power = a_power > b_power ? a_power : b_power;
    return arenite_saturating_shift_left(mul(power, LN2) + log_of_rest(a < b ? a : b), 1);
}

static void log_softmax_pixel(const arenite_log_softmax_s8_t *p, const int8_t *in, int8_t *out) {
    int32_t greatest = INT8_MIN;
    for (int32_t c = 0; c < p->channels; c++) {
        greatest = in[c] > greatest ? in[c] : greatest;
    }
    uint32_t sum = 0;
    for (int32_t c = 0; c < p->channels; c++) {
        const int32_t difference = greatest - in[c];
        if (difference < p->exp_count) {
            sum += (uint32_t)arenite_rounding_shift_right(p->exp_table[difference], SUM_INTEGER_BITS);
        }
    }
    const int32_t log_sum = log_of_sum(sum);
    const int32_t least = arenite_requantise(INT32_MIN + log_sum, p->back_multiplier, p->back_shift);
    for (int32_t c = 0; c < p->channels; c++) {
        const int32_t difference = in[c] - greatest;
        int32_t value = INT8_MIN;
        if (-difference < p->exp_count && difference > least) {
            const int32_t fine = arenite_requantise(difference, p->multiplier, p->shift) - log_sum;
            value = arenite_rounding_shift_right(fine, OUTPUT_SHIFT) + INT8_MAX;
        }
        out[c] = (int8_t)arenite_clamp(value, INT8_MIN, INT8_MAX);
    }
}

void arenite_log_softmax_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_log_softmax_s8_t *p = (const arenite_log_softmax_s8_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->width; x++) {
        log_softmax_pixel(p, rows[0] + x * p->channels, out + x * p->channels);
    }
}
