/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a board's support offer one another. */
#ifndef ARENITE_DRIVERS_H
#define ARENITE_DRIVERS_H

/* Clocks, memories and pins; nothing else here works before it. */
void hardware_init(void);

void uart_init(void);
void uart_enable_receive_interrupt(void);
void uart_clear_receive_interrupt(void);
void counter_init(void);
void idle_init(void);

#endif
