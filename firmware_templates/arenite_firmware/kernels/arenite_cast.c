/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_cast.h"

static int32_t cut_off(float value) {
    if (!(value > -2147483648.0f)) {
        return INT32_MIN;
    }
    return value >= 2147483648.0f ? INT32_MAX : (int32_t)value;
}

static void from_real(const arenite_cast_t *p, const float *from, int8_t *out) {
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t value = p->to == ARENITE_BOOL ? (from[i] != 0.0f) : cut_off(from[i]);
        arenite_store_int(out, p->to, i, value);
    }
}

void arenite_cast(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                  int32_t *scratch) {
    const arenite_cast_t *p = (const arenite_cast_t *)params;
    (void)step;
    (void)scratch;
    if (p->from == ARENITE_F32) {
        from_real(p, (const float *)(const void *)rows[0], out);
        return;
    }
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t value = arenite_load_int(rows[0], p->from, i);
        if (p->to == ARENITE_F32) {
            ((float *)(void *)out)[i] = (float)value;
        } else {
            arenite_store_int(out, p->to, i, p->to == ARENITE_BOOL ? value != 0 : value);
        }
    }
}
