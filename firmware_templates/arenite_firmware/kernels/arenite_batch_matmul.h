/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_MATMUL of two values that are both computed, one output row a call; for one element type in
 * arenite_batch_matmul_rows.h. */
#ifndef ARENITE_BATCH_MATMUL_H
#define ARENITE_BATCH_MATMUL_H

#include <stdint.h>

#include "arenite_mac_any.h"

/* Steps are in elements. A matrix is found by up to three indices, the last fastest; a step of 0 broadcasts. */
typedef struct {
    int32_t rows;     /* of one output matrix */
    int32_t columns;  /* of one output matrix */
    int32_t depth;    /* products in a sum, at most 32768 */
    int32_t batch_1;  /* extent of the second index */
    int32_t batch_2;  /* extent of the third index */
    int32_t a_step_0; /* left side, by index */
    int32_t a_step_1;
    int32_t a_step_2;
    int32_t a_row_step;
    int32_t a_depth_step;
    int32_t b_step_0; /* right side, by index */
    int32_t b_step_1;
    int32_t b_step_2;
    int32_t b_column_step;
    int32_t b_depth_step;
    int32_t multiplier; /* 0 or 2^30 .. 2^31 - 1 */
    int8_t shift;       /* -31 .. 30, positive is left; with int16 below 8 */
    int16_t a_zero_point;
    int16_t b_zero_point;
    int16_t out_zero_point;
} arenite_batch_matmul_t;

#endif
