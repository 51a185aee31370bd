/* SPDX-License-Identifier: Apache-2.0 */
/* Serial port PrimeCell PL011 (Arm DDI 0183), as in RP2040 and RP2350, polled, with its FIFOs. */
#include "board.h"
#include "drivers.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)

enum { DR = 0x00 / 4, FR = 0x18 / 4, IBRD = 0x24 / 4, FBRD = 0x28 / 4, LCR_H = 0x2C / 4, CR = 0x30 / 4 };
enum { IFLS = 0x34 / 4, IMSC = 0x38 / 4, ICR = 0x44 / 4 };
enum { RX_EMPTY = 1 << 4, TX_FULL = 1 << 5, FIFO_ON = 1 << 4, EIGHT_BITS = 3 << 5 };
enum { UART_ON = 1 << 0, TX_ON = 1 << 8, RX_ON = 1 << 9, RX_INTERRUPT = 1 << 4, RX_TIMEOUT = 1 << 6 };

/* In units of 1/64, rounded. */
#define DIVISOR ((8u * BOARD_UART_CLOCK_HZ / BOARD_UART_BAUD + 1u) / 2u)

void uart_init(void) {
    UART[IBRD] = DIVISOR >> 6;
    UART[FBRD] = DIVISOR & 63u;
    UART[LCR_H] = EIGHT_BITS | FIFO_ON;
    UART[CR] = UART_ON | TX_ON | RX_ON;
}

void uart_enable_receive_interrupt(void) {
    UART[IFLS] = 0; /* an eighth of the FIFO; the time-out tells of fewer bytes */
    UART[IMSC] = RX_INTERRUPT | RX_TIMEOUT;
}

void uart_clear_receive_interrupt(void) { UART[ICR] = RX_INTERRUPT | RX_TIMEOUT; }

int board_uart_read(void) { return (UART[FR] & RX_EMPTY) != 0u ? -1 : (int)(UART[DR] & 0xFFu); }

void board_uart_write(uint8_t byte) {
    while ((UART[FR] & TX_FULL) != 0u) {
    }
    UART[DR] = byte;
}
