/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_batch_matmul_s8.h"

#define ELEMENT int8_t
#define SUM int32_t
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#define REQUANTISE arenite_requantise
#include "arenite_batch_matmul_rows.h"

void arenite_batch_matmul_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch) {
    (void)scratch;
    matmul_row((const arenite_batch_matmul_t *)params, rows, out, step);
}
