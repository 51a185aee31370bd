/* SPDX-License-Identifier: Apache-2.0 */
/* The firmware application on this computer, fed through standard input, with the gaps of its arena watched.
 *
 * Reads records of a 32-bit length and that many bytes, gives the bytes to the application one by one and
 * answers each record with a record of what the application sent. Ends with a message on standard error when
 * a gap has changed. */
#include <stdio.h>
#include <stdlib.h>

#include "app.c"

#define PAINT 0x6Du

static uint8_t sent[1 << 20];
static size_t sent_bytes;

void board_init(void) {}

int board_uart_read(void) { return -1; }

void board_idle(void) {}

void board_uart_write(uint8_t byte) {
    if (sent_bytes < sizeof sent) {
        sent[sent_bytes++] = byte;
    }
}

uint64_t board_counter(void) {
    static uint64_t now = 0xFFFFFFFFu;
    return now += 1000;
}

void board_stack_paint(void) {}

uint32_t board_stack_peak_bytes(void) { return 123; }

void board_alive(uint16_t layer, uint16_t step) {
    (void)layer;
    (void)step;
}

void board_marker(bool on) { (void)on; }

board_reset_cause_t board_reset_cause(void) { return BOARD_RESET_WATCHDOG; }

const board_fault_t *board_fault(void) {
    static const board_fault_t fault = {2, 0x1234, 0x5678, 0x9A, 0x20000000, 1, 7};
    return &fault;
}

#ifdef ARENITE_UPDATE
void harness_restart(void); /* in update_board.c */
#endif

void board_reset(void) {
#ifdef ARENITE_UPDATE
    harness_restart();
#endif
    app_start();
}

uint32_t board_mcu_id(uint8_t *to) {
    to[0] = 0x41;
    return 1;
}

static int in_tensor(uint32_t at, const arenite_io_t *ios, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (at >= ios[i].place && at - ios[i].place < ios[i].bytes) {
            return 1;
        }
    }
    return 0;
}

static int is_gap(uint32_t at) {
    const uint32_t counters = arenite_model.counters_place;
    if (at >= counters && at - counters < sizeof(uint16_t) * arenite_model.layer_count) {
        return 0;
    }
    return !in_tensor(at, arenite_model.inputs, arenite_model.input_count) &&
           !in_tensor(at, arenite_model.outputs, arenite_model.output_count);
}

static void check_gaps(void) {
    for (uint32_t i = 0; i < sizeof buffer_0; i++) {
        if (is_gap(i) && buffer_0[i] != PAINT) {
            fprintf(stderr, "arena byte %u outside of all tensors and counters was overwritten\n",
                    (unsigned)i);
            exit(3);
        }
    }
}

static void reply(void) {
    const uint32_t count = (uint32_t)sent_bytes;
    fwrite(&count, sizeof count, 1, stdout);
    fwrite(sent, 1, sent_bytes, stdout);
    fflush(stdout);
    sent_bytes = 0;
}

int main(void) {
    uint32_t bytes;
    memset(buffer_0, PAINT, sizeof buffer_0);
    app_start();
    reply();
    while (fread(&bytes, sizeof bytes, 1, stdin) == 1) {
        for (uint32_t i = 0; i < bytes; i++) {
            const int byte = getchar();
            if (byte == EOF) {
                return 2;
            }
            app_receive((uint8_t)byte);
        }
        check_gaps();
        reply();
    }
    return 0;
}
