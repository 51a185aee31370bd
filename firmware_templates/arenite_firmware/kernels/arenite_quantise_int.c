/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_quantise_int.h"

#include "arenite_fixed_point.h"

void arenite_quantise_int(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                          int32_t *scratch) {
    const arenite_quantise_int_t *p = (const arenite_quantise_int_t *)params;
    (void)step;
    (void)scratch;
    for (int32_t i = 0; i < p->count; i++) {
        const uint32_t value = (uint32_t)arenite_load_int(rows[0], p->from, i) - (uint32_t)p->in_zero_point;
        const int32_t scaled = arenite_requantise((int32_t)value, p->multiplier, p->shift);
        const int32_t moved = (int32_t)((uint32_t)scaled + (uint32_t)p->out_zero_point);
        arenite_store_int(out, p->to, i, arenite_clamp(moved, p->low, p->high));
    }
}
