/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of two inputs share: loops over a row whose sides may be broadcast over pixels and channels. */
#ifndef ARENITE_BINARY_H
#define ARENITE_BINARY_H

#include <stddef.h>
#include <stdint.h>

/* The first members of every such kernel's struct. A step of 0 broadcasts. Where nothing is broadcast the row is one
 * pixel of width * channels channels. */
#define ARENITE_BINARY_STEPS                                                                                 \
    int32_t width;    /* output pixels a row */                                                              \
    int32_t channels; /* output channels a pixel */                                                          \
    int32_t a_pixel_step;                                                                                    \
    int32_t a_channel_step;                                                                                  \
    int32_t b_pixel_step;                                                                                    \
    int32_t b_channel_step

/* Make a row: out[i] = byte(p, a, b) for the bytes a and b of both sides, as int32_t. */
#define ARENITE_BINARY_ROW(p, rows, out, byte) ARENITE_BINARY_ROW_OF(int8_t, p, rows, out, byte)

/* The same of another element type; `out` points to elements of what the function returns. */
#define ARENITE_BINARY_ROW_OF(type, p, rows, out, byte)                                                      \
    for (int32_t x = 0; x < (p)->width; x++) {                                                               \
        const type *a = (const type *)(const void *)(rows)[0] + (ptrdiff_t)x * (p)->a_pixel_step;            \
        const type *b = (const type *)(const void *)(rows)[1] + (ptrdiff_t)x * (p)->b_pixel_step;            \
        for (int32_t c = 0; c < (p)->channels; c++) {                                                        \
            *(out)++ = byte((p), *a, *b);                                                                    \
            a += (p)->a_channel_step;                                                                        \
            b += (p)->b_channel_step;                                                                        \
        }                                                                                                    \
    }

#endif
