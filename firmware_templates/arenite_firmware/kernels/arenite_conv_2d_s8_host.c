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

/* The windows of a tile, whose first one starts at input pixel `first`. */
typedef struct {
    const arenite_conv_2d_s8_t *params;
    ptrdiff_t distance; /* bytes from window to window */
    int32_t first;
    int32_t left; /* windows that reach outside on the left, and on the right */
    int32_t right;
    int32_t inner; /* those between them, which are read where they lie */
} windows_t;

static int32_t sum_of_spans(const arenite_conv_2d_s8_t *p, int32_t left, int32_t right) {
    return (left > 0 ? span(p, left) : 0) + (right > 0 ? span(p, right) : 0);
}

/* Words may end behind a window, so one that ends at the row's end can count as outside. */
static windows_t find_windows(const arenite_conv_2d_s8_t *p, int32_t first, int32_t pixels, int32_t words) {
    const int32_t row_bytes = p->in_w * p->in_c, bytes = ARENITE_WORD * words;
    int32_t left = 0, right = 0, x = first;
    for (; left < pixels && x < 0; x += p->stride_w) {
        left++;
    }
    x = first + (pixels - 1) * p->stride_w;
    for (; right < pixels && x * p->in_c + bytes > row_bytes; x -= p->stride_w) {
        right++;
    }
    if (left + right > pixels || sum_of_spans(p, left, right) > span(p, pixels)) {
        left = pixels;
        right = 0;
    }
    const windows_t windows = {
        p, (ptrdiff_t)p->stride_w * p->in_c, first, left, right, pixels - left - right};
    return windows;
}

/* Pointers to `count` windows from `from` on; returns the place behind them. */
static const int8_t **list(const int8_t **next, const int8_t *from, int32_t count, ptrdiff_t distance) {
    for (int32_t i = 0; i < count; i++, from += distance) {
        *next++ = from;
    }
    return next;
}

/* Copy `count` windows of a row, window `index` and so on, and list them. Returns the place behind the copies. */
static int8_t *copy_windows(const windows_t *w, const int8_t *row, int32_t index, int32_t count, int8_t *own,
                            const int8_t **next) {
    const arenite_conv_2d_s8_t *p = w->params;
    if (count == 0) {
        return own;
    }
    const int32_t pixels = span(p, count);
    arenite_copy_pixels(p, row, w->first + index * p->stride_w, pixels, own);
    list(next, own, count, w->distance);
    return own + pixels * p->in_c + ARENITE_WORD; /* the last word of a run may end behind it */
}

/* Pointers to a tile's windows, [kernel_h][pixels]. Those outside the row are copied, of rows that are not there one is. */
static void list_windows(const windows_t *w, const int8_t *const *rows, int8_t *own, const int8_t **next) {
    const arenite_conv_2d_s8_t *p = w->params;
    const int8_t *none = NULL;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *row = rows[ky];
        if (row != NULL) {
            const int32_t before = w->left + w->inner;
            own = copy_windows(w, row, 0, w->left, own, next);
            next = list(next + w->left, row + (w->first + w->left * p->stride_w) * (ptrdiff_t)p->in_c,
                        w->inner, w->distance);
            own = copy_windows(w, row, before, w->right, own, next);
            next += w->right;
            continue;
        }
        if (none == NULL) {
            none = own;
            own = arenite_fill_bytes(own, p->in_zero_point, p->kernel_w * p->in_c) + ARENITE_WORD;
        }
        next = list(next, none, w->left + w->inner + w->right, 0);
    }
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
    int8_t copies[ARENITE_HOST_COPIES + ARENITE_HOST_RUNS * ARENITE_WORD + ARENITE_COPY_CHUNK];
    const int8_t *pointers[ARENITE_HOST_RUNS * ARENITE_LARGE_TILE_PIXELS];
    arenite_tiling_t tiling = arenite_tile_row(p->out_w, arenite_conv_tile_pixels(p));
    arenite_conv_tile_t tile = {p, pointers, p->kernel_h, words, 0, out};
    for (int32_t x = 0; x < p->out_w; x += tile.pixels) {
        tile.pixels = arenite_next_tile(&tiling);
        const windows_t windows = find_windows(p, x * p->stride_w - p->pad_left, tile.pixels, words);
        list_windows(&windows, rows, copies, pointers);
        arenite_conv_2d_tile(&tile);
        tile.out += (ptrdiff_t)tile.pixels * p->out_c;
    }
}
