/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <stddef.h>
#include <string.h>

#include "app.h"
#include "arenite_models.h"
#include "board.h"
#include "bytes.h"
#include "crc32.h"
#include "link.h"

#define ROW_HEAD 10u /* layer, row, offset */
#define CHUNK (LINK_MAX_PAYLOAD - ROW_HEAD)

static trace_layer_t layers[ARENITE_MOST_LAYERS];
static trace_request_t request;
static uint64_t step_start;
static bool traced;

void trace_set(const trace_request_t *wanted) {
    request = *wanted;
    traced = false;
}

void trace_begin(void) {
    if (request.mode != 0) {
        memset(layers, 0, sizeof layers);
        for (uint32_t i = 0; i < ARENITE_MOST_LAYERS; i++) {
            layers[i].checksum = LINK_CRC32_START;
        }
        traced = true;
    }
}

const trace_layer_t *trace_layer(uint16_t layer) {
    return traced && layer < ARENITE_MOST_LAYERS ? &layers[layer] : NULL;
}

static void send_piece(uint16_t layer, uint32_t row, uint32_t offset, const uint8_t *data, uint32_t bytes) {
    uint8_t head[ROW_HEAD];
    put_u16(head, layer);
    put_u32(head + 2, row);
    put_u32(head + 6, offset);
    link_send_apart(APP_ROW, 0, head, ROW_HEAD, data, bytes);
}

static void send_row(uint16_t layer, uint32_t row, const uint8_t *data, uint32_t bytes) {
    if ((request.mode & TRACE_ROW_CHECKSUMS) != 0) {
        uint8_t checksum[4];
        put_u32(checksum, link_crc32(data, bytes));
        send_piece(layer, row, 0, checksum, sizeof checksum);
    }
    if ((request.mode & TRACE_ROW_BYTES) != 0) {
        for (uint32_t at = 0; at < bytes; at += CHUNK) {
            send_piece(layer, row, at, data + at, bytes - at < CHUNK ? bytes - at : CHUNK);
        }
    }
}

/* The counter is read before every step, traced or not: a short one must not wrap unseen. */
void arenite_on_step(const arenite_model_t *model, uint16_t layer, uint16_t step) {
    (void)model;
    board_alive(layer, step);
    step_start = board_counter();
}

/* Apart: a step that is not traced then saves no registers for it. */
static __attribute__((noinline)) void trace_row(const arenite_model_t *model, uint16_t layer,
                                                const uint8_t *row) {
    trace_layer_t *record = &layers[layer];
    const uint32_t bytes = model->layers[layer].out->row_bytes;
    if (model->layers[layer].kernel != NULL) { /* a fed row is the caller's time */
        record->counter += board_counter() - step_start;
    }
    if (row == NULL) {
        return;
    }
    if ((request.mode & TRACE_CHECKSUMS) != 0) {
        record->checksum = link_crc32_more(record->checksum, row, bytes);
    }
    if (layer == request.layer && record->rows - request.first_row < request.rows) {
        send_row(layer, record->rows, row, bytes);
    }
    record->rows++;
}

void arenite_on_row(const arenite_model_t *model, uint16_t layer, uint16_t step, const uint8_t *row) {
    (void)step;
    if (request.mode != 0 && layer < ARENITE_MOST_LAYERS) {
        trace_row(model, layer, row);
    }
}
