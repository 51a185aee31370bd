/* SPDX-License-Identifier: Apache-2.0 */
/* USART of STM32F0, F3, F7, G0, G4, H7, L4, U3 and U5, with flags, receive and transmit registers apart (ST RM0410, chapter 34),
 * polled, without its FIFO. */
#include "board.h"
#include "drivers.h"

#define USART ((volatile uint32_t *)BOARD_UART_BASE)

enum { CR1 = 0x00 / 4, BRR = 0x0C / 4, ISR = 0x1C / 4, ICR = 0x20 / 4, RDR = 0x24 / 4, TDR = 0x28 / 4 };
enum { CR1_UE = 1 << 0, CR1_RE = 1 << 2, CR1_TE = 1 << 3, CR1_RXNEIE = 1 << 5 };
enum { OVERRUN = 1 << 3, RX_READY = 1 << 5, TX_READY = 1 << 7 };

void uart_init(void) {
    USART[CR1] = 0;
    USART[BRR] = (BOARD_UART_CLOCK_HZ + BOARD_UART_BAUD / 2u) / BOARD_UART_BAUD;
    USART[CR1] = CR1_UE | CR1_TE | CR1_RE;
}

void uart_enable_receive_interrupt(void) { USART[CR1] |= CR1_RXNEIE; }

void uart_clear_receive_interrupt(void) { USART[ICR] = OVERRUN; } /* it would end every later sleep */

int board_uart_read(void) {
    if ((USART[ISR] & RX_READY) == 0u) {
        return -1;
    }
    return (int)(USART[RDR] & 0xFFu);
}

void board_uart_write(uint8_t byte) {
    while ((USART[ISR] & TX_READY) == 0u) {
    }
    USART[TDR] = byte;
}
