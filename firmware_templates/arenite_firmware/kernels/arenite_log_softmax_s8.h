/* SPDX-License-Identifier: Apache-2.0 */
/* LOG_SOFTMAX over the channels, int8 to int8 with output scale 1/16 and zero point 127, one row a call.
 * Authority: TFLM reference_ops::LogSoftmax (fixed point, gemmlowp): the logarithm of the sum is a quotient of polynomials
 * around the fourth root of 1/2. */
#ifndef ARENITE_LOG_SOFTMAX_S8_H
#define ARENITE_LOG_SOFTMAX_S8_H

#include <stdint.h>

typedef struct {
    const int32_t *exp_table; /* [exp_count]: exp(-d * scale) in Q0.31 for d = 0, 1, .. */
    int32_t exp_count;        /* 1 .. 256; a greater difference adds nothing and is the least byte */
    int32_t width;
    int32_t channels;        /* at most 4095, so that the sum in Q12.19 fits */
    int32_t multiplier;      /* from a difference of bytes to Q5.26, 2^30 .. 2^31 - 1 */
    int32_t back_multiplier; /* from Q5.26 to a difference of bytes */
    int8_t shift;            /* 1 .. 30, left */
    int8_t back_shift;       /* -31 .. 0, right */
} arenite_log_softmax_s8_t;

/* rows: one row of width * channels bytes. out: as many, apart from the row. No scratch. */
void arenite_log_softmax_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch);

#endif
