/* SPDX-License-Identifier: Apache-2.0 */
/* AVERAGE_POOL_2D over the whole map, int8: each step adds one row to the sums, the last step writes the result.
 * Authority: TFLM reference_integer_ops::AveragePool: rounds half away from zero. Sums fit int32 up to 2^24 pixels. */
#ifndef ARENITE_AVERAGE_POOL_GLOBAL_S8_H
#define ARENITE_AVERAGE_POOL_GLOBAL_S8_H

#include <stdint.h>

typedef struct {
    int32_t rows;
    int32_t width;
    int32_t channels;
    int16_t act_min;
    int16_t act_max;
} arenite_average_pool_global_s8_t;

/* rows: one row of width * channels bytes. out: channels bytes, written by the last step. scratch: int32[channels]. */
void arenite_average_pool_global_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                    int32_t *scratch);

#endif
