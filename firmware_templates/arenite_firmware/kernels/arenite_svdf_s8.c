/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_svdf_s8.h"

#define STATE int8_t
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "arenite_svdf_step.h"

void arenite_svdf_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                     int32_t *scratch) {
    (void)step;
    (void)scratch;
    svdf_step((const arenite_svdf_t *)params, rows, out);
}
