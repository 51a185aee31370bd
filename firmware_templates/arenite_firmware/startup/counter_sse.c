/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit tick counter: the system counter of Arm's SSE subsystems (Corstone), through its control frame. */
#include "board.h"
#include "drivers.h"

#define COUNTER ((volatile uint32_t *)BOARD_COUNTER_BASE)

enum { CONTROL = 0x00 / 4, VALUE_LOW = 0x08 / 4, VALUE_HIGH = 0x0C / 4 };
enum { ENABLE = 1u << 0 };

void counter_init(void) { COUNTER[CONTROL] = ENABLE; }

uint64_t board_counter(void) {
    for (;;) {
        const uint32_t high = COUNTER[VALUE_HIGH];
        const uint32_t low = COUNTER[VALUE_LOW];
        if (COUNTER[VALUE_HIGH] == high) {
            return (uint64_t)high << 32 | low;
        }
    }
}
