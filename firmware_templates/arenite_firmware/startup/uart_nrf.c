/* SPDX-License-Identifier: Apache-2.0 */
/* UART of Nordic's nRF51, also the legacy one of nRF52 (nRF51 Series Reference Manual, chapter 29), polled. */
#include "board.h"
#include "drivers.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)

enum {
    START_RX = 0x000 / 4,
    START_TX = 0x008 / 4,
    RX_READY = 0x108 / 4,
    TX_READY = 0x11C / 4,
    INTERRUPT_SET = 0x304 / 4,
    ENABLE = 0x500 / 4,
    PIN_TX = 0x50C / 4,
    PIN_RX = 0x514 / 4,
    RXD = 0x518 / 4,
    TXD = 0x51C / 4,
    BAUD_RATE = 0x524 / 4,
    CONFIG = 0x56C / 4
};
enum { ENABLED = 4, INTERRUPT_RX_READY = 1u << 2 };

/* The fraction of 16 MHz in 32 bits, of which the hardware takes the upper 20. */
#define BAUD_FRACTION ((uint32_t)(((uint64_t)BOARD_UART_BAUD << 32) / 16000000u))
#define BAUD_REGISTER ((BAUD_FRACTION + 0x800u) & 0xFFFFF000u)

void uart_init(void) {
    UART[PIN_TX] = BOARD_UART_TX_PIN;
    UART[PIN_RX] = BOARD_UART_RX_PIN;
    UART[BAUD_RATE] = BAUD_REGISTER;
    UART[CONFIG] = 0; /* no parity, no flow control */
    UART[ENABLE] = ENABLED;
    UART[RX_READY] = 0;
    UART[START_RX] = 1;
    UART[START_TX] = 1;
}

void uart_enable_receive_interrupt(void) { UART[INTERRUPT_SET] = INTERRUPT_RX_READY; }

void uart_clear_receive_interrupt(void) {} /* reading the data clears it */

int board_uart_read(void) {
    if (UART[RX_READY] == 0) {
        return -1;
    }
    UART[RX_READY] = 0; /* before the read, which lets the next byte of the FIFO raise it again */
    return (int)(UART[RXD] & 0xFFu);
}

void board_uart_write(uint8_t byte) {
    UART[TX_READY] = 0;
    UART[TXD] = byte;
    while (UART[TX_READY] == 0) {
    }
}
