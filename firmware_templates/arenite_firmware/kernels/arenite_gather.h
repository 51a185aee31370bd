/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the bytes of an output row out of the input: DEPTH_TO_SPACE, GATHER, TILE, RESIZE_NEAREST_NEIGHBOR and all others that
 * only move elements. The generator applies the operator to the numbers of the input's elements and gives the result here.
 * Authority: the TFLM (TILE: LiteRT) kernel of each operator; none of them computes. */
#ifndef ARENITE_GATHER_H
#define ARENITE_GATHER_H

#include <stdint.h>

typedef struct {
    const int32_t *
        runs; /* int32[phases][outer]: where each group of runs starts, from the row's pointer in bytes; below 0:
                            a run of `fill`. NULL: at first + i * outer_step */
    int32_t first;
    int32_t outer_step;
    int32_t phases; /* the step modulo this says which of the starts */
    int32_t outer;  /* groups of runs a row */
    int32_t inner;  /* runs a group */
    int32_t inner_step;
    int32_t run;      /* bytes side by side */
    int32_t row_step; /* added to every start from step to step; for a pointer to the whole input */
    int16_t fill;     /* -128 .. 127; of wider elements 0 */
} arenite_gather_t;

/* rows: one row of the input, or one pointer to all of it. out: outer * inner * run bytes, apart from the input. */
void arenite_gather(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch);

#endif
