/* SPDX-License-Identifier: Apache-2.0 */
/* PAD of rows, pixels and channels, int8, one output row a call. With no padding it copies a row.
 * Authority: TFLM reference_ops::Pad. */
#ifndef ARENITE_PAD_S8_H
#define ARENITE_PAD_S8_H

#include <stdint.h>

typedef struct {
    int32_t in_w;
    int32_t in_c;
    int32_t left; /* pixels before and after each row */
    int32_t right;
    int32_t before; /* channels before and after those of each pixel */
    int32_t after;
    int16_t value; /* -128 .. 127 */
} arenite_pad_s8_t;

/* rows: one row of in_w * in_c bytes, or NULL for a row of nothing but `value`.
 * out: (left + in_w + right) * (before + in_c + after) bytes, apart from the row. */
void arenite_pad_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch);

#endif
