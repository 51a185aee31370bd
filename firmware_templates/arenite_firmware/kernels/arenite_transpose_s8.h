/* SPDX-License-Identifier: Apache-2.0 */
/* TRANSPOSE of one byte elements within a batch item, one output row a call.
 * Authority: TFLM reference_ops::Transpose. */
#ifndef ARENITE_TRANSPOSE_S8_H
#define ARENITE_TRANSPOSE_S8_H

#include <stdint.h>

typedef struct {
    int32_t width; /* of an output row */
    int32_t channels;
    int32_t row_step; /* distance in the input, in bytes, of neighbouring output rows, pixels and channels */
    int32_t pixel_step;
    int32_t channel_step;
} arenite_transpose_s8_t;

/* rows: one pointer to the whole input. out: width * channels bytes, apart from the input bytes still to be read. */
void arenite_transpose_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                          int32_t *scratch);

#endif
