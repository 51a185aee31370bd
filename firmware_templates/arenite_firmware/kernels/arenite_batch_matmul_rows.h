/* SPDX-License-Identifier: Apache-2.0 */
/* One row of a product of matrices. A kernel's C file defines ELEMENT, its rails LOWEST and HIGHEST, and
 * REQUANTISE(sum, multiplier, shift), and includes this. */
#include <stddef.h>

#include "arenite_batch_matmul.h"

static void matmul_row(const arenite_batch_matmul_t *p, const int8_t *const *rows, int8_t *to, int32_t step) {
    const ELEMENT *a = (const ELEMENT *)(const void *)rows[0];
    const ELEMENT *b = (const ELEMENT *)(const void *)rows[1];
    ELEMENT *out = (ELEMENT *)(void *)to;
    const int32_t matrix = step / p->rows, row = step % p->rows;
    const int32_t third = matrix % p->batch_2, rest = matrix / p->batch_2;
    const int32_t second = rest % p->batch_1, first = rest / p->batch_1;
    a += (ptrdiff_t)first * p->a_step_0 + (ptrdiff_t)second * p->a_step_1 + (ptrdiff_t)third * p->a_step_2;
    b += (ptrdiff_t)first * p->b_step_0 + (ptrdiff_t)second * p->b_step_1 + (ptrdiff_t)third * p->b_step_2;
    a += (ptrdiff_t)row * p->a_row_step;
    for (int32_t column = 0; column < p->columns; column++, b += p->b_column_step) {
        const ELEMENT *x = a, *y = b;
        SUM sum = 0;
        for (int32_t i = 0; i < p->depth; i++, x += p->a_depth_step, y += p->b_depth_step) {
            sum += (SUM)((int32_t)*x - p->a_zero_point) * ((int32_t)*y - p->b_zero_point);
        }
        const int32_t scaled = REQUANTISE(sum, p->multiplier, p->shift) + p->out_zero_point;
        out[column] = (ELEMENT)arenite_clamp(scaled, LOWEST, HIGHEST);
    }
}
