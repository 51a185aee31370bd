/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_mve.h"

#if defined(__ARM_FEATURE_MVE)
#include <stddef.h>

#include "arenite_conv_2d_mve_tile.h"
#include "arenite_mve.h"

#define TILE ARENITE_MVE_TILE
#define BLOCK ARENITE_MVE_BLOCK
/* Windows whose rows are shorter than this are copied together: a run costs 3 instructions for two channels, and what its
 * last turn wastes. */
#define LONG_RUN 48

/* How runs of `bytes` bytes are described. */
typedef struct {
    int32_t bytes;
    int32_t turns;
    int32_t entry_words;
    arenite_mve_turn_t turn;
} runs_t;

/* What holds for all windows of a layer. */
typedef struct {
    int32_t window_bytes;
    int32_t is_by_rows; /* rows of a window are read as runs of their own */
    runs_t row;
} shape_t;

/* Windows of a tile's pixels as runs. Bytes that were copied lie behind `copies`, at the end of the words. */
typedef struct {
    arenite_mve_product_t product;
    int8_t *copies;
} windows_t;

#if ARENITE_MVE_WORDS < 5 * ARENITE_MVE_RUNS + 4 || ARENITE_MVE_WORDS < 4 * ARENITE_MVE_WHOLE_RUNS + 4 ||    \
    4 * (ARENITE_MVE_WORDS - 9) < ARENITE_MVE_COPY
#error "Neither all runs nor a copy beside one run would find room."
#endif

static runs_t runs_of(int32_t bytes) {
    const uint32_t count = (uint32_t)bytes;
    runs_t runs = {bytes, bytes, 5, ARENITE_MVE_BY_16};
    if (count == 48) {
        runs.turn = ARENITE_MVE_ALL_48;
        runs.turns = 1;
        runs.entry_words = 3;
    } else if (count % 48 == 0) {
        runs.turn = ARENITE_MVE_BY_48;
        runs.turns = (int32_t)(count / 48);
        runs.entry_words = 4;
    } else if (count % 32 == 0) {
        runs.turn = ARENITE_MVE_BY_32;
        runs.turns = (int32_t)(count / 32);
        runs.entry_words = 4;
    }
    return runs;
}

static inline void start_runs(windows_t *windows, const runs_t *runs, int32_t count) {
    windows->product.bytes = runs->bytes;
    windows->product.more_runs = count - 1;
    windows->product.turn = runs->turn;
    windows->copies = (int8_t *)(windows->product.entries + ARENITE_MVE_WORDS);
}

/* A run of each pixel; returns where the next entry goes. */
static inline uint32_t *add_run(uint32_t *entry, const runs_t *runs, const int8_t *x, const int8_t *y,
                                const int8_t *z) {
    entry[0] = (uint32_t)(uintptr_t)x;
    entry[1] = (uint32_t)(uintptr_t)y;
    entry[2] = (uint32_t)(uintptr_t)z;
    if (runs->entry_words > 3) {
        entry[3] = (uint32_t)runs->turns;
        entry[4] = (uint32_t)(-runs->bytes & 15);
    }
    return entry + runs->entry_words;
}

/* How many bytes can be copied beside `count` entries and the last one. */
static inline int32_t room(int32_t count, int32_t entry_words) {
    return 4 * (ARENITE_MVE_WORDS - 4 - entry_words * count);
}

/* `bytes` of that room. */
static inline int8_t *take(windows_t *windows, int32_t bytes) {
    windows->copies -= bytes;
    return windows->copies;
}

/* All channels of `pixels` pixels. The weights of a short window end with zeros up to a whole step, over which the last
 * run is not moved back. */
static inline void run_tile(const arenite_conv_2d_s8_t *p, windows_t *windows, int32_t pixels,
                            const shape_t *shape, int8_t *out) {
    const int32_t window_bytes = shape->window_bytes;
    arenite_mve_product_t *const product = &windows->product;
    uint32_t *const end = product->end;
    const int32_t is_short = window_bytes <= ARENITE_MVE_RESIDENT_ALONE;
    const int32_t zeros = is_short ? -window_bytes & 15 : 0;
    const int32_t fits = window_bytes <= ARENITE_MVE_RESIDENT || (is_short && pixels == 1);
    product->weights = p->weights;
    product->step = window_bytes + zeros;
    if (zeros != 0) {
        end[-1] -= (uint32_t)zeros;
    }
    end[0] = (uint32_t)(uintptr_t)product->entries;
    end[1] = (uint32_t)product->step;
    end[3] = product->turn == ARENITE_MVE_ALL_48 ? (uint32_t)product->more_runs : 0;
    arenite_mve_tile(product, p, fits && product->bytes == window_bytes, pixels, out);
}

static int exist(const int8_t *const *rows, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (rows[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

/* Whether the windows of `pixels` pixels from input pixel `first` on are runs inside the row. */
static int is_inside(const arenite_conv_2d_s8_t *p, int32_t first, int32_t pixels) {
    const int32_t last = first + (pixels - 1) * p->stride_w + (p->kernel_w - 1) * p->dilation_w;
    return first >= 0 && last < p->in_w && (p->dilation_w == 1 || p->kernel_w == 1);
}

/* `taps` pixels of a row, not all of them inside, or not one run. */
static __attribute__((noinline)) int8_t *copy_taps(const arenite_conv_2d_s8_t *p, const int8_t *row,
                                                   int32_t first, int32_t taps, int8_t *to) {
    const int32_t in_c = p->in_c, in_w = p->in_w, zero_point = p->in_zero_point;
    const int32_t end = first + taps;
    const int one_run = p->dilation_w == 1;
    if (row == NULL || (one_run && (end <= 0 || first >= in_w))) {
        return arenite_mve_fill(to, zero_point, taps * in_c);
    }
    if (one_run) {
        const int32_t from = first < 0 ? 0 : first, until = end > in_w ? in_w : end;
        to = arenite_mve_fill(to, zero_point, (from - first) * in_c);
        to = arenite_mve_copy(to, row + (ptrdiff_t)from * in_c, (until - from) * in_c);
        return arenite_mve_fill(to, zero_point, (end - until) * in_c);
    }
    for (int32_t kx = 0, x = first; kx < taps; kx++, x += p->dilation_w) {
        if (x >= 0 && x < in_w) {
            to = arenite_mve_copy(to, row + (ptrdiff_t)x * in_c, in_c);
        } else {
            to = arenite_mve_fill(to, zero_point, in_c);
        }
    }
    return to;
}

/* Rows of a window, `span` bytes of each. */
static inline int8_t *copy_rows(const int8_t *const *rows, int32_t count, ptrdiff_t offset, int32_t span,
                                int8_t *to) {
    const int8_t *const *const end = rows + count;
    const int8_t *from;
    int8_t *at;
    __asm__ volatile("1:\n\t"
                     "ldr %[from], [%[rows]], #4\n\t"
                     "add %[from], %[from], %[offset]\n\t"
                     "mov %[at], %[to]\n\t"
                     "dlstp.8 lr, %[span]\n"
                     "2:\n\t"
                     "vldrb.8 q0, [%[from]], #16\n\t"
                     "vstrb.8 q0, [%[at]], #16\n\t"
                     "letp lr, 2b\n\t"
                     "add %[to], %[to], %[span]\n\t"
                     "cmp %[rows], %[end]\n\t"
                     "bne 1b"
                     : [rows] "+r"(rows), [to] "+r"(to), [from] "=&r"(from), [at] "=&r"(at)
                     : [offset] "r"(offset), [span] "r"(span), [end] "r"(end)
                     : "q0", "lr", "cc", "memory");
    return to;
}

/* Windows copied as one run each. */
static __attribute__((noinline)) void copied(const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                                             int32_t have_rows, int32_t first, int32_t pixels,
                                             windows_t *windows) {
    const int32_t kernel_h = p->kernel_h, span = p->kernel_w * p->in_c, bytes = kernel_h * span;
    const runs_t runs = runs_of(bytes);
    start_runs(windows, &runs, 1);
    int8_t *to = take(windows, pixels * bytes);
    windows->product.end = add_run(windows->product.entries, &runs, to, to + bytes, to + 2 * bytes);
    for (; pixels > 0; pixels--, first += p->stride_w) {
        const ptrdiff_t offset = is_inside(p, first, 1) ? (ptrdiff_t)first * p->in_c : -1;
        if (have_rows && offset >= 0) {
            to = copy_rows(rows, kernel_h, offset, span, to);
            continue;
        }
        for (int32_t ky = 0; ky < kernel_h; ky++) {
            const int8_t *const row = rows[ky];
            to = row != NULL && offset >= 0 ? arenite_mve_copy(to, row + offset, span)
                                            : copy_taps(p, row, first, p->kernel_w, to);
        }
    }
}

/* Windows read where they lie, a run for each of their rows. */
static inline void in_place(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                            const runs_t *runs_of_row, windows_t *windows) {
    const int32_t distance = p->stride_w * p->in_c;
    const ptrdiff_t offset = (ptrdiff_t)first * p->in_c;
    const int8_t *const *const end = rows + p->kernel_h;
    const runs_t runs = *runs_of_row;
    uint32_t *entry = windows->product.entries;
    start_runs(windows, &runs, p->kernel_h);
    for (; rows < end; rows++) {
        const int8_t *const x = *rows + offset;
        entry = add_run(entry, &runs, x, x + distance, x + 2 * distance);
    }
    windows->product.end = entry;
}

/* The same where some of it is outside: that is copied, `length` pixels of a row for all windows. */
static __attribute__((noinline)) void by_rows(const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                                              int32_t first, int32_t length, int is_inside_row,
                                              const runs_t *runs, windows_t *windows) {
    const int32_t distance = p->stride_w * p->in_c, bytes = length * p->in_c;
    const int8_t *outside = NULL;
    uint32_t *entry = windows->product.entries;
    start_runs(windows, runs, p->kernel_h);
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *x = outside;
        if (rows[ky] != NULL && is_inside_row) {
            x = rows[ky] + (ptrdiff_t)first * p->in_c;
        } else if (rows[ky] != NULL || outside == NULL) {
            int8_t *const to = take(windows, bytes);
            copy_taps(p, rows[ky], first, length, to);
            outside = rows[ky] == NULL ? to : outside;
            x = to;
        }
        entry = add_run(entry, runs, x, x + distance, x + 2 * distance);
    }
    windows->product.end = entry;
}

/* Windows too large to be copied: a run for each tap. */
static __attribute__((noinline)) void by_taps(const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                                              int32_t first, windows_t *windows) {
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int8_t *const outside = p->weights + (ptrdiff_t)((p->out_c + 3) & ~3) * taps * p->in_c;
    const runs_t runs = runs_of(p->in_c);
    uint32_t *entry = windows->product.entries;
    start_runs(windows, &runs, taps);
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *const row = rows[ky];
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int8_t *at[TILE];
            for (int32_t i = 0, xi = x; i < TILE; i++, xi += p->stride_w) {
                at[i] = row != NULL && xi >= 0 && xi < p->in_w ? row + (ptrdiff_t)xi * p->in_c : outside;
            }
            entry = add_run(entry, &runs, at[0], at[1], at[2]);
        }
    }
    windows->product.end = entry;
}

/* Find the windows of up to `pixels` pixels from input pixel `first` on; returns of how many. */
static __attribute__((noinline)) int32_t find_windows(const arenite_conv_2d_s8_t *p, const shape_t *shape,
                                                      const int8_t *const *rows, int32_t have_rows,
                                                      int32_t first, int32_t pixels, windows_t *windows) {
    for (int32_t n = pixels; n > 0 && shape->is_by_rows; n--) {
        const int32_t length = (n - 1) * p->stride_w + p->kernel_w;
        const int inside = first >= 0 && first + length <= p->in_w;
        if (have_rows && inside) {
            in_place(p, rows, first, &shape->row, windows);
            return n;
        }
        if ((inside ? 1 : p->kernel_h) * length * p->in_c <= room(p->kernel_h, shape->row.entry_words)) {
            by_rows(p, rows, first, length, inside, &shape->row, windows);
            return n;
        }
    }
    if (shape->window_bytes > ARENITE_MVE_COPY) {
        by_taps(p, rows, first, windows);
        return pixels;
    }
    const int32_t fit = room(1, 5) / shape->window_bytes;
    pixels = fit < pixels ? fit : pixels;
    copied(p, rows, have_rows, first, pixels, windows);
    return pixels;
}

static void set_shape(const arenite_conv_2d_s8_t *p, shape_t *shape) {
    const int32_t span = p->kernel_w * p->in_c;
    shape->window_bytes = p->kernel_h * span;
    const int is_long = p->kernel_h == 1 || span >= LONG_RUN || shape->window_bytes > ARENITE_MVE_COPY;
    shape->is_by_rows = is_long && (p->dilation_w == 1 || p->kernel_w == 1);
    shape->row = runs_of(span);
}

void arenite_conv_2d_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t have_rows = exist(rows, p->kernel_h);
    shape_t shape;
    windows_t windows;
    (void)step;
    (void)scratch;
    set_shape(p, &shape);
    for (int32_t x = 0, pixels; x < p->out_w; x += pixels) {
        const int32_t left = p->out_w - x; /* four are two and two, not three and one */
        pixels = left == 4 ? 2 : left < TILE ? left : TILE;
        const int32_t first = x * p->stride_w - p->pad_left;
        pixels = find_windows(p, &shape, rows, have_rows, first, pixels, &windows);
        run_tile(p, &windows, pixels, &shape, out);
        out += pixels * p->out_c;
    }
}

#endif
