/* SPDX-License-Identifier: Apache-2.0 */
/* LPUART of NXP's i.MX RT (IMXRT1060RM, chapter 49), polled, without its FIFOs. */
#include "board.h"
#include "drivers.h"

#define UART ((volatile uint32_t *)BOARD_UART_BASE)

enum { BAUD = 0x10 / 4, STAT = 0x14 / 4, CTRL = 0x18 / 4, DATA = 0x1C / 4 };
enum { RX_ON = 1 << 18, TX_ON = 1 << 19, RX_INTERRUPT = 1 << 21 };
enum { OVERRUN = 1 << 19, RX_FULL = 1 << 21, TX_EMPTY = 1 << 23 };

#define SAMPLES 16u /* of a bit */
#define DIVIDER ((BOARD_UART_CLOCK_HZ / SAMPLES + BOARD_UART_BAUD / 2u) / BOARD_UART_BAUD)

void uart_init(void) {
    UART[CTRL] = 0;
    UART[BAUD] = (SAMPLES - 1u) << 24 | DIVIDER;
    UART[CTRL] = TX_ON | RX_ON;
}

void uart_enable_receive_interrupt(void) { UART[CTRL] |= RX_INTERRUPT; }

void uart_clear_receive_interrupt(void) { UART[STAT] |= OVERRUN; }

int board_uart_read(void) {
    const uint32_t status = UART[STAT];
    if ((status & OVERRUN) != 0u) {
        UART[STAT] = status | OVERRUN; /* reception stops until it is cleared */
    }
    return (status & RX_FULL) != 0u ? (int)(UART[DATA] & 0xFFu) : -1;
}

void board_uart_write(uint8_t byte) {
    while ((UART[STAT] & TX_EMPTY) == 0u) {
    }
    UART[DATA] = byte;
}
