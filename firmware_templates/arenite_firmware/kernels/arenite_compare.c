/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_compare.h"

static int32_t holds(const arenite_compare_t *p, int32_t less, int32_t greater) {
    switch (p->relation) {
    case ARENITE_LESS:
        return less;
    case ARENITE_GREATER:
        return greater;
    default:
        return !less && !greater;
    }
}

static int8_t of_bytes(const arenite_compare_t *p, int32_t a, int32_t b) {
    const int32_t x = arenite_requantise((a - p->a_zero_point) * 256, p->a_multiplier, p->a_shift);
    const int32_t y = arenite_requantise((b - p->b_zero_point) * 256, p->b_multiplier, p->b_shift);
    return (int8_t)(holds(p, x<y, x> y) != p->negated);
}

static int8_t of_integers(const arenite_compare_t *p, int32_t a, int32_t b) {
    return (int8_t)(holds(p, a<b, a> b) != p->negated);
}

/* What is no number is neither less, greater nor equal. */
static int8_t of_reals(const arenite_compare_t *p, float a, float b) {
    const int32_t is_ordered = a <= b || a >= b;
    if (p->relation == ARENITE_EQUAL || is_ordered) {
        return (int8_t)((is_ordered && holds(p, a<b, a> b)) != p->negated);
    }
    return 0;
}

void arenite_compare(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    const arenite_compare_t *p = (const arenite_compare_t *)params;
    (void)step;
    (void)scratch;
    switch (p->type) {
    case ARENITE_S8:
        ARENITE_BINARY_ROW(p, rows, out, of_bytes)
        break;
    case ARENITE_S32:
        ARENITE_BINARY_ROW_OF(int32_t, p, rows, out, of_integers)
        break;
    case ARENITE_F32:
        ARENITE_BINARY_ROW_OF(float, p, rows, out, of_reals)
        break;
    default:
        ARENITE_BINARY_ROW(p, rows, out, of_integers)
        break;
    }
}
