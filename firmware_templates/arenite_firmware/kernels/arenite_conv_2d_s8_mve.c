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

/* Windows of a tile's pixels as runs. Bytes that were copied lie behind `copies`, at the end of the words. */
typedef struct {
    arenite_mve_product_t product;
    int8_t *copies;
    int32_t turns;
    int32_t entry_words;
} windows_t;

#if ARENITE_MVE_WORDS < 5 * ARENITE_MVE_RUNS + 4 || 4 * (ARENITE_MVE_WORDS - 9) < ARENITE_MVE_COPY
#error "Neither all runs nor a copy beside one run would find room."
#endif

static inline void start_runs(windows_t *windows, int32_t bytes) {
    arenite_mve_product_t *const product = &windows->product;
    product->bytes = bytes;
    product->end = product->entries;
    windows->copies = (int8_t *)(product->entries + ARENITE_MVE_WORDS);
    windows->entry_words = 4;
    if (bytes % 48 == 0) {
        product->turn = ARENITE_MVE_BY_48;
        windows->turns = bytes / 48;
    } else if (bytes % 32 == 0) {
        product->turn = ARENITE_MVE_BY_32;
        windows->turns = bytes / 32;
    } else {
        product->turn = ARENITE_MVE_BY_16;
        windows->turns = bytes;
        windows->entry_words = 5;
    }
}

/* A run of each pixel. */
static inline void add_run(windows_t *windows, const int8_t *x, const int8_t *y, const int8_t *z) {
    uint32_t *const entry = windows->product.end;
    entry[0] = (uint32_t)(uintptr_t)x;
    entry[1] = (uint32_t)(uintptr_t)y;
    entry[2] = (uint32_t)(uintptr_t)z;
    entry[3] = (uint32_t)windows->turns;
    entry[4] = (uint32_t)(-windows->product.bytes & 15);
    windows->product.end = entry + windows->entry_words;
}

static inline void add_runs(windows_t *windows, const int8_t *x, int32_t distance) {
    add_run(windows, x, x + distance, x + 2 * distance);
}

/* How many bytes can be copied beside `runs` entries and the last one. */
static inline int32_t room(int32_t runs) { return 4 * (ARENITE_MVE_WORDS - 4 - 5 * runs); }

/* `bytes` of that room. */
static inline int8_t *take(windows_t *windows, int32_t bytes) {
    windows->copies -= bytes;
    return windows->copies;
}

/* All channels of `pixels` pixels. The weights of a short window end with zeros up to a whole step, over which the last
 * run is not moved back. */
static inline void run_tile(const arenite_conv_2d_s8_t *p, const arenite_mve_output_t *o, windows_t *windows,
                            int32_t pixels, int32_t window_bytes, int8_t *out) {
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
    end[3] = 0;
    arenite_mve_tile(product, o, fits && product->bytes == window_bytes, pixels, out);
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
    start_runs(windows, bytes);
    int8_t *to = take(windows, pixels * bytes);
    add_runs(windows, to, bytes);
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

/* Windows that share what they have in common, a run for each of their rows: read where they lie, but what reaches
 * outside is copied. `length` pixels of a row serve all. */
static inline void by_rows(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                           int32_t length, int inside, windows_t *windows) {
    const int32_t distance = p->stride_w * p->in_c, bytes = length * p->in_c;
    const int8_t *outside = NULL;
    start_runs(windows, p->kernel_w * p->in_c);
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *from = rows[ky] + (ptrdiff_t)first * p->in_c;
        if (rows[ky] == NULL) {
            if (outside == NULL) {
                int8_t *const to = take(windows, bytes);
                arenite_mve_fill(to, p->in_zero_point, bytes);
                outside = to;
            }
            from = outside;
        } else if (!inside) {
            int8_t *const to = take(windows, bytes);
            copy_taps(p, rows[ky], first, length, to);
            from = to;
        }
        add_runs(windows, from, distance);
    }
}

/* Windows too large to be copied: a run for each tap. */
static __attribute__((noinline)) void by_taps(const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                                              int32_t first, windows_t *windows) {
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int8_t *const outside = p->weights + (ptrdiff_t)((p->out_c + 3) & ~3) * taps * p->in_c;
    start_runs(windows, p->in_c);
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *const row = rows[ky];
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int8_t *at[TILE];
            for (int32_t i = 0, xi = x; i < TILE; i++, xi += p->stride_w) {
                at[i] = row != NULL && xi >= 0 && xi < p->in_w ? row + (ptrdiff_t)xi * p->in_c : outside;
            }
            add_run(windows, at[0], at[1], at[2]);
        }
    }
}

/* Find the windows of up to `pixels` pixels from input pixel `first` on; returns of how many. */
static int32_t find_windows(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t have_rows,
                            int32_t first, int32_t pixels, windows_t *windows) {
    const int32_t kernel_h = p->kernel_h, span = p->kernel_w * p->in_c, window_bytes = kernel_h * span;
    const int is_one_run = p->dilation_w == 1 || p->kernel_w == 1,
              can_copy = window_bytes <= ARENITE_MVE_COPY;
    const int is_long = kernel_h == 1 || span >= LONG_RUN || !can_copy;
    if (have_rows && is_long && is_inside(p, first, pixels)) {
        by_rows(p, rows, first, 0, 1, windows);
        return pixels;
    }
    if (is_one_run && is_long) {
        const int inside = is_inside(p, first, pixels);
        const int32_t length = (pixels - 1) * p->stride_w + p->kernel_w;
        if ((inside ? 1 : kernel_h) * length * p->in_c <= room(kernel_h)) {
            by_rows(p, rows, first, length, inside, windows);
            return pixels;
        }
    }
    if (!can_copy) {
        by_taps(p, rows, first, windows);
        return pixels;
    }
    const int32_t fit = room(1) / window_bytes;
    pixels = fit < pixels ? fit : pixels;
    copied(p, rows, have_rows, first, pixels, windows);
    return pixels;
}

static void set_output(const arenite_conv_2d_s8_t *p, arenite_mve_output_t *o) {
    o->bias = p->bias;
    o->multiplier = p->multiplier;
    o->shift = p->shift;
    o->zero_point = p->out_zero_point;
    o->out_c = p->out_c;
    vst1q_s8(o->limits, vdupq_n_s8((int8_t)p->act_min));
    vst1q_s8(o->limits + BLOCK, vdupq_n_s8((int8_t)p->act_max));
    o->act_min = p->act_min;
    o->act_max = p->act_max;
    o->mode = (arenite_mve_mode_t)p->per_channel;
}

void arenite_conv_2d_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    const int32_t have_rows = exist(rows, p->kernel_h);
    const int32_t window_bytes = p->kernel_h * p->kernel_w * p->in_c;
    arenite_mve_output_t output;
    windows_t windows;
    (void)step;
    (void)scratch;
    set_output(p, &output);
    for (int32_t x = 0, pixels; x < p->out_w; x += pixels) {
        const int32_t left = p->out_w - x; /* four are two and two, not three and one */
        pixels = left == 4 ? 2 : left < TILE ? left : TILE;
        const int32_t found =
            find_windows(p, rows, have_rows, x * p->stride_w - p->pad_left, pixels, &windows);
        pixels = found < pixels ? found : pixels;
        run_tile(p, &output, &windows, pixels, window_bytes, out);
        out += pixels * p->out_c;
    }
}

#endif
