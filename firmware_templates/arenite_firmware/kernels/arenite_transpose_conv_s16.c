/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_transpose_conv_s16.h"

#define ELEMENT int16_t
#include "arenite_mac_any_rows.h"

void arenite_transpose_conv_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                int32_t *scratch) {
    (void)scratch;
    transposed_row((const arenite_mac_any_t *)params, rows, out, step);
}
