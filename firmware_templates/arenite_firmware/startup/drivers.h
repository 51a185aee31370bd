/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a board's support offer one another. */
#ifndef ARENITE_DRIVERS_H
#define ARENITE_DRIVERS_H

#include "board.h"

/* Clocks, memories and pins; nothing else here works before it. */
void hardware_init(void);

void uart_init(void);
void uart_enable_receive_interrupt(void);
void uart_clear_receive_interrupt(void);
void counter_init(void);
void idle_init(void);
void reset_init(void);
void watchdog_init(void);
void watchdog_feed(void);
void marker_init(void);

/* Notes the fault for the next start, and resets. The stack is empty again. */
void fault_record(const board_fault_t *fault);

#endif
