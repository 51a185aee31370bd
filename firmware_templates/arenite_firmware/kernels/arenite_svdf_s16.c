/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_svdf_s16.h"

#define STATE int16_t
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "arenite_svdf_step.h"

void arenite_svdf_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                      int32_t *scratch) {
    (void)step;
    (void)scratch;
    svdf_step((const arenite_svdf_t *)params, rows, out);
}
