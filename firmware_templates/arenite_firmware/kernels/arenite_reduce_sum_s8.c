/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_reduce_sum_s8.h"

#define ELEMENT int8_t
#define ELEMENT_MIN INT8_MIN
#define ELEMENT_MAX INT8_MAX
#include "arenite_reduce_sum_rows.h"

void arenite_reduce_sum_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                           int32_t *scratch) {
    reduce_row((const arenite_reduce_sum_s8_t *)params, rows[0], (int8_t *)(void *)out, step, scratch);
}
