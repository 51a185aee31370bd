/* SPDX-License-Identifier: Apache-2.0 */
/* USART of STM32F1, F2, F4 and L1, with one status and one data register (ST RM0090, chapter 30), polled. Its clock and
 * pins must be on: the board's own C does that where reset leaves them off. */
#include "board.h"
#include "drivers.h"

#define USART ((volatile uint32_t *)BOARD_UART_BASE)

enum { SR = 0x00 / 4, DR = 0x04 / 4, BRR = 0x08 / 4, CR1 = 0x0C / 4 };
enum { SR_RXNE = 1u << 5, SR_TXE = 1u << 7 };
enum { CR1_RE = 1u << 2, CR1_TE = 1u << 3, CR1_RXNEIE = 1u << 5, CR1_UE = 1u << 13 };

void uart_init(void) {
    USART[BRR] = (BOARD_UART_CLOCK_HZ + BOARD_UART_BAUD / 2u) / BOARD_UART_BAUD;
    USART[CR1] = CR1_UE | CR1_TE | CR1_RE;
    (void)USART[DR]; /* frees the receive buffer of whatever arrived before the port was on */
}

void uart_enable_receive_interrupt(void) { USART[CR1] |= CR1_RXNEIE; }

void uart_clear_receive_interrupt(void) {} /* reading the data clears it */

int board_uart_read(void) { return (USART[SR] & SR_RXNE) != 0 ? (int)(USART[DR] & 0xFFu) : -1; }

void board_uart_write(uint8_t byte) {
    while ((USART[SR] & SR_TXE) == 0) {
    }
    USART[DR] = byte;
}
