/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_camera.h"

#include <stddef.h>

#define HALF ((int32_t)1 << (ARENITE_WEIGHT_BITS - 1))

static uint8_t rounded(int32_t sum) {
    const int32_t value = sum < 0 ? 0 : sum >> ARENITE_WEIGHT_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

/* memory: a line of the frame, a row of the input before its table, the ring. */
static uint8_t *line_of(const arenite_picture_t *picture) { return picture->memory; }

static uint8_t *fitted_of(const arenite_picture_t *picture) {
    const arenite_camera_t *camera = picture->camera;
    return picture->memory + (uint32_t)camera->column_count * camera->pixels.channels;
}

static uint8_t *ring_of(const arenite_picture_t *picture) {
    const arenite_camera_t *camera = picture->camera;
    return fitted_of(picture) + (uint32_t)camera->out_width * camera->channels;
}

static uint32_t ring_row_bytes(const arenite_camera_t *camera) {
    return (uint32_t)(camera->rows_first ? camera->column_count : camera->out_width) * camera->channels;
}

static void resize_columns(const arenite_camera_t *camera, const uint8_t *line, uint8_t *out) {
    const uint32_t channels = camera->channels;
    const int32_t *weights = camera->column_weights;
    for (uint32_t x = 0; x < camera->out_width; x++) {
        const arenite_taps_t taps = camera->columns[x];
        for (uint32_t c = 0; c < channels; c++) {
            const uint8_t *in = line + taps.first * channels + c;
            int32_t sum = HALF;
            for (uint32_t k = 0; k < taps.count; k++) {
                sum += in[k * channels] * weights[k];
            }
            *out++ = rounded(sum);
        }
        weights += taps.count;
    }
}

static void resize_rows(const arenite_picture_t *picture, uint8_t *out) {
    const arenite_camera_t *camera = picture->camera;
    const arenite_taps_t taps = camera->rows[picture->given];
    const uint32_t row_bytes = ring_row_bytes(camera), ring_bytes = row_bytes * camera->ring_rows;
    const uint32_t first = taps.first % camera->ring_rows * row_bytes;
    const uint8_t *ring = ring_of(picture);
    for (uint32_t i = 0; i < row_bytes; i++) {
        uint32_t at = first;
        int32_t sum = HALF;
        for (uint32_t k = 0; k < taps.count; k++) {
            sum += ring[at + i] * picture->row_weights[k];
            at += row_bytes;
            at = at == ring_bytes ? 0 : at;
        }
        out[i] = rounded(sum);
    }
}

/* In place; Pillow's own weights of the brightness, which are those of BT.601. */
static void to_grey(uint8_t *line, uint32_t count) {
    for (uint32_t x = 0; x < count; x++) {
        const uint8_t *rgb = line + 3 * x;
        line[x] = (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
    }
}

/* Order of the channels, normalisation and quantisation. */
static void write_row(const arenite_camera_t *camera, const uint8_t *fitted, uint8_t *out) {
    for (uint32_t c = 0; c < camera->out_channels; c++) {
        const uint8_t *in = fitted + camera->source[c], *table = camera->table + c * camera->table_step;
        uint8_t *to = out + c * camera->channel_step;
        for (uint32_t x = 0; x < camera->out_width; x++) {
            *to = table[*in];
            to += camera->pixel_step;
            in += camera->channels;
        }
    }
}

static void keep_row(const arenite_picture_t *picture, const uint8_t *row, const uint8_t *chroma) {
    const arenite_camera_t *camera = picture->camera;
    const uint32_t row_bytes = ring_row_bytes(camera);
    uint8_t *line = line_of(picture);
    uint8_t *slot = ring_of(picture) + picture->taken % camera->ring_rows * row_bytes;
    camera->pixels.unpack(&camera->pixels, row, chroma, camera->left, camera->column_count, line);
    if (camera->channels < camera->pixels.channels) {
        to_grey(line, camera->column_count);
    }
    if (camera->rows_first) {
        for (uint32_t i = 0; i < row_bytes; i++) {
            slot[i] = line[i];
        }
    } else {
        resize_columns(camera, line, slot);
    }
}

static bool is_ready(const arenite_picture_t *picture) {
    const arenite_camera_t *camera = picture->camera;
    if (picture->given == camera->out_height) {
        return false;
    }
    const arenite_taps_t taps = camera->rows[picture->given];
    return picture->taken >= (uint32_t)taps.first + taps.count;
}

void arenite_picture_begin(arenite_picture_t *picture, const arenite_camera_t *camera, uint8_t *memory) {
    picture->camera = camera;
    picture->memory = memory;
    picture->row_weights = camera->row_weights;
    picture->taken = 0;
    picture->given = 0;
}

bool arenite_picture_take(arenite_picture_t *picture, const uint8_t *row, const uint8_t *chroma) {
    const arenite_camera_t *camera = picture->camera;
    if (picture->taken == camera->height || is_ready(picture)) {
        return false;
    }
    /* Rows above and below what the input shows are passed over. */
    if (picture->given < camera->out_height && picture->taken >= camera->rows[picture->given].first) {
        keep_row(picture, row, camera->pixels.planes == 2 ? chroma : row);
    }
    picture->taken++;
    return true;
}

bool arenite_picture_give(arenite_picture_t *picture, void *row) {
    const arenite_camera_t *camera = picture->camera;
    uint8_t *fitted = fitted_of(picture);
    if (!is_ready(picture)) {
        return false;
    }
    if (camera->rows_first) {
        resize_rows(picture, line_of(picture));
        resize_columns(camera, line_of(picture), fitted);
    } else {
        resize_rows(picture, fitted);
    }
    write_row(camera, fitted, row);
    picture->row_weights += camera->rows[picture->given].count;
    picture->given++;
    return true;
}

void arenite_picture_frame(const arenite_camera_t *camera, uint8_t *memory, const uint8_t *frame,
                           uint32_t stride_bytes, void *input) {
    arenite_picture_t picture;
    arenite_picture_begin(&picture, camera, memory);
    uint8_t *out = input;
    for (uint32_t y = 0; y < camera->height; y++) {
        const uint8_t *chroma =
            camera->pixels.planes == 2 ? frame + (camera->height + y / 2) * stride_bytes : NULL;
        arenite_picture_take(&picture, frame + y * stride_bytes, chroma);
        while (arenite_picture_give(&picture, out)) {
            out += camera->row_step;
        }
    }
}
