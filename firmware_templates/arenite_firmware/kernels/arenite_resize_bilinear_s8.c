/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_resize_bilinear_s8.h"

#include <stddef.h>

#define ONE 1024

/* sum / 2^20, rounded half away from zero; sum is at most 2^27 off zero. */
static int8_t rounded(int32_t sum) {
    const int32_t half = 1 << 19;
    return (int8_t)((sum + (sum > 0 ? half : -half)) / (1 << 20));
}

void arenite_resize_bilinear_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                int32_t *scratch) {
    const arenite_resize_bilinear_s8_t *p = (const arenite_resize_bilinear_s8_t *)params;
    const int8_t *upper = rows[0];
    const int8_t *lower = rows[1] == NULL ? rows[0] : rows[1];
    const int32_t down = p->weights[step];
    const int32_t *column = p->columns;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w; x++, column += 3) {
        const int32_t right = column[2];
        for (int32_t c = 0; c < p->channels; c++) {
            const ptrdiff_t a = (ptrdiff_t)column[0] + c, b = (ptrdiff_t)column[1] + c;
            const int32_t above = upper[a] * (ONE - right) + upper[b] * right;
            const int32_t below = lower[a] * (ONE - right) + lower[b] * right;
            *out++ = rounded(above * (ONE - down) + below * down);
        }
    }
}
