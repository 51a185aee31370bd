/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_host.h"

#include <stddef.h>

#include "arenite_conv_2d_row_avx512.h"
#include "arenite_conv_2d_tile.h"
#include "arenite_host_isa.h"
#include "arenite_window_copy.h"

/* Input pixels that the windows of a tile touch. */
static int32_t span(const arenite_conv_2d_s8_t *p, int32_t pixels) {
    return (pixels - 1) * p->stride_w + p->kernel_w;
}

static int exist(const int8_t *const *rows, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (rows[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

/* Whether every word of the windows of a tile, which starts at input pixel `first`, lies inside the rows. */
static int lies_inside(const arenite_conv_2d_s8_t *p, int32_t first, const arenite_conv_tile_t *tile) {
    const int32_t last = first + (tile->pixels - 1) * p->stride_w;
    return first >= 0 && last * p->in_c + ARENITE_WORD * tile->words <= p->in_w * p->in_c;
}

void arenite_conv_2d_s8_host(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                             int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    (void)step;
    (void)scratch;
#if defined(__x86_64__)
    if (arenite_conv_2d_row_suits_avx512(p) && arenite_host_isa() == ARENITE_ISA_AVX512) {
        arenite_conv_2d_row_avx512(p, rows, out);
        return;
    }
#endif
    const int32_t words = (p->kernel_w * p->in_c + ARENITE_WORD - 1) / ARENITE_WORD;
    const ptrdiff_t distance = (ptrdiff_t)p->stride_w * p->in_c;
    const int have_rows = exist(rows, p->kernel_h);
    int8_t copies[ARENITE_HOST_COPIES + ARENITE_COPY_CHUNK];
    const int8_t *pointers[ARENITE_HOST_RUNS * ARENITE_LARGE_TILE_PIXELS];
    arenite_tiling_t tiling = arenite_tile_row(p->out_w, arenite_conv_tile_pixels(p));
    arenite_conv_tile_t tile = {p, pointers, p->kernel_h, words, 0, out};
    for (int32_t x = 0; x < p->out_w; x += tile.pixels) {
        tile.pixels = arenite_next_tile(&tiling);
        const int32_t first = x * p->stride_w - p->pad_left;
        const int inside = have_rows && lies_inside(p, first, &tile);
        const int32_t pixels = span(p, tile.pixels);
        int8_t *own = copies;
        const int8_t **next = pointers;
        for (int32_t ky = 0; ky < p->kernel_h; ky++) {
            const int8_t *from = own;
            if (inside) {
                from = rows[ky] + (ptrdiff_t)first * p->in_c;
            } else {
                arenite_copy_pixels(p, rows[ky], first, pixels, own);
                own += pixels * p->in_c + ARENITE_WORD; /* the last word of a run may end behind it */
            }
            for (int32_t i = 0; i < tile.pixels; i++, from += distance) {
                *next++ = from;
            }
        }
        arenite_conv_2d_tile(&tile);
        tile.out += (ptrdiff_t)tile.pixels * p->out_c;
    }
}
