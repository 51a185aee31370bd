/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a serial NOR flash at 0x90000000 through the QUADSPI block of STM32F7 and STM32H7 (ST RM0385, chapter 14, and RM0433,
 * chapter 23). It reads with a command of one line and data of four, which every such flash knows in its state after reset
 * once its quad lines are no hold and no write protect; eight cycles lie between address and data. */
#ifndef ARENITE_STM32_QSPI_H
#define ARENITE_STM32_QSPI_H

#include "stm32.h"

/* Gives the pins of the board's flash to the block; `enable` is the RCC register that clocks GPIO ports. */
static inline void stm32_qspi_pins(uintptr_t gpio, volatile uint32_t *enable) {
    static const uint16_t pins[][2] = BOARD_QSPI_PINS; /* number, function */
    for (uint32_t i = 0; i < sizeof pins / sizeof pins[0]; i++) {
        stm32_pin(gpio, enable, pins[i][0], pins[i][1]);
    }
}

static inline void stm32_qspi_map(uintptr_t qspi) {
    enum { CR = 0x00, DCR = 0x04, CCR = 0x14 };
    const uint32_t prescaler = (uint32_t)BOARD_QSPI_DIVIDER - 1u;
    const uint32_t address_bytes = BOARD_QSPI_ADDRESS_BYTES;
    STM32_REGISTER(qspi, CR) =
        prescaler << 24 | (uint32_t)BOARD_QSPI_DUAL << 6 | 1u << 4; /* half a cycle later */
    STM32_REGISTER(qspi, DCR) =
        (BOARD_QSPI_SIZE_BITS - 1u) << 16 | 3u << 8; /* bits of an address; 4 cycles high */
    STM32_REGISTER(qspi, CR) |= 1u;
    STM32_REGISTER(qspi, CCR) = 3u << 26                     /* memory-mapped */
                                | 3u << 24                   /* data on four lines */
                                | 8u << 18                   /* dummy cycles */
                                | (address_bytes - 1u) << 12 /* their number */
                                | 1u << 10 | 1u << 8         /* address, command on one line */
                                | (address_bytes == 4u ? 0x6Cu : 0x6Bu);
}

#endif
