/* SPDX-License-Identifier: Apache-2.0 */
/* The board that is this computer: the serial port is a pair of buffers, so that a program can talk to the
 * firmware's own link code in its process. */
#include "uart_host.h"

#include "app.h"
#include "board.h"

static uint8_t *reply;
static size_t reply_capacity;
static size_t reply_bytes;

void board_init(void) {}

int board_uart_read(void) { return -1; }

void board_idle(void) {}

void board_uart_write(uint8_t byte) {
    if (reply_bytes < reply_capacity) {
        reply[reply_bytes] = byte;
    }
    reply_bytes++;
}

uint64_t board_counter(void) { return 0; }

void board_stack_paint(void) {}

uint32_t board_stack_peak_bytes(void) { return 0; }

void board_alive(uint16_t layer, uint16_t step) {
    (void)layer;
    (void)step;
}

void board_marker(bool on) { (void)on; }

board_reset_cause_t board_reset_cause(void) { return BOARD_RESET_UNKNOWN; }

const board_fault_t *board_fault(void) {
    static const board_fault_t none;
    return &none;
}

void board_reset(void) {}

uint32_t board_mcu_id(uint8_t *to) {
    (void)to;
    return 0;
}

static void listen(uint8_t *out, size_t capacity) {
    reply = out;
    reply_capacity = capacity;
    reply_bytes = 0;
}

size_t arenite_host_start(uint8_t *out, size_t capacity) {
    listen(out, capacity);
    app_start();
    return reply_bytes;
}

size_t arenite_host_exchange(const uint8_t *in, size_t bytes, uint8_t *out, size_t capacity) {
    listen(out, capacity);
    for (size_t i = 0; i < bytes; i++) {
        app_receive(in[i]);
    }
    return reply_bytes;
}
