/* SPDX-License-Identifier: Apache-2.0 */
/* The meter's pin as one bit of an output register that reads back what was written. */
#include "board.h"
#include "drivers.h"

#define OUTPUT (*(volatile uint32_t *)BOARD_PIN_BASE)

void pin_init(void) { board_pin(true); }

void board_pin(bool high) {
    const uint32_t mask = (uint32_t)1u << BOARD_PIN_BIT;
    OUTPUT = high ? OUTPUT | mask : OUTPUT & ~mask;
}
