/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX over the channels, int8 to int8 with output scale 1/256 and zero point -128, one row a call.
 * Authority: TFLM reference_ops::Softmax (fixed point, gemmlowp). A byte only has 256 differences from the greatest, so their
 * exponentials are a table and the input's zero point does not matter. */
#ifndef ARENITE_SOFTMAX_S8_H
#define ARENITE_SOFTMAX_S8_H

#include <stdint.h>

typedef struct {
    const int32_t *exp_table; /* [exp_count]: exp(-d * beta * scale) in Q0.31 for d = 0, 1, .. */
    int32_t exp_count;        /* 1 .. 256; a greater difference contributes nothing */
    int32_t width;
    int32_t channels; /* at most 4095, so that the sum in Q12.19 fits */
} arenite_softmax_s8_t;

/* rows: one row of width * channels bytes. out: as many, apart from the row. No scratch. */
void arenite_softmax_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch);

#endif
