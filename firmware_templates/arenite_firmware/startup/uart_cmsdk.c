/* SPDX-License-Identifier: Apache-2.0 */
/* Serial port of Arm's Cortex-M System Design Kit (CMSDK APB UART), polled. */
#include "board.h"
#include "drivers.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)

enum { DATA = 0x00 / 4, STATE = 0x04 / 4, CTRL = 0x08 / 4, INTERRUPT = 0x0C / 4, BAUD_DIVIDER = 0x10 / 4 };
enum { TX_FULL = 1u << 0, RX_FULL = 1u << 1 };
enum { TX_ENABLE = 1u << 0, RX_ENABLE = 1u << 1, RX_INTERRUPT_ENABLE = 1u << 3, RX_INTERRUPT = 1u << 1 };

void uart_init(void) {
    const uint32_t divider = BOARD_CLOCK_HZ / BOARD_UART_BAUD;
    UART[BAUD_DIVIDER] = divider < 16u ? 16u : divider; /* the hardware's minimum */
    UART[CTRL] = TX_ENABLE | RX_ENABLE;
    (void)UART[DATA]; /* frees the receive buffer of whatever arrived before the port was on */
}

void uart_enable_receive_interrupt(void) { UART[CTRL] |= RX_INTERRUPT_ENABLE; }

void uart_clear_receive_interrupt(void) { UART[INTERRUPT] = RX_INTERRUPT; }

int board_uart_read(void) { return (UART[STATE] & RX_FULL) != 0 ? (int)(UART[DATA] & 0xFFu) : -1; }

void board_uart_write(uint8_t byte) {
    while ((UART[STATE] & TX_FULL) != 0) {
    }
    UART[DATA] = byte;
}
