/* SPDX-License-Identifier: Apache-2.0 */
/* Part of a row, of any element type: SLICE, STRIDED_SLICE, SPLIT, SPLIT_V. Moves bytes and computes nothing.
 * Authority: TFLM reference_ops::StridedSlice, Slice, Split. */
#ifndef ARENITE_SLICE_H
#define ARENITE_SLICE_H

#include <stdint.h>

/* In elements of the input row, but for element_bytes. */
typedef struct {
    int32_t first;        /* element that comes first */
    int32_t width;        /* output pixels */
    int32_t pixel_step;   /* may be negative */
    int32_t channels;     /* output channels */
    int32_t channel_step; /* may be negative */
    int32_t element_bytes;
} arenite_slice_t;

/* rows: one row. out: width * channels elements, apart from the row. No scratch. */
void arenite_slice(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                   int32_t *scratch);

#endif
