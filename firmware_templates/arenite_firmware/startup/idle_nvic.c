/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeps on a Cortex-M until the serial port has received. No handler runs: with interrupts masked, a pending
 * one still ends the sleep, so that a measured run executes nothing but itself. */
#include "board.h"
#include "drivers.h"

#define NVIC_ISER ((volatile uint32_t *)0xE000E100u)
#define NVIC_ICPR ((volatile uint32_t *)0xE000E280u)
#define WORD (BOARD_UART_IRQ / 32u)
#define BIT (1u << (BOARD_UART_IRQ % 32u))

void idle_init(void) {
    __asm__ volatile("cpsid i" ::: "memory");
    uart_enable_receive_interrupt();
    NVIC_ISER[WORD] = BIT;
}

void board_idle(void) {
    __asm__ volatile("wfi" ::: "memory");
    uart_clear_receive_interrupt();
    NVIC_ICPR[WORD] = BIT;
}
