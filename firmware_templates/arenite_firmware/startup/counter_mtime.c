/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit tick counter: mtime of a RISC-V core-local interruptor (CLINT). */
#include "board.h"
#include "drivers.h"

#define MTIME ((volatile uint32_t *)BOARD_COUNTER_BASE)

void counter_init(void) {}

uint64_t board_counter(void) {
    for (;;) {
        const uint32_t high = MTIME[1];
        const uint32_t low = MTIME[0];
        if (MTIME[1] == high) {
            return (uint64_t)high << 32 | low;
        }
    }
}
