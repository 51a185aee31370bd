/* SPDX-License-Identifier: Apache-2.0 */
/* Pillow's 8-bit resize of a picture in memory, and the input's bytes of what it gives, for computers with AVX2 or NEON.
 *
 *   pixels   four bytes each, as pictures lie in Pillow's memory; the fourth is resized like the others
 *   weights  int32 in steps of 1 / 2^22; sums of 8-bit values times them are int32, as in Pillow, and must fit
 *   rounding one half is added, then shifted, then clipped to 0 .. 255, after each of the two passes
 *   order    Pillow takes columns or rows first; for its bytes the caller must, too
 * Every pixel of the result has the same number of taps; those that it lacks have weights of 0. Nothing outside the taps
 * is read. No scratch. Authority: Pillow, byte for byte. */
#ifndef ARENITE_RESIZE_HOST_H
#define ARENITE_RESIZE_HOST_H

#include <stdint.h>

#define ARENITE_PIXEL 4 /* bytes */
#define ARENITE_TAPS 2  /* of columns their number is a multiple of this */

typedef struct {
    const uint32_t *first;  /* of each pixel of the result: its first tap */
    const int32_t *weights; /* [count][taps]; of columns each once for each byte of a pixel */
    uint32_t count;         /* pixels of the result */
    uint32_t taps;          /* of each */
} arenite_axis_t;

/* 1 where this processor has what the functions below need. */
int32_t arenite_resize_runs_here(void);

/* Makes `rows` rows of `axis->count` pixels without a gap. in: `stride_bytes` from row to row. */
void arenite_resize_columns(const arenite_axis_t *axis, const uint8_t *in, uint32_t stride_bytes,
                            uint32_t rows, uint8_t *out);

/* Makes `axis->count` rows of `row_bytes`, a multiple of ARENITE_PIXEL, without a gap. */
void arenite_resize_rows(const arenite_axis_t *axis, const uint8_t *in, uint32_t stride_bytes,
                         uint32_t row_bytes, uint8_t *out);

typedef struct {
    const uint8_t *table;  /* [3][256]: the input's byte for an 8-bit value of each channel */
    uint32_t source[3];    /* for each channel of the input the byte of the pixel */
    uint32_t pixel_step;   /* bytes of the input from neighbour to neighbour */
    uint32_t channel_step; /* and from channel to channel */
} arenite_bytes_t;

/* Order of the channels, normalisation and quantisation of `count` pixels: three channels of a byte. */
void arenite_write_bytes(const arenite_bytes_t *how, const uint8_t *pixels, uint32_t count, uint8_t *input);

#endif
