/* SPDX-License-Identifier: Apache-2.0 */
/* A TIMER of Nordic's nRF51 and nRF52 in its 32-bit mode, at 16 MHz (nRF51 Series Reference Manual, chapter 18). On nRF51
 * only TIMER0 has 32 bits. */
#include "board.h"
#include "counter_wide.h"
#include "drivers.h"

#define TIMER ((volatile uint32_t *)BOARD_COUNTER_BASE)

enum {
    START = 0x000 / 4,
    CLEAR = 0x00C / 4,
    CAPTURE_0 = 0x040 / 4,
    MODE = 0x504 / 4,
    BIT_MODE = 0x508 / 4,
    PRESCALER = 0x510 / 4,
    COMPARE_0 = 0x540 / 4
};
enum { MODE_TIMER = 0, BIT_MODE_32 = 3, PRESCALER_NONE = 0 };

void counter_init(void) {
    TIMER[MODE] = MODE_TIMER;
    TIMER[BIT_MODE] = BIT_MODE_32;
    TIMER[PRESCALER] = PRESCALER_NONE;
    TIMER[CLEAR] = 1;
    TIMER[START] = 1;
}

uint64_t board_counter(void) {
    TIMER[CAPTURE_0] = 1;
    return counter_widened(TIMER[COMPARE_0]);
}
