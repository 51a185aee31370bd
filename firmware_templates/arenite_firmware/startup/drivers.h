/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a board's support offer one another. */
#ifndef ARENITE_DRIVERS_H
#define ARENITE_DRIVERS_H

void uart_init(void);
void uart_enable_receive_interrupt(void);
void uart_clear_receive_interrupt(void);
void counter_init(void);
void idle_init(void);
void pin_init(void);

#endif
