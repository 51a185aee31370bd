/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeps on a RISC-V core until the serial port has received. No handler runs: with interrupts off in
 * mstatus, an enabled one that is pending still ends the sleep, so that a measured run executes nothing but
 * itself. */
#include "board.h"
#include "drivers.h"

#define PLIC(offset) (*(volatile uint32_t *)(BOARD_UART_PLIC_BASE + (offset)))
#define PRIORITY (4u * BOARD_UART_IRQ)
#define ENABLE (0x2000u + 4u * (BOARD_UART_IRQ / 32u))
#define THRESHOLD 0x200000u
#define CLAIM 0x200004u
#define MIE_MEIE (1u << 11) /* external interrupts of machine mode */

void idle_init(void) {
    PLIC(PRIORITY) = 1;
    PLIC(ENABLE) = 1u << (BOARD_UART_IRQ % 32u);
    PLIC(THRESHOLD) = 0;
    uart_enable_receive_interrupt();
    __asm__ volatile("csrw mie, %0" ::"r"(MIE_MEIE) : "memory");
}

void board_idle(void) {
    __asm__ volatile("wfi" ::: "memory");
    const uint32_t source = PLIC(CLAIM);
    uart_clear_receive_interrupt();
    PLIC(CLAIM) = source;
}
