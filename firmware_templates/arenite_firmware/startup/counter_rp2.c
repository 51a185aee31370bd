/* SPDX-License-Identifier: Apache-2.0 */
/* Microseconds in 64 bits: the timer of RP2040 and RP2350, read without its latch. */
#include "board.h"
#include "drivers.h"

#define TIMER ((volatile uint32_t *)BOARD_COUNTER_BASE)

enum { RAW_HIGH = 0x24 / 4, RAW_LOW = 0x28 / 4 };

void counter_init(void) {}

uint64_t board_counter(void) {
    for (;;) {
        const uint32_t high = TIMER[RAW_HIGH];
        const uint32_t low = TIMER[RAW_LOW];
        if (TIMER[RAW_HIGH] == high) {
            return (uint64_t)high << 32 | low;
        }
    }
}
