/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_dequantise.h"

void arenite_dequantise(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch) {
    const arenite_dequantise_t *p = (const arenite_dequantise_t *)params;
    (void)step;
    (void)scratch;
    float *to = (float *)(void *)out;
    for (int32_t i = 0; i < p->count; i++) {
        to[i] = p->scale * (float)(arenite_load_int(rows[0], p->from, i) - p->zero_point);
    }
}
