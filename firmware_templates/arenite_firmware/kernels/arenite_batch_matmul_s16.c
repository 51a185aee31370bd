/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_batch_matmul_s16.h"

#define ELEMENT int16_t
#define SUM int64_t
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#define REQUANTISE arenite_requantise_wide
#include "arenite_batch_matmul_rows.h"

void arenite_batch_matmul_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                              int32_t *scratch) {
    (void)scratch;
    matmul_row((const arenite_batch_matmul_t *)params, rows, out, step);
}
