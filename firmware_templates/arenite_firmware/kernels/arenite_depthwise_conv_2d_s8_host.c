/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_conv_2d_s8_host.h"

#include "arenite_depthwise_row.h"

void arenite_depthwise_conv_2d_s8_host(const void *params, const int8_t *const *rows, int8_t *out,
                                       int32_t step, int32_t *scratch) {
    const arenite_depthwise_conv_2d_s8_t *p = (const arenite_depthwise_conv_2d_s8_t *)params;
    const ptrdiff_t channels = (ptrdiff_t)ARENITE_BLOCK * arenite_blocks(p->in_c);
    arenite_depthwise_row_t row;
    (void)step;
    (void)scratch;
    row.params = p;
    row.groups = (p->kernel_h + ARENITE_GROUP - 1) / ARENITE_GROUP;
    row.outside = p->weights + channels * p->kernel_w * row.groups * ARENITE_GROUP;
    row.out = out;
    for (int32_t ky = 0; ky < row.groups * ARENITE_GROUP; ky++) {
        const int is_inside = ky < p->kernel_h && rows[ky] != NULL;
        row.rows[ky] = is_inside ? rows[ky] : row.outside;
        row.steps[ky] = is_inside ? p->in_c : 0;
    }
    arenite_depthwise_row(&row);
}
