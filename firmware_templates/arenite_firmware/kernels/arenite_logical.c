/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_logical.h"

static int8_t answer(const arenite_logical_t *p, int32_t a, int32_t b) {
    switch (p->operation) {
    case ARENITE_AND:
        return (int8_t)(a && b);
    case ARENITE_OR:
        return (int8_t)(a || b);
    default:
        return (int8_t)!a;
    }
}

void arenite_logical(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    const arenite_logical_t *p = (const arenite_logical_t *)params;
    (void)step;
    (void)scratch;
    ARENITE_BINARY_ROW(p, rows, out, answer)
}
