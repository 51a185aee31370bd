/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit tick counter out of CMSDK timers, without interrupts (which would add instructions to what is
 * measured).
 *
 * A plain timer counts every tick in 32 bits. A second one counts every 256th tick, so it wraps 256 times
 * later: with both, the number of times that the first has wrapped follows by rounding, up to 2^40 ticks (12
 * hours at 25 MHz). */
#include "board.h"
#include "drivers.h"

#define FINE ((volatile uint32_t *)BOARD_COUNTER_BASE)
#define COARSE ((volatile uint32_t *)BOARD_COUNTER_COARSE_BASE)

enum { FINE_CTRL = 0x00 / 4, FINE_VALUE = 0x04 / 4, FINE_RELOAD = 0x08 / 4, FINE_ENABLE = 1u };
enum { COARSE_LOAD = 0x00 / 4, COARSE_VALUE = 0x04 / 4, COARSE_CTRL = 0x08 / 4 };
enum { COARSE_ENABLE = 0x80u, COARSE_PRESCALE_256 = 2u << 2, COARSE_32_BITS = 2u };
#define COARSE_SHIFT 8

void counter_init(void) {
    FINE[FINE_RELOAD] = 0xFFFFFFFFu;
    FINE[FINE_VALUE] = 0xFFFFFFFFu;
    COARSE[COARSE_CTRL] = COARSE_PRESCALE_256 | COARSE_32_BITS;
    COARSE[COARSE_LOAD] = 0xFFFFFFFFu;
    FINE[FINE_CTRL] = FINE_ENABLE;
    COARSE[COARSE_CTRL] = COARSE_ENABLE | COARSE_PRESCALE_256 | COARSE_32_BITS;
}

uint64_t board_counter(void) {
    const uint32_t fine = 0xFFFFFFFFu - FINE[FINE_VALUE]; /* both count down */
    const uint64_t coarse = (uint64_t)(0xFFFFFFFFu - COARSE[COARSE_VALUE]) << COARSE_SHIFT;
    const uint64_t wraps = (coarse - fine + 0x80000000u) >> 32; /* nearest, as the two are read apart */
    return (wraps << 32) + fine;
}
