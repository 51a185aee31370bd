/* SPDX-License-Identifier: Apache-2.0 */
/* A camera's frame becomes a model's input as the model's contract says, row by row:
 *
 *     row of the frame -> R, G, B or grey -> columns crop and resize -> ring of rows -> rows crop and resize
 *         -> order of the channels, normalise and quantise by table -> row of the input
 *
 * Everything that depends on model and camera is a generated constant. Only integers are used.
 * Authority: Pillow's 8-bit resize, byte for byte, whatever its filter: the weights were read out of it. */
#ifndef ARENITE_CAMERA_H
#define ARENITE_CAMERA_H

#include <stdbool.h>

#include "arenite_pixels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One pixel of an axis is made of `count` neighbours from `first` on, each times its weight. */
typedef struct {
    uint16_t first;
    uint16_t count;
} arenite_taps_t;

/* 1.0 as a weight; a sum of `count` weights is within -2.0 .. 2.0, so that 8-bit values times them fit int32. */
#define ARENITE_WEIGHT_BITS 22

typedef struct {
    arenite_pixels_t pixels;
    const arenite_taps_t *columns; /* of each column of the input; `first` counts from `left` */
    const int32_t *column_weights; /* one column after the other */
    const arenite_taps_t *rows;    /* of each row of the input; `first` never decreases */
    const int32_t *row_weights;
    const uint8_t *table; /* 256 bytes of each channel of the input: what an 8-bit value becomes there */
    uint32_t pixel_step;  /* bytes of the input from neighbour to neighbour */
    uint32_t channel_step;
    uint32_t row_step;
    uint16_t table_step; /* from a channel's table to the next one's: 256, or 0 where all are the same */
    uint16_t width;      /* of the frame */
    uint16_t height;
    uint16_t left; /* columns of the frame that are read */
    uint16_t column_count;
    uint16_t out_width; /* of the input */
    uint16_t out_height;
    uint16_t ring_rows;   /* rows that exist at once */
    uint8_t channels;     /* that are resized: 1 where frame or input is grey, else 3 */
    uint8_t out_channels; /* of the input */
    uint8_t source[3];    /* for each channel of the input the resized one */
    bool rows_first;      /* rows are resized before columns: Pillow takes the order with less to compute */
} arenite_camera_t;

/* A frame under way. */
typedef struct {
    const arenite_camera_t *camera;
    uint8_t *memory;            /* a line of the frame; a row of the input before its table; the ring */
    const int32_t *row_weights; /* of the next row of the input */
    uint16_t taken;             /* rows of the frame */
    uint16_t given;             /* rows of the input */
} arenite_picture_t;

/* Starts a frame. `memory` is the camera's number of bytes, of any alignment, the picture's own until the last row. */
void arenite_picture_begin(arenite_picture_t *picture, const arenite_camera_t *camera, uint8_t *memory);

/* Takes the next row of the frame, top first.
 *   row     its bytes; they are not needed afterwards
 *   chroma  NV12 and NV21: the row of the chroma plane that belongs to it, number `taken / 2`; else ignored
 * False, and nothing is taken, when a row of the input is ready and must be given first, or the frame is complete. */
bool arenite_picture_take(arenite_picture_t *picture, const uint8_t *row, const uint8_t *chroma);

/* Writes the next row of the input if all rows of the frame that it needs are taken; of a planar input the same row of
 * each plane. False, and nothing is written, if not, or if all are given. */
bool arenite_picture_give(arenite_picture_t *picture, void *row);

/* A whole frame in memory, `stride_bytes` from row to row; NV12 and NV21 hold the chroma plane behind the other. */
void arenite_picture_frame(const arenite_camera_t *camera, uint8_t *memory, const uint8_t *frame,
                           uint32_t stride_bytes, void *input);

#ifdef __cplusplus
}
#endif

#endif
