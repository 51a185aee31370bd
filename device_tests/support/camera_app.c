/* SPDX-License-Identifier: Apache-2.0 */
/* Firmware that sees: it takes a camera's frames over the serial line, row by row, and never holds one. Of NV12 and NV21
 * each row is followed by its row of chroma. It answers with each row of the model's input, then with the outputs. */
#include "app.h"

#include <stdbool.h>
#include <stddef.h>

#include "arenite_model.h"
#include "arenite_model_camera.h"
#include "board.h"

#define MOST_ROW_BYTES 1024

static uint8_t arena[ARENITE_ARENA_BYTES] __attribute__((aligned(16)));
static uint8_t *const memory[] = {arena};
static uint8_t rows[ARENITE_MODEL_CAMERA_BYTES];
static arenite_picture_t picture;
static arenite_feed_t feed;
static uint8_t row[2 * MOST_ROW_BYTES];
static uint32_t received;

static void send(const void *bytes, uint32_t count) {
    const uint8_t *from = bytes;
    for (uint32_t i = 0; i < count; i++) {
        board_uart_write(from[i]);
    }
}

void app_start(void) {
    arenite_begin(&feed, &arenite_model, memory);
    arenite_picture_begin(&picture, &arenite_model_camera, rows);
    received = 0;
}

bool app_may_sleep(void) { return true; }

void app_receive(uint8_t byte) {
    const arenite_pixels_t *pixels = &arenite_model_camera.pixels;
    const uint32_t row_bytes = ARENITE_MODEL_CAMERA_WIDTH * (uint32_t)pixels->step;
    row[received++] = byte;
    if (received < row_bytes * pixels->planes) {
        return;
    }
    received = 0;
    arenite_picture_take(&picture, row, row + row_bytes);
    while (arenite_picture_give(&picture, arenite_row(&feed))) {
        send(arenite_row(&feed), arenite_row_bytes(&feed));
        arenite_feed(&feed);
    }
    if (picture.taken == ARENITE_MODEL_CAMERA_HEIGHT) {
        send(arenite_output(&arenite_model, memory, 0), ARENITE_MODEL_OUTPUT_0_BYTES);
        app_start();
    }
}
