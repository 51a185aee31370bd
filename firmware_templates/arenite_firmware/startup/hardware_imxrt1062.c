/* SPDX-License-Identifier: Apache-2.0 */
/* Clock and pins of an i.MX RT1062 (NXP IMXRT1060RM, chapters 10, 11 and 14). The core keeps the 396 MHz at which the boot ROM
 * starts it, so that neither the PLL nor the core's supply changes; the serial port takes the 24 MHz crystal. */
#include "board.h"
#include "cortex_m7_caches.h"
#include "drivers.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CCM_CSCDR1 REGISTER(0x400FC024u)
#define CCM_GATE REGISTER(0x400FC068u + 4u * BOARD_UART_GATE)

enum { UART_DIVIDER = 0x3F, UART_FROM_CRYSTAL = 1 << 6 };

void hardware_init(void) {
    cortex_m7_caches_on();
    CCM_CSCDR1 = (CCM_CSCDR1 & ~(uint32_t)UART_DIVIDER) | UART_FROM_CRYSTAL;
    CCM_GATE |= 3u << BOARD_UART_GATE_BIT;
    REGISTER(BOARD_UART_TX_MUX) = BOARD_UART_FUNCTION;
    REGISTER(BOARD_UART_RX_MUX) = BOARD_UART_FUNCTION;
    REGISTER(BOARD_UART_RX_SELECT) = BOARD_UART_RX_DAISY;
}
