/* SPDX-License-Identifier: Apache-2.0 */
/* The two row functions over arenite_mac_any_t, for one type of activations. A kernel's C file defines ELEMENT (int8_t or
 * int16_t) and includes this. */
#include <stddef.h>

#include "arenite_mac_any.h"

/* Sum of (x - in_zero_point) * (w - weight_zero_point) over the channels of a group. */
static int64_t dot(const arenite_mac_any_t *p, const ELEMENT *x, const int8_t *w) {
    int64_t sum = 0;
    for (int32_t i = 0; i < p->group_in; i++) {
        sum += ((int32_t)x[i] - p->in_zero_point) * ((int32_t)w[i] - p->weight_zero_point);
    }
    return sum;
}

/* The taps of one input row that lie inside it. */
static inline int64_t row_sum(const arenite_mac_any_t *p, const ELEMENT *row, const int8_t *w, int32_t x,
                              int32_t transposed) {
    int64_t sum = 0;
    for (int32_t kx = 0; kx < p->kernel_w; kx++, w += p->group_in) {
        int32_t from = x * p->stride_w - p->pad_left + kx * p->dilation_w;
        if (transposed) {
            const int32_t at = x + p->pad_left - kx;
            from = (at >= 0 && at % p->stride_w == 0) ? at / p->stride_w : -1;
        }
        if (from >= 0 && from < p->in_w) {
            sum += dot(p, row + (ptrdiff_t)from * p->in_c, w);
        }
    }
    return sum;
}

/* rows[k] is the input row under row ky0 + k * ky_step of the window; k runs to `count`. */
static inline void any_row(const arenite_mac_any_t *p, const int8_t *const *rows, int32_t count, int32_t ky0,
                           int32_t ky_step, int32_t transposed, ELEMENT *out) {
    const ptrdiff_t span = (ptrdiff_t)p->kernel_w * p->group_in;
    for (int32_t x = 0; x < p->out_w; x++) {
        for (int32_t o = 0; o < p->out_c; o++) {
            const int8_t *w = p->weights + o * p->kernel_h * span;
            const ptrdiff_t first = (ptrdiff_t)(o / p->group_out) * p->group_in;
            int64_t sum = p->bias[o];
            for (int32_t k = 0; k < count; k++) {
                const int32_t ky = ky0 + k * ky_step;
                if (rows[k] != NULL && ky >= 0 && ky < p->kernel_h) {
                    const ELEMENT *row = (const ELEMENT *)(const void *)rows[k] + first;
                    sum += row_sum(p, row, w + ky * span, x, transposed);
                }
            }
            *out++ = (ELEMENT)arenite_mac_output(p, sum, o);
        }
    }
}

static inline void conv_row(const arenite_mac_any_t *p, const int8_t *const *rows, int8_t *out) {
    any_row(p, rows, p->kernel_h, 0, 1, 0, (ELEMENT *)(void *)out);
}

/* Output row y takes from input row i by row y + pad_top - i * stride_h of the window; rows[0] is the first such i. */
static inline void transposed_row(const arenite_mac_any_t *p, const int8_t *const *rows, int8_t *out,
                                  int32_t y) {
    const int32_t count = (p->kernel_h + p->stride_h - 1) / p->stride_h;
    const int32_t last = (y + p->pad_top) / p->stride_h; /* the last i; both are >= 0 */
    const int32_t ky = y + p->pad_top - (last - count + 1) * p->stride_h;
    any_row(p, rows, count, ky, -p->stride_h, 1, (ELEMENT *)(void *)out);
}
