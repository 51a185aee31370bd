/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels of a row of a camera's frame as 8-bit R, G, B, or as grey. */
#ifndef ARENITE_PIXELS_H
#define ARENITE_PIXELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arenite_pixels arenite_pixels_t;

/* Writes `count` pixels from column `first` on, `channels` bytes each.
 *   row     the row's bytes
 *   chroma  the row of the second plane, where there is one; else the same as `row` */
typedef void (*arenite_unpack_t)(const arenite_pixels_t *pixels, const uint8_t *row, const uint8_t *chroma,
                                 uint32_t first, uint32_t count, uint8_t *out);

struct arenite_pixels {
    arenite_unpack_t unpack;
    const int32_t *matrix; /* Y'CbCr: three rows of three factors and a term, times 2^14; else NULL */
    uint8_t channels;      /* 3, or 1 of grey */
    uint8_t step;          /* bytes from pixel to pixel, of Y'CbCr from Y to Y */
    uint8_t pair_step;     /* Y'CbCr: bytes from one pair of pixels' chroma to the next; else 0 */
    uint8_t planes;        /* 2 where chroma lies behind the rows, else 1 */
    uint8_t at[3];         /* where R, G, B lie in a pixel; RGB565: [0] of the high byte;
                              Y'CbCr: of Y in the first pixel, of Cb and Cr in the pair */
};

/* RGB, BGR, RGBA, BGRA, GREY: a byte a channel. */
void arenite_pixels_bytes(const arenite_pixels_t *pixels, const uint8_t *row, const uint8_t *chroma,
                          uint32_t first, uint32_t count, uint8_t *out);

/* RGB565 in either byte order; the highest bits fill the lowest, so that full scale stays full scale. */
void arenite_pixels_565(const arenite_pixels_t *pixels, const uint8_t *row, const uint8_t *chroma,
                        uint32_t first, uint32_t count, uint8_t *out);

/* YUYV, UYVY, NV12, NV21: by the matrix, rounded and clipped; chroma is repeated, not interpolated. */
void arenite_pixels_ycc(const arenite_pixels_t *pixels, const uint8_t *row, const uint8_t *chroma,
                        uint32_t first, uint32_t count, uint8_t *out);

#ifdef __cplusplus
}
#endif

#endif
