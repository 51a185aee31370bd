/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_s8_mve.h"

#if defined(__ARM_FEATURE_MVE)
#include <stddef.h>

#include "arenite_conv_2d_mve_tile.h"
#include "arenite_mve.h"

#define TILE ARENITE_MVE_TILE
#define BLOCK ARENITE_MVE_BLOCK
/* Windows whose rows are shorter than this are copied together: a run costs about 3 instructions an output. */
#define LONG_RUN 64

typedef arenite_mve_product_t product_t;

/* What holds for a whole row. */
typedef struct {
    arenite_mve_output_t store;
    arenite_mve_mode_t mode;
} output_t;

/* Windows of neighbouring pixels. Each is `count` runs of `bytes` bytes; those of the next pixel lie `distance`
 * bytes further. */
typedef struct {
    const int8_t *const *runs;
    int32_t count;
    int32_t bytes;
    int32_t distance;
    const int8_t *only_run;
    union {
        const int8_t *list[ARENITE_MVE_RUNS];
        int8_t copies[ARENITE_MVE_COPY]; /* of windows that do not lie in memory as they are needed */
    } space;
} windows_t;

static inline void store(const output_t *o, const int32_t *sums, int32_t at, int32_t count, int32_t pixels,
                         int8_t *out) {
    if (count < BLOCK) {
        for (int32_t i = 0; i < pixels; i++, sums += BLOCK, out += o->store.out_c) {
            arenite_mve_store_part(&o->store, sums, at, count, out);
        }
    } else if (o->mode == ARENITE_MVE_ANY) {
        arenite_mve_store_any(&o->store, sums, at, pixels, out);
    } else if (o->mode == ARENITE_MVE_POSITIVE) {
        arenite_mve_store_positive(&o->store, sums, at, pixels, out);
    } else {
        arenite_mve_store_signed(&o->store, sums, at, pixels, out);
    }
}

static inline void start_4(const int32_t *bias, int32_t pixels, int32_t *sums) {
    const int32x4_t four = vld1q_s32(bias);
    for (int32_t i = 0; i < pixels; i++) {
        vst1q_s32(sums + i * BLOCK, four);
    }
}

static inline void start_sums(const int32_t *bias, int32_t pixels, int32_t count, int32_t *sums) {
    start_4(bias, pixels, sums);
    if (count == BLOCK) {
        start_4(bias + 4, pixels, sums + 4);
        start_4(bias + 8, pixels, sums + 8);
        start_4(bias + 12, pixels, sums + 12);
        return;
    }
    for (int32_t c = 4; c < count; c += 4) {
        start_4(bias + c, pixels, sums + c);
    }
}

static inline void point(const windows_t *windows, int32_t run, product_t *product) {
    product->x[0] = windows->runs[run];
    product->x[1] = product->x[0] + windows->distance;
    product->x[2] = product->x[1] + windows->distance;
}

static inline void multiply(product_t *product, int32_t pixels, int32_t count, int32_t *sums,
                            arenite_mve_turn_t turn) {
    product->end = sums + (pixels == 1 ? (count + 3) & ~3 : (count + 1) & ~1);
    if (pixels == TILE) {
        arenite_mve_multiply_3(product, sums, turn);
    } else if (pixels == 2) {
        arenite_mve_multiply_2(product, sums, turn);
    } else {
        arenite_mve_multiply_1(product, sums, turn);
    }
}

static arenite_mve_turn_t set_turns(int32_t bytes, product_t *product) {
    const uint32_t count = (uint32_t)bytes;
    if (count % 48 == 0) {
        product->turns = (int32_t)(count / 48);
        return ARENITE_MVE_BY_48;
    }
    product->turns = (int32_t)(count % 32 == 0 ? count / 32 : count);
    return count % 32 == 0 ? ARENITE_MVE_BY_32 : ARENITE_MVE_BY_16;
}

/* All channels of `pixels` pixels. Where a window is one run, the weights follow one another over all blocks. */
static inline void run_tile(const arenite_conv_2d_s8_t *p, const output_t *o, const windows_t *windows,
                            const int32_t pixels, int8_t *out) {
    const int32_t runs = windows->count, bytes = windows->bytes, out_c = p->out_c;
    const int32_t *bias = p->bias;
    int32_t sums[TILE * BLOCK]; /* of each pixel a block */
    product_t product;
    int32_t c = 0;
    const arenite_mve_turn_t turn = set_turns(bytes, &product);
    product.step = runs * bytes;
    product.weights = p->weights;
    point(windows, 0, &product);
    if (runs == 1) {
        for (; c <= out_c - BLOCK; c += BLOCK, bias += BLOCK) {
            start_sums(bias, pixels, BLOCK, sums);
            multiply(&product, pixels, BLOCK, sums, turn);
            store(o, sums, c, BLOCK, pixels, out + c);
        }
    }
    for (; c < out_c; c += BLOCK, bias += BLOCK) {
        const int32_t left = out_c - c, count = left < BLOCK ? left : BLOCK;
        const int8_t *const weights = product.weights;
        start_sums(bias, pixels, count, sums);
        for (int32_t run = 0; run < runs; run++) {
            point(windows, run, &product);
            product.weights = weights + run * bytes;
            multiply(&product, pixels, count, sums, turn);
        }
        product.weights = weights + BLOCK * product.step;
        store(o, sums, c, count, pixels, out + c);
    }
}

static __attribute__((noinline)) void run_three(const arenite_conv_2d_s8_t *p, const output_t *o,
                                                const windows_t *windows, int8_t *out) {
    run_tile(p, o, windows, TILE, out);
}

static __attribute__((noinline)) void run_two(const arenite_conv_2d_s8_t *p, const output_t *o,
                                              const windows_t *windows, int8_t *out) {
    run_tile(p, o, windows, 2, out);
}

static __attribute__((noinline)) void run_one(const arenite_conv_2d_s8_t *p, const output_t *o,
                                              const windows_t *windows, int8_t *out) {
    run_tile(p, o, windows, 1, out);
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

static void in_place(const arenite_conv_2d_s8_t *p, const int8_t *const *rows, int32_t first,
                     windows_t *windows) {
    const int32_t kernel_h = p->kernel_h, offset = first * p->in_c;
    windows->count = kernel_h;
    windows->bytes = p->kernel_w * p->in_c;
    windows->distance = p->stride_w * p->in_c;
    if (kernel_h == 1) {
        windows->only_run = rows[0] + offset;
        windows->runs = &windows->only_run;
        return;
    }
    windows->runs = windows->space.list;
    for (int32_t ky = 0; ky < kernel_h; ky++) {
        windows->space.list[ky] = rows[ky] + offset;
    }
}

/* One row of a window that is not whole inside, or not one run. */
static __attribute__((noinline)) int8_t *copy_taps(const arenite_conv_2d_s8_t *p, const int8_t *row,
                                                   int32_t first, int8_t *to) {
    const int32_t in_c = p->in_c, in_w = p->in_w, kernel_w = p->kernel_w, zero_point = p->in_zero_point;
    const int32_t end = first + kernel_w;
    const int one_run = p->dilation_w == 1;
    if (row == NULL || (one_run && (end <= 0 || first >= in_w))) {
        return arenite_mve_fill(to, zero_point, kernel_w * in_c);
    }
    if (one_run) {
        const int32_t from = first < 0 ? 0 : first, until = end > in_w ? in_w : end;
        to = arenite_mve_fill(to, zero_point, (from - first) * in_c);
        to = arenite_mve_copy(to, row + (ptrdiff_t)from * in_c, (until - from) * in_c);
        return arenite_mve_fill(to, zero_point, (end - until) * in_c);
    }
    for (int32_t kx = 0, x = first; kx < kernel_w; kx++, x += p->dilation_w) {
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

static __attribute__((noinline)) void copied(const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                                             int32_t have_rows, int32_t first, int32_t pixels,
                                             windows_t *windows) {
    const int32_t kernel_h = p->kernel_h, span = p->kernel_w * p->in_c;
    int8_t *to = windows->space.copies;
    windows->only_run = to;
    windows->runs = &windows->only_run;
    windows->count = 1;
    windows->bytes = windows->distance = kernel_h * span;
    for (; pixels > 0; pixels--, first += p->stride_w) {
        const ptrdiff_t offset = is_inside(p, first, 1) ? (ptrdiff_t)first * p->in_c : -1;
        if (have_rows && offset >= 0) {
            to = copy_rows(rows, kernel_h, offset, span, to);
            continue;
        }
        for (int32_t ky = 0; ky < kernel_h; ky++) {
            const int8_t *const row = rows[ky];
            to = row != NULL && offset >= 0 ? arenite_mve_copy(to, row + offset, span)
                                            : copy_taps(p, row, first, to);
        }
    }
}

/* One pixel whose window is too large to be copied: a run a tap. */
static __attribute__((noinline)) void by_taps(const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                                              int32_t first, windows_t *windows) {
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int8_t *const outside = p->weights + (ptrdiff_t)((p->out_c + 3) & ~3) * taps * p->in_c;
    const int8_t **run = windows->space.list;
    windows->runs = run;
    windows->count = taps;
    windows->bytes = p->in_c;
    windows->distance = 0;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        int32_t x = first;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            const int inside = rows[ky] != NULL && x >= 0 && x < p->in_w;
            *run++ = inside ? rows[ky] + (ptrdiff_t)x * p->in_c : outside;
        }
    }
}

static void set_output(const arenite_conv_2d_s8_t *p, output_t *o) {
    o->store.multiplier = p->multiplier;
    o->store.shift = p->shift;
    o->store.zero_point = p->out_zero_point;
    o->store.out_c = p->out_c;
    vst1q_s8(o->store.limits, vdupq_n_s8((int8_t)p->act_min));
    vst1q_s8(o->store.limits + BLOCK, vdupq_n_s8((int8_t)p->act_max));
    o->store.act_min = p->act_min;
    o->store.act_max = p->act_max;
    o->mode = (arenite_mve_mode_t)p->per_channel;
}

void arenite_conv_2d_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                            int32_t *scratch) {
    const arenite_conv_2d_s8_t *p = (const arenite_conv_2d_s8_t *)params;
    output_t output;
    const int32_t span = p->kernel_w * p->in_c, window_bytes = p->kernel_h * span;
    const int have_rows = exist(rows, p->kernel_h) && p->kernel_h <= ARENITE_MVE_RUNS;
    const int is_long = p->kernel_h == 1 || span >= LONG_RUN;
    windows_t windows;
    (void)step;
    (void)scratch;
    set_output(p, &output);
    for (int32_t x = 0; x < p->out_w;) {
        const int32_t first = x * p->stride_w - p->pad_left;
        const int32_t left = p->out_w - x;
        int32_t pixels = left < TILE ? left : TILE;
        if (pixels * window_bytes > ARENITE_MVE_COPY && !(have_rows && is_inside(p, first, pixels))) {
            pixels = 1;
        }
        const int can_copy = pixels * window_bytes <= ARENITE_MVE_COPY;
        if (have_rows && is_inside(p, first, pixels) && (is_long || !can_copy)) {
            in_place(p, rows, first, &windows);
        } else if (can_copy) {
            copied(p, rows, have_rows, first, pixels, &windows);
        } else {
            by_taps(p, rows, first, &windows);
        }
        if (pixels == TILE) {
            run_three(p, &output, &windows, out);
        } else if (pixels == 2) {
            run_two(p, &output, &windows, out);
        } else {
            run_one(p, &output, &windows, out);
        }
        x += pixels;
        out += pixels * p->out_c;
    }
}

#endif
