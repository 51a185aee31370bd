/* SPDX-License-Identifier: Apache-2.0 */
/* Serial port compatible with the National Semiconductor 16550A, byte-wide registers, polled. */
#include "board.h"
#include "drivers.h"

#define UART ((volatile uint8_t *)BOARD_UART_BASE)

enum {
    DATA = 0,
    INTERRUPT_ENABLE = 1,
    DIVISOR_LOW = 0,
    DIVISOR_HIGH = 1,
    FIFO_CONTROL = 2,
    LINE_CONTROL = 3,
    LINE_STATUS = 5
};
enum {
    INTERRUPT_ON_DATA = 0x01,
    FIFO_ENABLE_AND_CLEAR = 0x07,
    EIGHT_BITS = 0x03,
    DIVISOR_LATCH = 0x80,
    RX_READY = 0x01,
    TX_EMPTY = 0x20
};

void uart_init(void) {
    const uint32_t divisor = BOARD_CLOCK_HZ / (16u * BOARD_UART_BAUD);
    const uint32_t at_least_one = divisor == 0 ? 1u : divisor;
    UART[LINE_CONTROL] = DIVISOR_LATCH | EIGHT_BITS;
    UART[DIVISOR_LOW] = (uint8_t)(at_least_one & 0xFFu);
    UART[DIVISOR_HIGH] = (uint8_t)((at_least_one >> 8) & 0xFFu);
    UART[LINE_CONTROL] = EIGHT_BITS;
    UART[FIFO_CONTROL] = FIFO_ENABLE_AND_CLEAR;
}

void uart_enable_receive_interrupt(void) { UART[INTERRUPT_ENABLE] = INTERRUPT_ON_DATA; }

void uart_clear_receive_interrupt(void) {} /* reading the data clears it */

int board_uart_read(void) { return (UART[LINE_STATUS] & RX_READY) != 0 ? (int)UART[DATA] : -1; }

void board_uart_write(uint8_t byte) {
    while ((UART[LINE_STATUS] & TX_EMPTY) == 0) {
    }
    UART[DATA] = byte;
}
