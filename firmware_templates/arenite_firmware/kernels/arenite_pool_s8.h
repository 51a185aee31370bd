/* SPDX-License-Identifier: Apache-2.0 */
/* What the windowed poolings share, whatever their elements' type. */
#ifndef ARENITE_POOL_S8_H
#define ARENITE_POOL_S8_H

#include <stdint.h>

typedef struct {
    int32_t in_w;
    int32_t channels;
    int32_t out_w;
    int32_t kernel_h;
    int32_t kernel_w;
    int32_t stride_w;
    int32_t pad_left;
    int16_t act_min;
    int16_t act_max;
} arenite_pool_s8_t;

/* The pixels of the window of output pixel x that lie inside the row: from *begin up to but not including *end. */
static inline void arenite_pool_window(const arenite_pool_s8_t *p, int32_t x, int32_t *begin, int32_t *end) {
    int32_t first = x * p->stride_w - p->pad_left;
    int32_t last = first + p->kernel_w;
    *begin = first > 0 ? first : 0;
    *end = last < p->in_w ? last : p->in_w;
}

/* A row of outputs: `window(p, rows, begin, end, c)` makes the one of a window and a channel; `out` points to elements. */
#define ARENITE_POOL_ROW(p, rows, out, window)                                                               \
    for (int32_t x = 0; x < (p)->out_w; x++) {                                                               \
        int32_t begin, end;                                                                                  \
        arenite_pool_window((p), x, &begin, &end);                                                           \
        for (int32_t c = 0; c < (p)->channels; c++) {                                                        \
            *(out)++ = window((p), (rows), begin, end, c);                                                   \
        }                                                                                                    \
    }

#endif
