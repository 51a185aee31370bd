/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_div_s8.h"

#include "arenite_reciprocal.h"

/* a / b on the output's scale, b > 0. */
static int32_t quotient(const arenite_div_s8_t *p, int32_t a, int32_t b) {
    const int32_t zeros = arenite_leading_zeros((uint32_t)b);
    const int32_t inverse =
        arenite_one_over_one_plus((int32_t)(((uint32_t)b << zeros) - ((uint32_t)1 << 31)));
    const int32_t headroom = arenite_leading_zeros((uint32_t)(a < 0 ? ~a : a)) - 1;
    const int32_t unscaled = arenite_doubling_high_mul(arenite_shift_left(a, headroom), inverse);
    const int32_t right_shift = 31 - zeros + headroom - p->shift;
    return right_shift > 31 ? 0
                            : arenite_rounding_shift_right(arenite_doubling_high_mul(unscaled, p->multiplier),
                                                           right_shift);
}

static int8_t arenite_div_s8_byte(const arenite_div_s8_t *p, int32_t a, int32_t b) {
    a -= p->a_zero_point;
    b -= p->b_zero_point;
    if (b == 0) {
        return (int8_t)(a < 0 ? p->act_min : p->act_max);
    }
    const int32_t value = b < 0 ? quotient(p, -a, -b) : quotient(p, a, b);
    return (int8_t)arenite_clamp(value + p->out_zero_point, p->act_min, p->act_max);
}

void arenite_div_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_div_s8_t *p = (const arenite_div_s8_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, arenite_div_s8_byte)
}
