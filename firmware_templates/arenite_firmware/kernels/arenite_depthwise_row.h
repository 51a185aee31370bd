/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels for computers of DEPTHWISE_CONV_2D share: the rows of one output row's window. */
#ifndef ARENITE_DEPTHWISE_ROW_H
#define ARENITE_DEPTHWISE_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "arenite_depthwise_conv_2d_s8_host.h"
#include "arenite_host_blocks.h"

#define ARENITE_GROUP 4 /* rows of a window that are multiplied at once */

typedef struct {
    const arenite_depthwise_conv_2d_s8_t *params; /* packed for the host */
    int32_t groups;
    const int8_t *rows[ARENITE_HOST_ROWS]; /* [4 * groups] */
    ptrdiff_t steps[ARENITE_HOST_ROWS];    /* to the next pixel; 0 in a row that lies outside */
    const int8_t *outside;                 /* a pixel whose bytes are all in_zero_point */
    int8_t *out;
} arenite_depthwise_row_t;

/* With the best instructions that may be used. */
void arenite_depthwise_row(const arenite_depthwise_row_t *row);

void arenite_depthwise_row_avx512(const arenite_depthwise_row_t *row);
void arenite_depthwise_row_avx2(const arenite_depthwise_row_t *row);
void arenite_depthwise_row_neon(const arenite_depthwise_row_t *row);

/* One pixel of input in row `ky` of the window, which may lie outside. */
static inline const int8_t *arenite_depthwise_pixel(const arenite_depthwise_row_t *row, int32_t ky,
                                                    int32_t x) {
    const int inside = x >= 0 && x < row->params->in_w;
    return inside ? row->rows[ky] + x * row->steps[ky] : row->outside;
}

/* Where a walk over the input columns of a window of up to 3 rows is, for kernels that reuse columns. */
typedef struct {
    const int8_t
        *rows[3]; /* the next column inside, in the first channel of those that are computed at once */
    int32_t x;    /* the next column */
} arenite_depthwise_walk_t;

static inline arenite_depthwise_walk_t arenite_start_walk(const arenite_depthwise_row_t *row,
                                                          int32_t channel) {
    const int32_t first = -row->params->pad_left;
    arenite_depthwise_walk_t walk;
    ARENITE_UNROLL
    for (int32_t ky = 0; ky < 3; ky++) {
        walk.rows[ky] = row->rows[ky] + channel + (first > 0 ? first * row->steps[ky] : 0);
    }
    walk.x = first;
    return walk;
}

/* Take a column; returns whether it is inside, then rows is where to read it. */
static inline __attribute__((always_inline)) int arenite_next_column(arenite_depthwise_walk_t *walk,
                                                                     const arenite_depthwise_row_t *row,
                                                                     const int8_t *rows[3]) {
    const int32_t x = walk->x++;
    if (x < 0 || x >= row->params->in_w) {
        return 0;
    }
    ARENITE_UNROLL
    for (int32_t ky = 0; ky < 3; ky++) {
        rows[ky] = walk->rows[ky];
        walk->rows[ky] += row->steps[ky];
    }
    return 1;
}

#endif
