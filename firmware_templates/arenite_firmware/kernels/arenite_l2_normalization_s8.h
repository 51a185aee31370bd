/* SPDX-License-Identifier: Apache-2.0 */
/* L2_NORMALIZATION over the channels of each pixel, int8; the output has scale 1/128 and zero point 0.
 * Authority: TFLM reference_integer_ops::L2Normalization. The sum of squares fits int32 up to 2^15 channels. */
#ifndef ARENITE_L2_NORMALIZATION_S8_H
#define ARENITE_L2_NORMALIZATION_S8_H

#include <stdint.h>

typedef struct {
    int32_t width;
    int32_t channels;      /* 1 .. 2^15 */
    int16_t in_zero_point; /* -128 .. 127 */
} arenite_l2_normalization_s8_t;

/* rows: one row of width * channels bytes. out: as many; it may start at or before the row. */
void arenite_l2_normalization_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                 int32_t *scratch);

#endif
