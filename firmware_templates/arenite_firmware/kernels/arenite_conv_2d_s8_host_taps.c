/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_host_taps.h"

#include <stddef.h>

#include "arenite_conv_2d_tile.h"

/* A row's worth of input bytes that are all in_zero_point: what lies outside. */
static const int8_t *outside(const arenite_conv_2d_s8_t *p) {
    const ptrdiff_t channels = (ptrdiff_t)ARENITE_BLOCK * arenite_blocks(p->out_c);
    return p->weights + channels * p->kernel_h * p->kernel_w * p->in_c;
}

/* Segments of a tile: one a tap. */
static void list_taps(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                      arenite_conv_tile_t *tile, const int8_t **pointers) {
    const int8_t *const none = outside(p);
    for (int32_t kx = 0; kx < p->kernel_w; kx++) {
        const int8_t **column = pointers + kx * tile->pixels;
        int32_t x = first + kx * p->dilation_w;
        for (int32_t i = 0; i < tile->pixels; i++, x += p->stride_w, column++) {
            const int inside = x >= 0 && x < p->in_w;
            const ptrdiff_t offset = (ptrdiff_t)x * p->in_c;
            for (int32_t ky = 0; ky < p->kernel_h; ky++) {
                const int8_t *row = inside ? rows[ky] : NULL;
                column[ky * p->kernel_w * tile->pixels] = row == NULL ? none : row + offset;
            }
        }
    }
    tile->segments = p->kernel_h * p->kernel_w;
    tile->words = p->in_c / ARENITE_WORD;
}

void arenite_conv_2d_s8_host_taps(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                  int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int8_t *pointers[ARENITE_HOST_TAPS * ARENITE_LARGE_TILE_PIXELS];
    arenite_tiling_t tiling = arenite_tile_row(p->out_w, arenite_conv_tile_pixels(p));
    arenite_conv_tile_t tile = {p, pointers, 0, 0, 0, out};
    (void)step;
    (void)scratch;
    for (int32_t x = 0; x < p->out_w; x += tile.pixels) {
        tile.pixels = arenite_next_tile(&tiling);
        const int32_t first = x * p->stride_w - p->pad_left;
        list_taps(p, rows, first, &tile, pointers);
        arenite_conv_2d_tile(&tile);
        tile.out += (ptrdiff_t)tile.pixels * p->out_c;
    }
}
