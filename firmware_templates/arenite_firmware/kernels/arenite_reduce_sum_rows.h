/* SPDX-License-Identifier: Apache-2.0 */
/* MEAN and SUM over arenite_reduce_sum_s8_t for one type of elements. A kernel's C file defines ELEMENT, ELEMENT_MIN and
 * ELEMENT_MAX and includes this. */
#include <stddef.h>

#include "arenite_fixed_point.h"
#include "arenite_reduce_sum_s8.h"

static void add_row(const arenite_reduce_sum_s8_t *p, const ELEMENT *row, int32_t *sums) {
    for (int32_t x = 0; x < p->width; x++) {
        int32_t *sum = sums + (ptrdiff_t)x * p->out_pixel_step;
        for (int32_t c = 0; c < p->channels; c++) {
            *sum += *row++;
            sum += p->out_channel_step;
        }
    }
}

static inline void reduce_row(const arenite_reduce_sum_s8_t *p, const int8_t *row, ELEMENT *out, int32_t step,
                              int32_t *sums) {
    const int32_t number = p->rows > 1 ? step : 0;
    if (number == 0) {
        for (int32_t i = 0; i < p->outputs; i++) {
            sums[i] = p->offset;
        }
    }
    add_row(p, (const ELEMENT *)(const void *)row, sums);
    if (number < p->rows - 1) {
        return;
    }
    for (int32_t i = 0; i < p->outputs; i++) {
        const int32_t scaled = arenite_requantise(sums[i], p->multiplier, p->shift);
        const int32_t moved = (int32_t)((uint32_t)scaled + (uint32_t)p->out_zero_point);
        out[i] = (ELEMENT)arenite_clamp(moved, ELEMENT_MIN, ELEMENT_MAX);
    }
}
