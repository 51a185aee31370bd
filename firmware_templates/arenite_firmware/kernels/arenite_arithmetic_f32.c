/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_arithmetic_f32.h"

static float combined(int32_t operation, float a, float b) {
    switch (operation) {
    case ARENITE_ADD:
        return a + b;
    case ARENITE_SUB:
        return a - b;
    case ARENITE_MUL:
        return a * b;
    case ARENITE_DIV:
        return a / b;
    case ARENITE_MAXIMUM:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

static float element(const arenite_arithmetic_f32_t *p, float a, float b) {
    return arenite_clamp_real(combined(p->operation, a, b), p->act_min, p->act_max);
}

void arenite_arithmetic_f32(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_arithmetic_f32_t *p = (const arenite_arithmetic_f32_t *)params;
    (void)step;
    (void)scratch;
    float *to = (float *)(void *)out;
    ARENITE_BINARY_ROW_OF(float, p, rows, to, element)
}
