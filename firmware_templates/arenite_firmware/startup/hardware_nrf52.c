/* SPDX-License-Identifier: Apache-2.0 */
/* nRF52833 and nRF52840 (Nordic PS v1.7, chapters CLOCK and NVMC): the core always runs at 64 MHz. The crystal makes the serial
 * port exact; the flash cache saves the two wait states of most fetches. */
#include "board.h"
#include "drivers.h"

#define CLOCK ((volatile uint32_t *)0x40000000u)
#define NVMC ((volatile uint32_t *)0x4001E000u)

enum { HFCLK_START = 0x000 / 4, HFCLK_STARTED = 0x100 / 4, ICACHE_CONFIG = 0x540 / 4 };

void hardware_init(void) {
    CLOCK[HFCLK_STARTED] = 0;
    CLOCK[HFCLK_START] = 1;
    while (CLOCK[HFCLK_STARTED] == 0) {
    }
    NVMC[ICACHE_CONFIG] = 1;
}
