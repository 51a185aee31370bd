/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_gather.h"

#include <stddef.h>

static int8_t *copy_group(const arenite_gather_t *p, const int8_t *from, int8_t *out) {
    for (int32_t j = 0; j < p->inner; j++) {
        const int8_t *run = from + (ptrdiff_t)j * p->inner_step;
        for (int32_t k = 0; k < p->run; k++) {
            *out++ = run[k];
        }
    }
    return out;
}

void arenite_gather(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch) {
    const arenite_gather_t *p = (const arenite_gather_t *)params;
    const int32_t *runs = p->runs == NULL ? NULL : p->runs + (ptrdiff_t)(step % p->phases) * p->outer;
    const ptrdiff_t base = (ptrdiff_t)step * p->row_step;
    (void)scratch;
    for (int32_t i = 0; i < p->outer; i++) {
        const ptrdiff_t start = runs == NULL ? p->first + (ptrdiff_t)i * p->outer_step : runs[i];
        if (start < 0) {
            for (int32_t k = 0; k < p->run; k++) {
                *out++ = (int8_t)p->fill;
            }
        } else {
            out = copy_group(p, rows[0] + base + start, out);
        }
    }
}
