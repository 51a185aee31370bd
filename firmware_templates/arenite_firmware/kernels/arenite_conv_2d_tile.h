/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels for computers of CONV_2D share: a tile is a few output pixels, all their channels.
 *
 * Channels are computed in blocks of 16, input bytes in words of 4. A pixel's window is a list of segments, each a run of
 * words that lies somewhere in memory. The instructions at hand differ from tile function to tile function, the bytes
 * that they write do not. */
#ifndef ARENITE_CONV_2D_TILE_H
#define ARENITE_CONV_2D_TILE_H

#include <stdint.h>

#include "arenite_conv_2d_s8.h"
#include "arenite_host_blocks.h"

#define ARENITE_TILE_PIXELS 6       /* at most, but */
#define ARENITE_LARGE_TILE_PIXELS 8 /* with AVX-512 and at most two blocks */

typedef struct {
    const arenite_conv_2d_s8_t *params; /* packed for the host, see arenite_conv_2d_s8_host.h */
    const int8_t *const *pointers;      /* [segments][pixels] */
    int32_t segments;
    int32_t words;  /* of each segment */
    int32_t pixels; /* 1 .. arenite_conv_tile_pixels() */
    int8_t *out;    /* [pixels][out_c] */
} arenite_conv_tile_t;

/* Pixels of a tile at most. */
int32_t arenite_conv_tile_pixels(const arenite_conv_2d_s8_t *params);

/* With the best instructions that may be used. */
void arenite_conv_2d_tile(const arenite_conv_tile_t *tile);

void arenite_conv_2d_tile_avx512(const arenite_conv_tile_t *tile);
void arenite_conv_2d_tile_avxvnni(const arenite_conv_tile_t *tile);
void arenite_conv_2d_tile_avx2(const arenite_conv_tile_t *tile);
void arenite_conv_2d_tile_neon(const arenite_conv_tile_t *tile);

/* A row's pixels as tiles of about the same size, `most` at most. */
typedef struct {
    int32_t larger; /* tiles of pixels + 1, which come first */
    int32_t pixels;
} arenite_tiling_t;

static inline arenite_tiling_t arenite_tile_row(int32_t pixels, int32_t most) {
    const int32_t tiles = (pixels + most - 1) / most;
    const arenite_tiling_t tiling = {pixels % tiles, pixels / tiles};
    return tiling;
}

/* Pixels of the next tile. */
static inline int32_t arenite_next_tile(arenite_tiling_t *tiling) {
    return tiling->larger-- > 0 ? tiling->pixels + 1 : tiling->pixels;
}

#endif
