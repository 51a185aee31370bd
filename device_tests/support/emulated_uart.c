/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the CMSDK serial port for Unicorn, over buffers: a byte costs some 100 ns, where a callback into Python
 * costs microseconds. When the firmware keeps asking for a byte that is not there, the emulation stops. */
#include <stdint.h>

#define PATIENCE 8u /* polls in vain */

enum { DATA = 0x00, STATE = 0x04 };
enum { RX_FULL = 1u << 1 };

typedef int (*stop_t)(void *engine);

typedef struct {
    const uint8_t *to_board;
    uint64_t to_board_bytes;
    uint64_t taken;
    uint8_t *from_board;
    uint64_t from_board_limit;
    uint64_t sent; /* also those beyond the limit, which are lost */
    uint64_t idle_polls;
    stop_t stop; /* uc_emu_stop */
} line_t;

uint64_t emulated_uart_read(void *engine, uint64_t offset, unsigned size, void *user) {
    line_t *line = (line_t *)user;
    (void)size;
    if (offset == DATA) {
        return line->taken < line->to_board_bytes ? line->to_board[line->taken++] : 0u;
    }
    if (offset != STATE) {
        return 0;
    }
    if (line->taken < line->to_board_bytes) {
        line->idle_polls = 0;
        return RX_FULL;
    }
    line->idle_polls++;
    if (line->idle_polls >= PATIENCE) {
        line->stop(engine);
    }
    return 0;
}

void emulated_uart_write(void *engine, uint64_t offset, unsigned size, uint64_t value, void *user) {
    line_t *line = (line_t *)user;
    (void)engine;
    (void)size;
    if (offset == DATA) {
        if (line->sent < line->from_board_limit) {
            line->from_board[line->sent] = (uint8_t)value;
        }
        line->sent++;
        line->idle_polls = 0;
    }
}
