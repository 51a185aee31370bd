/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s16.h"

#define ELEMENT int16_t
#include "arenite_mac_any_rows.h"

void arenite_conv_2d_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch) {
    (void)step;
    (void)scratch;
    conv_row((const arenite_mac_any_t *)params, rows, out);
}
